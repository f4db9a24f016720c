"""What is made of results."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

from PIL import Image

from exact.evaluation.folder import Result
from exact.evaluation.output import HEIGHT, WIDTH, as_png, curves, keep_written, render_page, write_outputs
from exact.evaluation.plan import Plan
from exact.evaluation.summary import Reward
from exact.task import Task
from tests.evaluation.toys import run, toy_bench


def test_the_page_shows_the_rewards_that_the_table_shows() -> None:
    plan = Plan(suite="toy", agents=("mcts",), tasks=(Task(id="a?seed=0", instruction=""), Task(id="b?seed=0", instruction="")), budget={})
    found = [Result(task=task.id, seed=0, agent="mcts", status="scored", score=1.0, raw=0.5) for task in plan.tasks]
    rewards: dict[str, Reward] = {"raw <reward>": lambda raw: raw}
    assert "raw &lt;reward&gt;" in render_page(plan, found, "", rewards) and "0.500" in render_page(plan, found, "", rewards)
    assert "raw" not in render_page(plan, found, "")


async def test_the_page_is_written_while_a_benchmark_runs_and_reads_itself_again_until_its_end(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench")
    await run(folder)
    writing = asyncio.ensure_future(keep_written(folder, every=0.01))
    page = folder.path / "index.html"
    async with asyncio.timeout(60):
        while not page.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    writing.cancel()
    await asyncio.wait({writing})
    assert '<meta http-equiv="refresh" content="1">' in page.read_text()
    write_outputs(folder)
    assert 'http-equiv="refresh"' not in page.read_text()


async def test_a_curve_is_drawn_as_a_picture_beside_it(executable: str, tmp_path: Path) -> None:
    svg = tmp_path / "curve_calls.svg"
    svg.write_text(curves({"mcts": [(1.0, 0.5), (4.0, 1.0)]}, x="model calls", title="toy", published={}), "utf-8")
    made = await as_png(svg)
    picture = Image.open(io.BytesIO(made.read_bytes()))
    assert made == tmp_path / "curve_calls.png" and picture.size == (WIDTH, HEIGHT)
    assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 2, "something is drawn"
