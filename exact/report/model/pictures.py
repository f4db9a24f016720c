"""Screenshots small enough for a page: WebP (JPEG where Pillow has no WebP), equal ones once."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable

from PIL import Image, UnidentifiedImageError, features

from exact.errors import JournalError
from exact.picture import open_picture
from exact.report.model.data import Picture
from exact.runs.journal.store import Blobs

_LADDER = ((1280, 78), (1280, 60), (960, 55), (720, 50), (480, 45), (320, 40), (200, 30))
"""Longest side in pixels and quality, best first: the first that fits its share of the page is used."""


def pictures(names: Iterable[str], blobs: Blobs, total: int, notes: list[str]) -> dict[str, Picture]:
    """Return the pictures of these blobs by name, in about `total` bytes of text. A missing or damaged picture is a warning."""
    unique = dict.fromkeys(name for name in names if name)
    found = {}
    for name in unique:
        try:
            found[name] = _picture(blobs.get(name), total * 3 // 4 // len(unique))
        except (JournalError, UnidentifiedImageError, OSError) as error:
            notes.append(f"Screenshot {name[:12]} cannot be shown: {error}")
    return found


def coded(data: bytes) -> tuple[bytes, str]:
    """Return a screenshot at its best quality for a page, with its media type. Raises UnidentifiedImageError, OSError."""
    with open_picture(data) as image:
        kind = _kind()
        return _coded(image.convert("RGB"), kind, *_LADDER[0]), f"image/{kind}"


def _kind() -> str:
    return "webp" if features.check("webp") else "jpeg"


def _picture(data: bytes, limit: int) -> Picture:
    with open_picture(data) as image:
        whole = image.convert("RGB")
    kind, found = _kind(), b""
    place = 0
    while place < len(_LADDER):
        found = _coded(whole, kind, *_LADDER[place])
        if len(found) <= limit:
            break
        place += next((down for down in range(1, len(_LADDER) - place) if _expected(len(found), whole, place, down) <= limit), 1)
    src = f"data:image/{kind};base64,{base64.b64encode(found).decode()}"
    return Picture(src=src, width=whole.width, height=whole.height)


def _expected(size: int, image: Image.Image, place: int, down: int) -> float:
    """Return the expected size, in bytes, of a picture some steps down the ladder: proportional to area and quality."""
    (side, quality), (less, worse) = _LADDER[place], _LADDER[place + down]
    longest = max(image.size)
    return size * (min(less, longest) / min(side, longest)) ** 2 * worse / quality


def _coded(image: Image.Image, kind: str, side: int, quality: int) -> bytes:
    if max(image.size) > side:
        image = image.copy()
        image.thumbnail((side, side))
    file = io.BytesIO()
    if kind == "webp":
        image.save(file, "WEBP", quality=quality, method=1)
    else:
        image.save(file, "JPEG", quality=quality, optimize=True)
    return file.getvalue()
