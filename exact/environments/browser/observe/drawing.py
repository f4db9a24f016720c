"""The pictures of two states with equal text: a perceptual comparison of their screenshots.

A screenshot is compared with the one in which the text was seen first on the way. Only a lasting difference that the action made counts.
Left out are small differences (anti-aliasing), elements under the pointer or with the focus (hover colours, carets), parts that the text
tells or masks (clocks), and changes of the page by itself: running animations, and all that changes while a page is watched for a second,
once for each address.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from exact.observation import Box

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Cells = NDArray[np.uint8]
    """Mean colours of the cells of a screenshot: rows by columns by 3."""
    Marks = NDArray[np.bool_]
    """One flag for each cell."""
_CELL = 8
"""Screenshot pixels on a side of a cell."""
_DIFFERENT = 20
"""Difference of a mean colour, of 255, from which a cell counts as changed."""
_AROUND = 8.0
"""CSS pixels around a box that are left out with it: outlines and shadows."""
_LOOKS = 4
"""Screenshots with which a page is watched for changes by itself."""
_MOST_STATES = 512


class DrawnState(NamedTuple):
    """The pictures of the present text on the way of one environment."""

    text: str
    """Digest of the text."""
    entered: bytes
    """Screenshot in which the text was seen first."""
    seen: bytes
    """Last screenshot."""
    drawn: str = ""
    """Digest of the drawing since the first; empty if nothing was drawn."""

    @property
    def fingerprint(self) -> str:
        """The digest of text and picture."""
        return hashlib.sha256(f"{self.text} {self.drawn}".encode()).hexdigest() if self.drawn else self.text


class Look(NamedTuple):
    """Questions of a comparison to the page, which it asks only if screenshots differ."""

    address: str
    scale: float
    """Screenshot pixels for each CSS pixel."""
    restless: Callable[[], Awaitable[Sequence[Box]]]
    """Returns the boxes of elements that do not count."""
    again: Callable[[], Awaitable[bytes]] | None
    """Waits a moment and takes another screenshot. None: the page's time stands still."""


@dataclass
class PictureMemory:
    """Knowledge of pictures that environments opened together have gained."""

    known: OrderedDict[str, list[tuple[Cells, str]]] = field(default_factory=OrderedDict)
    """Pictures and their digests, by the digest of the text."""
    restless: dict[str, Marks] = field(default_factory=dict)
    """Cells that change by themselves, by the address of the page that was watched."""

    def digest(self, text: str, cells: Cells, changed: Marks, ignored: Marks) -> str:
        """Return the digest of a picture: that of a known one that looks the same, otherwise a new one of the changed parts."""
        import numpy as np

        known = self.known.setdefault(text, [])
        self.known.move_to_end(text)
        if len(self.known) > _MOST_STATES:
            self.known.popitem(last=False)
        for other, digest in known:
            if not (differences(cells, other) & ~ignored).any():
                return digest
        rough = np.where(changed[..., None], cells >> 5, 255).astype(np.uint8)
        known.append((cells, hashlib.sha256(rough.tobytes()).hexdigest()))
        return known[-1][1]


async def look_at(before: DrawnState | None, text: str, screenshot: bytes, look: Look, memory: PictureMemory) -> DrawnState:
    """Return the state after a screenshot, given the one before."""
    if before is None or before.text != text:
        return DrawnState(text, screenshot, screenshot)
    if screenshot in (before.seen, before.entered):
        return before._replace(seen=screenshot, drawn=before.drawn if screenshot == before.seen else "")
    entered, now = await asyncio.gather(asyncio.to_thread(cells_of, before.entered), asyncio.to_thread(cells_of, screenshot))
    import numpy as np  # imported by a thread by now

    changed = differences(entered, now)
    ignored = np.zeros_like(changed)
    if changed.any():
        ignored = covered(await look.restless(), now.shape, look.scale)
    if (changed & ~ignored).any():
        ignored |= await _restless(now, look, memory)
    lasting = changed & ~ignored
    drawn = memory.digest(text, now, lasting, ignored) if lasting.any() else ""
    return DrawnState(text, before.entered, screenshot, drawn)


async def _restless(now: Cells, look: Look, memory: PictureMemory) -> Marks:
    """Return the cells that change by themselves, after watching a page that was not watched yet."""
    import numpy as np

    known = memory.restless.get(look.address)
    if known is not None and known.shape == now.shape[:2]:
        return known
    found = np.zeros(now.shape[:2], dtype=np.bool_)
    for _ in range(_LOOKS if look.again else 0):
        assert look.again is not None
        found |= differences(now, await asyncio.to_thread(cells_of, await look.again()))
    memory.restless[look.address] = _grown(found)
    return memory.restless[look.address]


def cells_of(screenshot: bytes) -> Cells:
    """Return the mean colours of the cells of a PNG."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(screenshot)) as image:
        return np.asarray(image.convert("RGB").reduce(_CELL))


def differences(one: Cells, other: Cells) -> Marks:
    """Return which cells of two screenshots look different; all if their sizes differ."""
    import numpy as np

    if one.shape != other.shape:
        return np.ones(other.shape[:2], dtype=np.bool_)
    return np.asarray(np.abs(one.astype(np.int16) - other.astype(np.int16)).max(axis=2) >= _DIFFERENT)


def covered(boxes: Sequence[Box], shape: Sequence[int], scale: float) -> Marks:
    """Return which cells of a screenshot of that shape are in boxes of CSS pixels, or close around them."""
    import numpy as np

    marks = np.zeros(tuple(shape[:2]), dtype=np.bool_)
    for box in boxes:
        left, top = (max(0, int((at - _AROUND) * scale // _CELL)) for at in (box.x, box.y))
        right, bottom = (int((at + _AROUND) * scale // _CELL) + 1 for at in (box.x + box.width, box.y + box.height))
        marks[top : max(top, bottom), left : max(left, right)] = True
    return marks


def _grown(marks: Marks) -> Marks:
    """Return marks with the cells beside them, which something that moves enters next."""
    import numpy as np

    wide = np.pad(marks, 1)
    rows, columns = marks.shape
    return np.asarray(np.logical_or.reduce([wide[y : y + rows, x : x + columns] for y in range(3) for x in range(3)]))
