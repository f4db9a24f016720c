"""Pictures of a benchmark's curves."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from exact.evaluation.output import as_png
from exact.evaluation.plot import HEIGHT, WIDTH, curves


async def test_a_curve_is_drawn_as_a_picture_beside_it(executable: str, tmp_path: Path) -> None:
    svg = tmp_path / "curve_calls.svg"
    svg.write_text(curves({"mcts": [(1.0, 0.5), (4.0, 1.0)]}, x="model calls", title="toy", beside={}), "utf-8")
    made = await as_png(svg)
    picture = Image.open(io.BytesIO(made.read_bytes()))
    assert made == tmp_path / "curve_calls.png" and picture.size == (WIDTH, HEIGHT)
    assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 2, "something is drawn"
