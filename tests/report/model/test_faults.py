"""What a reader is told first: what was written, what was wasted, where it went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from exact.config import load_recorded
from exact.environments.base import SideEffect
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.models.base import Sampling, Usage
from exact.report.model import data
from exact.report.model.head import costs, waste
from exact.report.model.reading import Growth, Reading
from exact.report.model.routes import writes, wrong
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from exact.search.base import Failure
from tests.report.journals import SHOP, Recorder, new_run, shop_run
from tests.runs.toys import config, toy_runner


def reading_of(run: RunFolder) -> Reading:
    return Reading(run.task_folder(run.manifest.tasks[0]) / "journal.jsonl", load_recorded(run.path), run.blobs)


def step(number: int, value: float | None, came: float | None, *, trouble: bool = False) -> data.CommittedStep:
    return data.CommittedStep(
        number=number, node=number, child=None, words=f"go {number}", name=f"go {number}", key=str(number), rationale="", why="",
        seconds=0.0, money=0.0, value=value, came=came, outcome="refused by the real environment", trouble=trouble,
    )  # fmt: skip


READING: Reading = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("steps", "ending", "found"),
    [
        ([step(1, 0.9, 0.9), step(2, 0.9, 0.4), step(3, 0.4, 0.2)], "unsolved", 2),
        ([step(1, 0.9, 0.2), step(2, 0.5, None, trouble=True)], "unsolved", 2),
        ([step(1, 0.9, 0.85)], "unsolved", None),
        ([step(1, None, 0.1)], "judged", None),
        ([step(1, 0.9, 0.1)], "solved", None),
        ([], "failed", None),
    ],
)
def test_the_step_that_went_wrong_is_the_one_that_broke_or_fell_furthest(
    steps: list[data.CommittedStep], ending: data.Ending, found: int | None
) -> None:
    said = wrong(READING, tuple(steps), ending)
    assert (said.step if said else None) == found


def test_committed_writes_were_sent_and_blocked_ones_were_not(tmp_path: Path) -> None:
    reading = reading_of(shop_run(tmp_path / "run"))
    found = writes(reading)
    (write,) = found.committed
    assert write.request == "POST http://shop.test/pay (201)" and write.fate == "It stands." and not write.undone
    assert found.simulated == () and len(found.blocked) == 2 and found.blocked[0].request == "POST http://shop.test/basket"


def committed(reading: Reading, effect: SideEffect) -> Reading:
    """Return the reading with this side effect in place of the last commit's."""
    decided, commit, root = reading.steps[-1]
    assert commit is not None
    reading.steps[-1] = (decided, msgspec.structs.replace(commit, effects=(effect,)), root)
    return reading


@pytest.mark.parametrize(
    ("reach", "outside", "contained", "unknown"),
    [("outside", 1, 0, False), ("sandbox", 0, 1, False), ("recording", 0, 1, False), ("", 0, 0, True)],
)
def test_only_what_left_the_sandbox_was_written_outside(
    tmp_path: Path, reach: Literal["", "sandbox", "recording", "outside"], outside: int, contained: int, unknown: bool
) -> None:
    effect = SideEffect(kind="request", method="POST", url="http://shop.test/pay", fields=("card", "name"), reach=reach)
    found = writes(committed(reading_of(shop_run(tmp_path / "run")), effect))
    assert (found.outside, len(found.contained), found.unknown) == (outside, contained, unknown)
    (write,) = found.contained or found.committed
    assert write.fields == ("card", "name") and write.undone is bool(contained)


@pytest.mark.parametrize(("speculation", "undone"), [("rollback", True), ("free", False)])
def test_a_simulated_write_was_undone_according_to_the_speculation_setting(tmp_path: Path, speculation: str, undone: bool) -> None:
    reading = reading_of(shop_run(tmp_path / "run"))
    browser = msgspec.structs.replace(reading.config.browser, speculation=speculation)
    reading.config = msgspec.structs.replace(reading.config, browser=browser)
    way, acted = next((way, acted) for way, acted in reading.state.search.acted.items() if not acted.refused)
    reading.state.search.acted[way] = msgspec.structs.replace(
        acted, effects=(SideEffect(kind="request", method="PUT", url="http://shop.test/x"),)
    )
    (write,) = writes(reading).simulated
    assert write.undone is undone and ("NOT undone" in write.fate) is not undone


def test_calls_without_an_answer_are_marked(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path / "run", "shop", iterations=4)
    recorder = Recorder(run, run.manifest.tasks[0], settings, SHOP, screenshots=False)
    recorder.begin()
    recorder.ask()
    call = ev.Called(
        key="x", role="value", node=0, attempt=0, prompt="p", model="m", sampling=Sampling(), request="", answer="",
        usage=Usage(input_tokens=10, output_tokens=5, cost=0.5), selection=0,
    )  # fmt: skip
    recorder.write(call)
    assert costs(reading_of(run))[0].unused == 0  # it is still under way
    recorder.write(ev.Told(selection=0, result=Failure(kind="model", reason="no")))
    recorder.journal.close()
    (cost,) = costs(reading_of(run))
    assert (cost.calls, cost.unused, cost.unused_money, cost.money) == (1, 1, 0.5, 0.5)


def test_actions_that_were_never_tried_are_counted(tmp_path: Path) -> None:
    reading = reading_of(shop_run(tmp_path / "run"))
    edges = [edge for node in reading.state.search.tree.nodes for edge in node.edges]
    untried = sum(edge.child is None and not edge.closed for edge in edges)
    said = list(waste(reading))
    assert any(f"{untried} of {len(edges)} proposed" in each for each in said) if untried else not said


@pytest.mark.parametrize("algorithm", ["mcts", "gumbel", "best_first", "beam"])
async def test_the_figures_of_every_action_end_where_the_tree_does(tmp_path: Path, algorithm: str) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), config(search={"algorithm": algorithm, "iterations": 20, "k": 4}))
    await runner.run()
    reading = reading_of(runner.folder)
    below = {node.id for node in reading.state.search.tree.walk(reading.state.search.tree.nodes[0])}
    for node in reading.state.search.tree.nodes:
        for index, edge in enumerate(node.edges):
            if edge.visits and node.id in below:
                assert reading.growth.edges[node.id, index][-2] == edge.visits
    iterations = [moment.iteration for moment in reading.growth.moments]
    assert iterations == sorted(set(iterations)) and iterations[-1] == reading.state.search.tree.iterations


def test_a_long_timeline_is_thinned_but_keeps_commits_and_the_end() -> None:
    growth = Growth()
    growth.moments = [data.TimelinePoint(t=0.0, iteration=i, root=0, nodes=1, step=1 if i == 777 else None) for i in range(5000)]
    kept = [moment.iteration for moment in growth.timeline()]
    assert len(kept) <= 602 and 777 in kept and kept[-1] == 4999


async def test_a_journal_that_grows_reads_as_one_that_is_whole(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), config(search={"algorithm": "mcts", "iterations": 20, "k": 4}))
    await runner.run()
    path = runner.folder.task_folder(runner.folder.manifest.tasks[0]) / "journal.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:7])
    reading = reading_of(runner.folder)
    for end in range(6, len(lines) + 1, 9):
        path.write_bytes(b"".join(lines[:end]) + (lines[end][:3] if end < len(lines) else b""))
        reading.more()
    path.write_bytes(whole)
    reading.more()
    once = reading_of(runner.folder)
    assert reading.growth.moments == once.growth.moments and reading.moves == once.moves
    assert len(list(read_journal(path))) == len(lines)


def test_a_reader_is_told_that_limits_of_time_were_stretched(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path / "run", "shop/tea?seed=1")
    recorder = Recorder(run, run.manifest.tasks[0], settings, SHOP)
    recorder.begin()
    recorder.write(ev.Ended(reason="done", answer=""))
    recorder.write(ev.Finished(status="judged", stretched=3.2))
    recorder.journal.close()
    (said,) = reading_of(run).warnings
    assert "busy" in said and "3.2 times" in said
