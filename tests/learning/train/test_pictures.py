"""Screenshots in rows, without torch: how many tokens they take, where they stand, and which are refused."""

from __future__ import annotations

import base64
import io
import random
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from exact.errors import UsageError
from exact.learning.train.episodes import EpisodePool, EpisodeStart, page_text
from exact.learning.train.grpo import play_trees
from exact.learning.train.model import LoadedModel
from exact.learning.train.pictures import PictureReader, ShownPicture
from tests.learning.train.test_trees import Digits, letters, sampler

MARKS = {"<|vision_start|>": 1, "<|image_pad|>": 2, "<|vision_end|>": 3, "<|video_pad|>": 4}


class Processor:
    """An image processor that rounds to whole tokens."""

    model_input_names = ("pixel_values", "image_grid_thw")
    patch_size, merge_size = 14, 2

    def __call__(self, images: list[Image.Image], return_tensors: str) -> dict[str, Any]:
        width, height = (max(1, round(length / 28)) * 2 for length in images[0].size)
        return {"pixel_values": np.zeros((height * width, 1176)), "image_grid_thw": np.array([[1, height, width]])}


class Tokenizer:
    """A tokenizer of some marks."""

    unk_token_id = None

    def __init__(self, marks: dict[str, int] = MARKS) -> None:
        self.marks = marks

    def __call__(self, text: str, add_special_tokens: bool) -> Any:
        return SimpleNamespace(input_ids=[self.marks[text]] if text in self.marks else [0] * len(text))

    def convert_tokens_to_ids(self, text: str) -> int | None:
        return self.marks.get(text)


def loaded(processor: Any = Processor, tokenizer: Any = None, image: int = 2) -> LoadedModel:
    model = SimpleNamespace(config=SimpleNamespace(image_token_id=image))
    return LoadedModel(model, tokenizer or Tokenizer(), processor and processor())


def png(width: int, height: int) -> str:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


@given(st.integers(1, 900), st.integers(1, 900), st.integers(1, 40))
def test_a_screenshot_takes_no_more_tokens_than_the_limit(width: int, height: int, most: int) -> None:
    picture = PictureReader(loaded(), "model", most)(png(width, height))
    count = picture.grid[1] * picture.grid[2] // 4
    assert 1 <= count <= most and picture.mark == "<|vision_start|>" + "<|image_pad|>" * count + "<|vision_end|>"


def test_without_a_limit_a_screenshot_is_the_processors_own() -> None:
    reader = PictureReader(loaded(), "model", None)
    picture = reader(png(280, 560))
    assert picture.image.size == (280, 560) and picture.grid == (1, 40, 20) and picture.mark.count("<|image_pad|>") == 200
    assert reader.token == 2 and reader.unsaid == [2, 4]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (loaded(None), "m reads text alone: set screenshots: false, or name a vision model"),
        (loaded(tokenizer=Tokenizer({})), "screenshots need a model of the kind of Qwen2-VL"),
        (loaded(type("Other", (Processor,), {"model_input_names": ("pixel_values",)})), "no image grid"),
        (loaded(image=7), "as 2, the model reads 7: use the model's own tokenizer"),
    ],
)
def test_a_model_that_cannot_see_is_refused(model: LoadedModel, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        PictureReader(model, "m", None)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("screenshot", "words"),
    [
        (None, "exact serve ... --screenshots"),
        ("", "--screenshots"),
        ("AAAA", "does not read"),
        ("%", "does not read"),
        (7, "does not read"),
    ],
)
def test_an_observation_without_a_screenshot_is_refused(screenshot: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        PictureReader(loaded(), "m", None)(screenshot)


def test_a_page_writes_no_token_of_turns_or_pictures() -> None:
    shown = page_text({"goal": "<|im_end|>", "text": "a <|image_pad|>", "error": "<|vision_end|>"}, 99, goal=True, earlier=["<|im_start|>"])
    assert "<|" not in shown and "image_pad" in shown and "im_end" in shown


@given(st.integers(0, 99), st.integers(2, 5), st.data())
async def test_a_row_has_one_placeholder_for_each_of_its_pictures_in_their_order(seed: int, size: int, data: st.DataObject) -> None:
    branches, serial, chance = data.draw(st.integers(0, size - 1)), count(), random.Random(seed)
    pool = EpisodePool(
        [Digits() for _ in range(2)],
        letters,
        max_steps=4,
        characters=200,
        look=lambda shot: ShownPicture(next(serial), None, (1, 2, 2), "<p>"),
    )
    starts = [EpisodeStart("ones", 0)] * size
    episodes = await play_trees(pool, starts, sampler(chance), size=size, branches=branches, chance=chance)
    for episode in episodes:
        text, order = "".join(map(chr, episode.prompt_ids + episode.completion_ids)), [each.image for each in episode.pictures]
        assert text.count("<p>") == text.count("<|im_start|>user\n<p>") == len(order) == 4 and order == sorted(set(order))
    for branch in episodes[size - branches :]:
        trunk = next(each for each in episodes if each.steps[0] is branch.steps[0])
        same = sum(a is b for a, b in zip(trunk.steps, branch.steps, strict=False))
        assert branch.pictures[: same + 1] == trunk.pictures[: same + 1]
