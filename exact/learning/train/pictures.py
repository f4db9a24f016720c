"""Screenshots as a vision model of Qwen's kind reads them: patches of pixels, and a run of placeholder tokens in their place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.errors import UsageError
from exact.untrusted import picture_of

if TYPE_CHECKING:
    from exact.learning.train.model import LoadedModel

_BEGIN, _PAD, _END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"


class ShownPicture(NamedTuple):
    """A screenshot as a model reads it."""

    image: Any
    """The screenshot, by Pillow, shrunk as the settings say."""
    pixels: Any
    """Its patches, one a row."""
    grid: tuple[int, int, int]
    """Patches in time, height and width."""
    mark: str
    """Its placeholder: each of its tokens is written out."""

    @property
    def tokens(self) -> int:
        """Number of tokens that stand for its patches."""
        return self.mark.count(_PAD)


class PictureReader:
    """Reads screenshots with the image processor of a vision model."""

    def __init__(self, loaded: LoadedModel, name: str, most: int | None) -> None:
        """Configure the reader. most: most placeholder tokens of a screenshot; None: as many as the model's own processor makes.

        Raises UsageError for a model that reads no images, or reads them in another way than Qwen-VL.
        """
        processor, tokenizer = loaded.image_processor, loaded.tokenizer
        if processor is None:
            raise UsageError(
                f"{name} reads text alone: set screenshots: false, or name a vision model, such as Qwen/Qwen2.5-VL-3B-Instruct"
            )
        ids = [tokenizer(mark, add_special_tokens=False).input_ids for mark in (_BEGIN, _PAD, _END)]
        if "image_grid_thw" not in processor.model_input_names or any(len(each) != 1 for each in ids):
            raise UsageError(f"{name} has no token {_PAD} or no image grid: screenshots need a model of the kind of Qwen2-VL and later")
        self.token: int = ids[1][0]
        if self.token != loaded.model.config.image_token_id:
            expected = loaded.model.config.image_token_id
            raise UsageError(
                f"{name}: its tokenizer writes {_PAD} as {self.token}, the model reads {expected}: use the model's own tokenizer"
            )
        self._processor, self._most = processor, most
        video = tokenizer.convert_tokens_to_ids("<|video_pad|>")
        self.unsaid = [self.token] if video in (None, tokenizer.unk_token_id) else [self.token, video]
        """Tokens that an answer must not have: nothing would stand for them."""

    def __call__(self, screenshot: Any) -> ShownPicture:
        """Return a screenshot, in base64 or as rows of pixels, as a picture. Raises UsageError if there is none."""
        if not screenshot:
            raise UsageError("the server's observations have no screenshot: start it by `exact serve ... --screenshots`")
        try:
            image = self._shrunk(picture_of(screenshot).convert("RGB"))
        except OSError as error:
            raise UsageError(f"a screenshot does not read: {error}: correct the server") from error
        made = self._processor(images=[image], return_tensors="pt")
        time, height, width = made["image_grid_thw"][0].tolist()
        count = time * height * width // self._processor.merge_size**2
        return ShownPicture(image, made["pixel_values"], (time, height, width), _BEGIN + _PAD * count + _END)

    def _shrunk(self, image: Any) -> Any:
        side = self._processor.patch_size * self._processor.merge_size
        if self._most is None or math.ceil(image.width / side) * math.ceil(image.height / side) <= self._most:
            return image
        scale = math.sqrt(self._most * side**2 / (image.width * image.height))
        width, height = (max(1, min(self._most, math.floor(length * scale / side))) for length in (image.width, image.height))
        return image.resize((width * side, height * side))


def picture_inputs(pictures: Sequence[Sequence[ShownPicture]], ids: Any, token: int) -> dict[str, Any]:
    """Return the inputs of a model's forward pass beside the ids of rows: the patches of all pictures, their grids and positions."""
    import torch

    shown = [picture for row in pictures for picture in row]
    if not shown:
        return {}
    return {
        "pixel_values": torch.cat([each.pixels for each in shown]).to(ids.device),
        "image_grid_thw": torch.tensor([each.grid for each in shown], device=ids.device),
        "mm_token_type_ids": (ids == token).long(),
    }


def pictured_trainer(base: Any, pictures: Sequence[Sequence[ShownPicture]], token: int) -> Any:
    """Return a class of the trainer whose loss sees the pictures of the last rollout's rows.

    TRL has no pictures for rows of a `rollout_func`. This relies on two things in TRL: the log-probabilities before a step (of a reference
    model, or for a correction of vLLM's) are computed of all rows in their order, without `pixel_values`; and the inputs below are split by
    rows, shuffled with them, and given to the forward pass of the loss.
    """

    class PicturedTrainer(base):  # type: ignore[misc]
        """GRPO with pictures in its rows."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            import torch

            found = super()._generate_and_score_completions(inputs)
            return found | self._seen(torch.cat([found["prompt_ids"], found["completion_ids"]], 1))

        def _get_per_token_logps_and_entropies(self, model: Any, input_ids: Any, *args: Any, **options: Any) -> Any:
            if options.get("pixel_values") is None:
                options |= self._seen(input_ids)
            return super()._get_per_token_logps_and_entropies(model, input_ids, *args, **options)

        def _seen(self, ids: Any) -> dict[str, Any]:
            return picture_inputs(pictures, ids, token) | {"num_images": [len(row) for row in pictures]}

    return PicturedTrainer
