"""Pictures for a model: scaled down to a token price, and marked with the element ids of the text."""

from __future__ import annotations

import base64
import binascii
import functools
import http.client
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exact.errors import EnvironmentFailure, UsageError
from exact.models import tokens
from exact.models.base import Image
from exact.observation import Element
from exact.origins import fetch
from exact.task import Task
from exact.untrusted import open_picture, read_bounded
from exact.views.prune import INTERACTIVE

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageDraw import ImageDraw

_COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
_SCALE_STEP = 0.85
"""Factor by which both sides shrink until the price fits."""
_MIN_SIDE = 64
"""Pixels of a side below which a picture is not scaled further."""
_MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
_FETCH_SECONDS, _MAX_BYTES = 30.0, 64 << 20
"""Timeout in seconds and maximum bytes for fetching a picture."""


class ScaledPicture(NamedTuple):
    """A picture within its price."""

    data: bytes
    tokens: int
    note: str
    """Original and new size. Empty if the picture was not scaled."""


def scale_picture(data: bytes, most: int, model: str = "") -> ScaledPicture:
    """Return the picture, scaled to at most `most` tokens for a model, or to the smallest size that pictures are scaled to.

    A picture that is cheap enough is returned byte for byte; a scaled one is a PNG.
    """
    width, height = tokens.size(data)
    price = tokens.picture(width, height, model)
    if price <= most:
        return ScaledPicture(data, price, "")
    new_width, new_height = width, height
    while tokens.picture(new_width, new_height, model) > most and min(new_width, new_height) * _SCALE_STEP >= _MIN_SIDE:
        new_width, new_height = round(new_width * _SCALE_STEP), round(new_height * _SCALE_STEP)
    if (new_width, new_height) == (width, height):
        return ScaledPicture(data, price, "")
    with _open_picture(data) as picture:
        small = picture.convert("RGB").resize((new_width, new_height))
    note = f"a picture of {width} x {height} was scaled to {new_width} x {new_height}"
    return ScaledPicture(_to_png(small), tokens.picture(new_width, new_height, model), note)


def fit_picture(data: bytes, side: int) -> bytes:
    """Return the picture, scaled to a longest side of at most `side` pixels. One that is small enough is returned byte for byte."""
    width, height = tokens.size(data)
    if max(width, height) <= side:
        return data
    scale = side / max(width, height)
    with _open_picture(data) as picture:
        return _to_png(picture.convert("RGB").resize((round(width * scale), round(height * scale))))


def mark_elements(data: bytes, elements: Iterable[Element]) -> bytes:
    """Return the screenshot with a box and the id around each visible element that can be acted on, as in the text.

    Boxes are in CSS pixels of the viewport. A screenshot of another size is assumed to show the whole viewport.
    """
    from PIL import ImageDraw

    with _open_picture(data) as opened:
        picture = opened.convert("RGB")
    draw = ImageDraw.Draw(picture)
    for number, element in enumerate(_markable_elements(elements)):
        _mark(draw, element, _COLOURS[number % len(_COLOURS)], picture.size)
    return _to_png(picture)


def load_task_pictures(task: Task) -> tuple[Image, ...]:
    """Return the pictures of a task's instruction.

    Raises UsageError for a picture that cannot be read, and EnvironmentFailure for an address that does not answer.
    """
    return tuple(_load_picture(where) for where in task.images)


@functools.lru_cache(maxsize=32)
def _load_picture(where: str) -> Image:
    if where.startswith("data:"):
        head, _, body = where.partition(",")
        try:
            return Image(base64.b64decode(body, validate=True), head.removeprefix("data:").partition(";")[0])
        except binascii.Error as error:
            raise UsageError(f"a picture of the task is no base64 ({error}): write data:image/png;base64,...") from error
    if where.startswith(("http://", "https://")):
        return _with_media_type(_fetch(where), where)
    try:
        data = read_bounded(Path(where), _MAX_BYTES)
    except OSError as error:
        raise UsageError(f"the task's picture {where} cannot be read ({error.strerror}): give a file or a data: URL") from error
    return _with_media_type(data, where)


def _fetch(url: str) -> bytes:
    """Return the content at an address.

    Raises EnvironmentFailure.
    """
    try:
        return fetch(url, seconds=_FETCH_SECONDS, most=_MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise EnvironmentFailure(f"the task's picture {url} cannot be fetched ({error}): is its site up?") from error


def _with_media_type(data: bytes, where: str) -> Image:
    with _open_picture(data) as picture:
        kind = picture.format or ""
    if kind in _MEDIA_TYPES:
        return Image(data, _MEDIA_TYPES[kind])
    raise UsageError(f"the task's picture {where} is {kind}: use {', '.join(_MEDIA_TYPES)}")


def _markable_elements(elements: Iterable[Element]) -> list[Element]:
    return [e for e in elements if e.visible and e.box is not None and (e.role in INTERACTIVE or e.role in ("generic", "graphics-symbol"))]


def _mark(draw: ImageDraw, element: Element, colour: str, size: tuple[int, int]) -> None:
    from PIL import ImageFont

    box = element.box
    assert box is not None
    left, top = max(0.0, box.x), max(0.0, box.y)
    right, bottom = min(size[0] - 1.0, box.x + box.width), min(size[1] - 1.0, box.y + box.height)
    if right <= left or bottom <= top:
        return
    draw.rectangle((left, top, right, bottom), outline=colour, width=2)
    font = ImageFont.load_default(13)
    wide, high = (int(side) + 4 for side in draw.textbbox((0, 0), element.id, font=font)[2:])
    x, y = min(left, size[0] - wide), top - high if top >= high else top
    draw.rectangle((x, y, x + wide, y + high), fill=colour)
    draw.text((x + 2, y + 1), element.id, fill="white", font=font)


def _open_picture(data: bytes) -> Picture:
    try:
        return open_picture(data)
    except OSError as error:
        raise UsageError(f"a picture cannot be decoded ({error}): use PNG or JPEG") from error


def _to_png(picture: Picture) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
