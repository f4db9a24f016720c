"""Labels over toy worlds: the outcome of a state is what the policy makes of it, in a fresh world."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from exact.agents.recalibrate import load
from exact.calibration.collect import committed, judged_nodes, open_source
from exact.calibration.label import label
from exact.environments.toy import ToyWorlds
from exact.environments.toy_agents import ToyPolicy
from exact.environments.toy_worlds import chain, maze
from exact.errors import UsageError
from tests.runs.toys import toy_runner


async def searched(folder: Path, worlds: ToyWorlds):  # type: ignore[no-untyped-def]
    runner = toy_runner(folder, worlds)
    await runner.run()
    return open_source(runner.folder)


async def test_each_drawn_state_gets_the_outcome_of_the_policys_own_way(tmp_path: Path) -> None:
    world = maze()
    source = await searched(tmp_path / "run", ToyWorlds(world))
    found = [
        each async for each in label(source, 12, worlds=lambda task: nullcontext(ToyWorlds(world)), policy=ToyPolicy(world))
    ]  # fmt: skip
    nodes = {node.id: node for _, _, node in judged_nodes(source)}
    assert len({each.node for each in found}) == len(found) == min(12, len(nodes))
    assert not any(each.reason for each in found)
    assert {each.success for each in found} == {True, False}, "some states of the maze are traps"


async def test_a_state_that_is_not_reached_again_has_no_outcome(tmp_path: Path) -> None:
    source = await searched(tmp_path / "run", ToyWorlds(maze()))
    other = chain(3)
    found = [
        each async for each in label(source, 3, worlds=lambda task: nullcontext(ToyWorlds(other)), policy=ToyPolicy(other))
    ]  # fmt: skip
    assert all(each.reason for each in found)


async def test_where_nothing_is_undone_there_are_no_labels(tmp_path: Path) -> None:
    world = maze()
    source = await searched(tmp_path / "run", ToyWorlds(world))
    with pytest.raises(UsageError, match="reset undoes"):
        async for _ in label(
            source, 1, worlds=lambda task: nullcontext(ToyWorlds(world, sealed=False)), policy=ToyPolicy(world)
        ):  # fmt: skip
            raise AssertionError


async def test_committed_states_have_the_benchmarks_verdict(tmp_path: Path) -> None:
    source = await searched(tmp_path / "run", ToyWorlds(maze()))
    judged = committed(source)
    assert judged and all(one.success for one in judged)


@pytest.mark.parametrize("text", ["{", '{"values": [0.5, 0.2], "probabilities": [0, 1]}', '{"values": [], "probabilities": []}'])
def test_a_curve_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError, match="exact calibrate RUN --fit"):
        load(str(tmp_path / "c.json"))
