"""The forms in which records are written, one JSON object a line."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from exact.learning.records import TrainingRecord
from exact.models.base import Image, Message, Text

Format = Literal["conversational", "prompt-completion", "chat", "verifiers"]

FORMATS: dict[Format, str] = {
    "conversational": "TRL: `messages`, or `prompt` with `chosen` and `rejected`",
    "prompt-completion": "TRL: `prompt` and `completion`, one answer a line",
    "chat": "fine-tuning of chat models: `messages` with a `weight` for each answer",
    "verifiers": "rollouts of verifiers: `prompt`, `completion`, `reward`",
}
"""Description of each format."""

StorePicture = Callable[[str, bytes], None]
"""Stores a picture under a name, a path relative to the export's folder."""


class Pictures(NamedTuple):
    """Destination of an export's pictures. Without one, an export has no pictures."""

    folder: str
    """Name of the folder beside the export."""
    store: StorePicture


def written(record: TrainingRecord, form: Format, pictures: Pictures | None, about: dict[str, Any], reward: float | None) -> dict[str, Any]:
    """Return a record as plain data.

    about: its provenance. reward: the benchmark's score of its attempt. Every line of an export has the same columns.
    """
    if form == "chat":
        return _chat(record, pictures is not None)
    images = list[str]()

    def turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [_turn(message, pictures, images) for message in messages]

    line: dict[str, Any]
    if record.rejected:
        line = {"prompt": turns(record.prompt), "chosen": turns(record.completion), "rejected": turns(record.rejected)}
    elif form == "conversational":
        line = {"messages": turns((*record.prompt, *record.completion))}
    else:
        line = {"prompt": turns(record.prompt), "completion": turns(record.completion)}
    if form == "verifiers":
        return line | {"answer": "", "task": about["task"], "reward": reward, "info": about | record.columns}
    line |= record.columns
    return line | ({"images": images} if pictures else {}) | {"meta": about}


def _chat(record: TrainingRecord, pictures: bool) -> dict[str, Any]:
    """Return a record for providers' fine-tuning. They refuse unknown keys, so it lacks provenance."""

    def turn(message: Message) -> dict[str, Any]:
        content = [_inline_part(part) for part in message.parts] if pictures and _has_picture(message) else text_of(message)
        return {"role": message.role, "content": content}

    if record.rejected:
        return {
            "input": {"messages": [turn(message) for message in record.prompt]},
            "preferred_output": [turn(message) for message in record.completion],
            "non_preferred_output": [turn(message) for message in record.rejected],
        }
    trained = record.trained or tuple(message.role == "assistant" for message in record.completion)
    answers = [
        turn(message) | ({"weight": int(learn)} if message.role == "assistant" else {})
        for message, learn in zip(record.completion, trained, strict=True)
    ]
    return {"messages": [*(turn(message) for message in record.prompt), *answers]}


def _inline_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"}}


def _turn(message: Message, pictures: Pictures | None, images: list[str]) -> dict[str, Any]:
    """Return a turn. Its pictures are stored, and added to `images` in their order; a list of parts marks their places."""
    if pictures is None:
        return {"role": message.role, "content": text_of(message)}
    content = list[dict[str, Any]]()
    for part in message.parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
            continue
        name = f"{pictures.folder}/{hashlib.sha256(part.data).hexdigest()}.{part.media_type.partition('/')[2] or 'png'}"
        pictures.store(name, part.data)
        images.append(name)
        content.append({"type": "image", "text": None})
    return {"role": message.role, "content": content}


def _has_picture(message: Message) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def text_of(message: Message) -> str:
    """Return the text of a turn."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
