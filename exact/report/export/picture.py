"""The committed path of an attempt as a moving picture: animated WebP, PNG or GIF.

A tree for Graphviz: DOT text, and through its `dot` command SVG, PDF or PNG.
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Literal

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from exact.errors import InfrastructureError, JournalError, UsageError
from exact.machine import Child
from exact.report.export.animation import Frame, path_frames
from exact.report.model.reading import Reading
from exact.report.model.text import one_line
from exact.search.tree import Edge, Node, Tree
from exact.untrusted import open_picture

FORMATS = {".webp": "WEBP", ".png": "PNG", ".apng": "PNG", ".gif": "GIF"}
"""Formats by the suffix of a file name."""
_MILLISECONDS = 1600
"""Time for which each state is shown; the last one is shown twice as long."""
_WIDTH = 960
"""Maximum width of the picture, in pixels."""
_BAND, _TEXT = 30, 15
"""Height of the caption and size of its letters, in pixels."""
_MARK = (214, 40, 40)


def moving_picture(reading: Reading, suffix: str = ".webp") -> bytes:
    """Return the screenshots of the committed path with the actions under them, and a frame around the element that is acted on.

    Raises UsageError for an unknown suffix, and if the attempt has no screenshots.
    """
    if suffix not in FORMATS:
        raise UsageError(f"no moving picture is named {suffix!r}: choose from {', '.join(FORMATS)}")
    frames = [image for frame in path_frames(reading) if (image := _drawn(frame, reading))]
    if not frames:
        raise UsageError("the attempt has no screenshots: run with browser.screenshots on")
    size = max(image.width for image in frames), max(image.height for image in frames)
    shown = [_padded(image, size) for image in frames]
    durations = [_MILLISECONDS] * (len(shown) - 1) + [2 * _MILLISECONDS]
    if len(shown) == 1:
        durations = durations[:1]
    output = io.BytesIO()
    options = {"quality": 80, "method": 3} if FORMATS[suffix] == "WEBP" else {}
    shown[0].save(output, FORMATS[suffix], save_all=True, append_images=shown[1:], duration=durations, loop=0, **options)
    return output.getvalue()


def _drawn(frame: Frame, reading: Reading) -> Image.Image | None:
    """Return a state with its caption; None if its screenshot is missing, with a warning."""
    if not frame.screenshot:
        return None
    try:
        with open_picture(reading.blobs.get(frame.screenshot)) as image:
            whole = image.convert("RGB")
    except (JournalError, UnidentifiedImageError, OSError) as error:
        reading.warnings.append(f"Screenshot {frame.screenshot[:12]} cannot be shown: {error}")
        return None
    draw = ImageDraw.Draw(whole)
    for box in frame.boxes:
        draw.rectangle((box.x - 2, box.y - 2, box.x + box.width + 2, box.y + box.height + 2), outline=_MARK, width=3)
    if whole.width > _WIDTH:
        whole = whole.resize((_WIDTH, round(whole.height * _WIDTH / whole.width)), Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (whole.width, whole.height + _BAND), "white")
    canvas.paste(whole)
    ImageDraw.Draw(canvas).text((8, whole.height + 6), frame.caption, fill="black", font=ImageFont.load_default(_TEXT))
    return canvas


def _padded(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    canvas = Image.new("RGB", size, "white")
    canvas.paste(image)
    return canvas


Format = Literal["svg", "pdf", "png"]
_LABEL = 40
"""Maximum length of an action in a drawing, in characters."""
_SECONDS = 120.0


def dot(tree: Tree, committed: frozenset[int] = frozenset(), *, path: bool = False) -> str:
    """Return a tree in the DOT language: states as boxes with V and N, edges with action, N, Q and P, the committed path in bold.

    committed: ids of the states on that path. path: draw only that path and the states one action away from it. Texts from pages are quoted
    strings without control characters.
    """
    states = [node for node in tree.walk(tree.nodes[0]) if not path or _is_near(node, committed)]
    return (
        "\n".join(
            [
                "digraph search {",
                '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
                *_lines(states, committed),
                "}",
            ]
        )
        + "\n"
    )


async def drawn(text: str, form: Format) -> bytes:
    """Return DOT text as a picture. Raises UsageError if Graphviz is missing and InfrastructureError if it fails."""
    command = shutil.which("dot")
    if command is None:
        raise UsageError("drawing needs Graphviz's program `dot`: install the package graphviz, or write its input: exact export dot RUN")
    pipe = asyncio.subprocess.PIPE
    process = await Child.start(command, f"-T{form}", stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(_SECONDS):
            picture, said = await process.communicate(text.encode())
    finally:
        await process.end()
    if process.returncode:
        raise InfrastructureError(f"Graphviz failed: {one_line(said.decode(errors='replace'))}")
    return picture


def _is_near(node: Node, committed: frozenset[int]) -> bool:
    return node.id in committed or (node.parent is not None and node.parent.id in committed)


def _lines(states: Sequence[Node], committed: frozenset[int]) -> Iterator[str]:
    shown = {node.id for node in states}
    for node in states:
        value = "" if node.value is None else f"\nV {node.value:.2f}"
        label = f"{node.id}{value}\nN {node.visits}"
        style = "bold" if node.id in committed else "dashed" if node.closed else "solid"
        ends = ", peripheries=2" if node.terminated else ""
        yield f"  n{node.id} [label={_quoted(label)}, style={style}{ends}];"
    for node in states:
        for edge in node.edges:
            if edge.child is not None and edge.child.parent is node and edge.child.id in shown:
                yield f"  n{node.id} -> n{edge.child.id} [label={_quoted(_edge(edge))}{_weight(node, edge, committed)}];"


def _edge(edge: Edge) -> str:
    value = "" if edge.value is None else f" Q {edge.value:.2f}"
    return f"{one_line(str(edge.action))[:_LABEL]}\nN {edge.visits}{value} P {edge.prior:.2f}"


def _weight(node: Node, edge: Edge, committed: frozenset[int]) -> str:
    on = edge.child is not None and edge.child.id in committed and node.id in committed
    return ", penwidth=3" if on else ""


def _quoted(text: str) -> str:
    """Return text as a quoted string of DOT, in which only a backslash before `n` is an escape (a line end)."""
    return json.dumps(text.replace("\\", "/"), ensure_ascii=False)
