"""Estimates of the tokens of texts and pictures."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable

import msgspec

from exact.models.base import ChatAnswer, ChatRequest, Image, Text

TURN = 4
"""Tokens around each turn."""
_CHARACTERS, _MOST_CHARACTERS = 4, 16
"""Characters of a token of text as it is estimated; most that a server's count is believed with."""
_LONGEST_NAME = 200
"""Characters of the longest name of a model."""

_PIECES = re.compile(r"(?P<word>[^\W\d_]+)|(?P<number>\d+)|(?P<space>\s+)|(?P<mark>[^\w\s]+|_+)")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fa1f]")


def count(text: str, model: str = "") -> int:
    """Return the tokens of a text: by tiktoken if it is installed and has the model's vocabulary on disk, else by `rough`.

    A provider's name may stand before the model's: `openai/gpt-4o`.
    """
    encode = _encoding(model.rpartition("/")[2]) if model else None
    return len(encode(text)) if encode is not None else rough(text)


def rough(text: str) -> int:
    """Return the tokens of a text, estimated without a vocabulary.

    A word is a token for every six letters begun, in letters outside ASCII for every three, in scripts without spaces for every
    one; a number one for every three digits; signs one for every two in a row; a line break one, other space none.
    """
    total = 0
    for piece in _PIECES.finditer(text):
        found = piece[0]
        match piece.lastgroup:
            case "word":
                total += _word(found)
            case "number":
                total += math.ceil(len(found) / 3)
            case "mark":
                total += math.ceil(len(found) / 2)
            case "space":
                total += 1 if "\n" in found else 0
    return total


def picture(width: int, height: int, model: str = "") -> int:
    """Return the tokens of a picture of a size in pixels, by the rules that providers state.

    OpenAI (gpt-4o): scaled to fit 2048 x 2048, then to a shorter side of at most 768; 85, and 170 for each tile of 512 x 512.
    Claude: width x height / 750, after scaling to a longer side of at most 1568. Gemini: 258 for each tile of 768 x 768.
    Qwen-VL: one for each 28 x 28 pixels. An unknown model counts as OpenAI's.
    """
    if not width or not height:
        return 0
    name = model.rpartition("/")[2].lower()
    if name.startswith("claude"):
        scale = min(1.0, 1568 / max(width, height))
        return math.ceil(width * scale * height * scale / 750)
    if name.startswith("gemini"):
        return 258 * (1 if max(width, height) <= 384 else math.ceil(width / 768) * math.ceil(height / 768))
    if name.startswith("qwen"):
        return math.ceil(width / 28) * math.ceil(height / 28)
    scale = min(1.0, 2048 / max(width, height))
    width, height = round(width * scale), round(height * scale)
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def size(data: bytes) -> tuple[int, int]:
    """Return the width and height of a PNG or JPEG in pixels, from its header; (0, 0) for other data."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    return _jpeg(data) if data[:2] == b"\xff\xd8" else (0, 0)


def estimate(request: ChatRequest) -> int:
    """Return the estimated tokens of a request, in and out: text, pictures, and answers of half the allowed length."""
    return prompt_tokens(request) + request.sampling.n * request.sampling.max_tokens // 2


def prompt_tokens(request: ChatRequest) -> int:
    """Return the estimated tokens of a request's text and pictures."""
    parts = [part for message in request.sent() for part in message.parts]
    words = _characters(request) // _CHARACTERS
    pictures = sum(picture(*size(part.data)) or 765 for part in parts if isinstance(part, Image))
    return words + pictures + TURN * len(request.messages)


def checked(answer: ChatAnswer, request: ChatRequest) -> ChatAnswer:
    """Return an answer with estimates in place of counts of tokens that are far too small for its texts, so that caps hold.

    A server that reports no tokens at all stays so: the reserved amount counts then.
    """
    usage, written = answer.usage, sum(len(choice.text) for choice in answer.choices)
    if usage.input_tokens or usage.output_tokens:
        read = usage.input_tokens if usage.input_tokens * _MOST_CHARACTERS >= _characters(request) else prompt_tokens(request)
        said = usage.output_tokens if usage.output_tokens * _MOST_CHARACTERS >= written else written // _CHARACTERS
        usage = msgspec.structs.replace(usage, input_tokens=read, output_tokens=said)
    return msgspec.structs.replace(answer, usage=usage, model=answer.model[:_LONGEST_NAME])


def _characters(request: ChatRequest) -> int:
    """Return the characters of a request's text."""
    return sum(len(part.text) for message in request.sent() for part in message.parts if isinstance(part, Text))


def _word(word: str) -> int:
    if word.isascii():
        return math.ceil(len(word) / 6)
    wide = len(_WIDE.findall(word))
    return wide + math.ceil((len(word) - wide) / 3)


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + length
    return (0, 0)


@functools.cache
def _encoding(model: str) -> Callable[[str], list[int]] | None:
    """Return tiktoken's encoder if TIKTOKEN_CACHE_DIR names a folder with its vocabularies. Without one tiktoken would download them."""
    import os

    if not os.environ.get("TIKTOKEN_CACHE_DIR"):
        return None
    try:
        import tiktoken
    except ImportError:
        return None
    try:
        encoding = tiktoken.encoding_for_model(model)
    except (KeyError, OSError, ValueError):
        return None
    return functools.partial(encoding.encode, disallowed_special=())
