"""A model's own computer tool through everything: `exact run` with a native API over HTTP in a real browser."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from exact.models.base import ChatAnswer, ToolCall
from exact.models.scripted import Question, Reply, ScriptedServer
from exact.runs.journal.store import RunFolder

from .test_llm_agent import calls, exact

CONFIG = """
name: computer
search: {algorithm: react}
view: {images: true, text: false}
policy: {kind: llm, samples: 1, actions: computer}
value: {kind: lexical}
reflection: {kind: none}
models: {policy: {model: scripted, base_url: "%s", api: %s, price: {input: 1, output: 2}}}
limits: {money: 1, calls: 20, actions: 4, transitions: 20}
"""
GREY = (239, 239, 239)
"""Colour of a button that no style colours."""


def button(picture: bytes) -> tuple[int, int]:
    """Return the middle of the button in a screenshot."""
    shown = Image.open(io.BytesIO(picture)).convert("RGB")
    found = [(x, y) for x in range(shown.width) for y in range(shown.height) if shown.getpixel((x, y)) == GREY]
    assert found, "no button in the picture"
    xs, ys = zip(*found, strict=True)
    return (min(xs) + max(xs)) // 2, (min(ys) + max(ys)) // 2


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_a_model_that_sees_only_the_picture_clicks_the_button(tmp_path: Path, api: str) -> None:
    def answers(question: Question, sample: int) -> Reply:
        if question.messages[-1][0] == "user" and "cannot be used" not in question.messages[-1][1]:
            look = {"action": "screenshot"} if api == "messages" else {"actions": [{"type": "screenshot"}]}
            return Reply(text="I look first.", calls=(ToolCall(name="computer", arguments=look),))
        x, y = button(question.images[0])
        click = {"action": "left_click", "coordinate": [x, y]} if api == "messages" else {"actions": [{"type": "click", "x": x, "y": y}]}
        return Reply(text="There it is.", calls=(ToolCall(name="computer", arguments=click),))

    config, folder = tmp_path / "computer.yaml", tmp_path / "run"
    async with ScriptedServer(answers) as server:
        config.write_text(CONFIG % (server.base_url, api))
        code, output = await exact("run", "miniwob/click-test?seed=3", "--config", str(config), "--out", str(folder))
    assert code == 0, output
    (line,) = RunFolder.open(folder).results()
    assert line.score == 1.0, output
    first, second = calls(folder)
    assert (first.attempt, second.attempt) == (0, 1) and server.paths == [f"/v1/{api}"] * 2
    answer = msgspec.json.decode(RunFolder.open(folder).blobs.get(second.answer), type=ChatAnswer)
    assert answer.choices[0].calls[0].name == "computer" and answer.choices[0].items
