"""A journal and its blobs as the data of a report.

Screenshots small enough for a page: WebP (JPEG if Pillow has no WebP), equal ones once.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable

from PIL import Image, ImageChops, UnidentifiedImageError, features

from exact.config import Config, load_recorded
from exact.errors import JournalError
from exact.observation import Box
from exact.report.model import data
from exact.report.model.data import Picture
from exact.report.model.head import head, people
from exact.report.model.nodes import nodes, reflection_record, remembered
from exact.report.model.reading import Reading
from exact.report.model.routes import steps, trouble
from exact.report.model.text import Texts, one_line
from exact.runs.journal.spending import limits
from exact.runs.journal.store import Blobs, RunFolder
from exact.task import Task
from exact.untrusted import open_picture

PICTURES, TEXTS = 9_000_000, 3_000_000
"""Bytes of the page that screenshots and long texts may take together, respectively."""
MARKED = 400
"""Maximum number of marked elements of one state."""


def report(
    run: RunFolder, task: Task, *, screenshots: bool = True, room: tuple[int, int] = (PICTURES, TEXTS), config: Config | None = None
) -> data.Report:
    """Return the report of a task's journal, as far as it goes.

    room: bytes of the page that screenshots and long texts may take. Raises UsageError if the run's configuration cannot be read.
    """
    config = config or load_recorded(run.path)
    reading = Reading(run.task_folder(task) / "journal.jsonl", config, run.blobs)
    texts = Texts()
    tree = nodes(reading, texts)
    shots = pictures((node.picture for node in tree), run.blobs, room[0], reading.warnings) if screenshots else {}
    committed = steps(reading)
    oracle = any(line.oracle for line in run.results() if line.task == task.id)
    top = head(reading, task, committed, oracle=oracle)
    return data.Report(
        head=top,
        nodes=tree,
        steps=committed,
        people=people(reading),
        trouble=trouble(reading),
        reflections=tuple(reflection_record(reflected.reflection) for reflected in reading.state.live.reflected),
        remembered=remembered(reading, top.headline),
        timeline=reading.growth.timeline(),
        limits=caps(reading),
        marks=marks(reading, tree) if shots else {},
        texts=texts.within(room[1]),
        pictures=shots,
    )


def caps(reading: Reading) -> dict[str, float]:
    """Return the limits of the task by kind."""
    found = {**limits(reading.config.limits), "seconds": reading.config.limits.seconds}
    return {kind: float(limit) for kind, limit in found.items() if limit is not None}


def marks(reading: Reading, tree: Iterable[data.TreeState]) -> dict[int, tuple[data.Mark, ...]]:
    """Return the boxes of all elements, once for each observation."""
    found: dict[int, tuple[data.Mark, ...]] = {}
    for state in tree:
        seen = reading.seen(reading.state.search.tree.nodes[state.id])
        if seen is not None and state.observation is not None and state.observation not in found:
            boxed = [_mark(element.id, element.box) for element in seen.elements[:MARKED] if element.box is not None]
            found[state.observation] = tuple(boxed)
    return {number: each for number, each in found.items() if each}


def _mark(id: str, box: Box) -> data.Mark:
    return one_line(id, 20), round(box.x), round(box.y), round(box.width), round(box.height)


THUMB = (256, 40)
"""Longest side in pixels and quality of a small picture."""
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
    kind = _kind()
    return _coded(page_of(data), kind, *_LADDER[0]), f"image/{kind}"


MARGIN, LEAST = 2, 0.3
"""Pixels of ground that stay beside the page; and the least share of each side of a screenshot that is shown."""


def page_of(data: bytes) -> Image.Image:
    """Return a screenshot without the empty ground at its right and at its bottom. Raises UnidentifiedImageError, OSError."""
    with open_picture(data) as image:
        whole = image.convert("RGB")
    ground = Image.new("RGB", whole.size, whole.getpixel((whole.width - 1, whole.height - 1)))
    _, _, *ends = ImageChops.difference(whole, ground).getbbox() or (0, 0, *whole.size)
    right, bottom = (min(side, max(end + MARGIN, round(LEAST * side))) for side, end in zip(whole.size, ends, strict=True))
    return whole.crop((0, 0, right, bottom))


def _kind() -> str:
    return "webp" if features.check("webp") else "jpeg"


def _picture(data: bytes, limit: int) -> Picture:
    whole = page_of(data)
    kind, found = _kind(), b""
    place = 0
    while place < len(_LADDER):
        found = _coded(whole, kind, *_LADDER[place])
        if len(found) <= limit:
            break
        place += next((down for down in range(1, len(_LADDER) - place) if _expected(len(found), whole, place, down) <= limit), 1)
    return Picture(src=_source(found, kind), width=whole.width, height=whole.height)


def thumb(data: bytes) -> str:
    """Return a screenshot as a small picture of its page, as a `data:` URL. Raises UnidentifiedImageError, OSError."""
    return _source(_coded(page_of(data), kind := _kind(), *THUMB), kind)


def _source(coded: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(coded).decode()}"


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
