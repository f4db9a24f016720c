"""Labels over toy environments: the outcome of a state is what the policy makes of it, in a fresh environment."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest

from exact.action import ActionSpace
from exact.agents.recalibrate import load_curve
from exact.calibration.collect import committed, evaluated_nodes, label, open_source, value_function_name
from exact.context import Context, Proposal
from exact.environments.toy.agents import ToyPolicy
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyGraph
from exact.environments.toy.known import chain, maze
from exact.errors import UsageError
from exact.task import Task
from tests.runs.toys import config, toy_runner


def opens(environment: ToyGraph) -> Callable[[Task], AbstractAsyncContextManager[ToyFactory]]:
    return lambda task: nullcontext(ToyFactory(environment))


async def searched(folder: Path, environments: ToyFactory, **sections: dict[str, object]):  # type: ignore[no-untyped-def]
    runner = toy_runner(folder, environments, config(**sections))
    await runner.run()
    return open_source(runner.folder)


async def test_each_drawn_state_gets_the_outcome_of_the_policys_own_way(tmp_path: Path) -> None:
    environment = maze()
    source = await searched(tmp_path / "run", ToyFactory(environment))
    found = [
        each async for each in label(source, 12, environments=opens(environment), policy=ToyPolicy(environment))
    ]  # fmt: skip
    nodes = {node.id: node for _, _, node in evaluated_nodes(source)}
    assert len({each.node for each in found}) == len(found) == min(12, len(nodes))
    assert not any(each.reason for each in found)
    assert {each.success for each in found} == {True, False}, "some states of the maze are traps"


async def test_a_state_that_is_not_reached_again_has_no_outcome(tmp_path: Path) -> None:
    source = await searched(tmp_path / "run", ToyFactory(maze()))
    other = chain(3)
    found = [
        each async for each in label(source, 3, environments=lambda task: nullcontext(ToyFactory(other)), policy=ToyPolicy(other))
    ]  # fmt: skip
    assert all(each.reason for each in found)


async def test_states_with_a_label_are_not_drawn_again(tmp_path: Path) -> None:
    environment = maze()
    source = await searched(tmp_path / "run", ToyFactory(environment))
    every = {(task.id, node.id) for task, _, node in evaluated_nodes(source)}
    known = set(sorted(every)[2:])
    found = [
        each
        async for each in label(source, 9, environments=opens(environment), policy=ToyPolicy(environment), known=known)
    ]  # fmt: skip
    assert {(each.task, each.node) for each in found} == every - known


async def test_the_policy_sees_how_many_actions_the_run_would_have_left(tmp_path: Path) -> None:
    environment, told = maze(), []

    class Policy(ToyPolicy):
        async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
            told.append((len(context.history), context.steps_left))
            return await super().propose(context, actions, k)

    source = await searched(tmp_path / "run", ToyFactory(environment), limits={"actions": 8})
    async for _ in label(source, 12, environments=opens(environment), policy=Policy(environment)):
        pass
    assert len({done for done, _ in told}) > 2 and all(left == 8 - done for done, left in told)


async def test_where_nothing_is_undone_there_are_no_labels(tmp_path: Path) -> None:
    environment = maze()
    source = await searched(tmp_path / "run", ToyFactory(environment))
    with pytest.raises(UsageError, match="reset undoes"):
        async for _ in label(
            source, 1, environments=lambda task: nullcontext(ToyFactory(environment, isolated=False)), policy=ToyPolicy(environment)
        ):  # fmt: skip
            raise AssertionError


async def test_committed_states_have_the_benchmarks_score(tmp_path: Path) -> None:
    source = await searched(tmp_path / "run", ToyFactory(maze()))
    judged = committed(source)
    assert judged and all(one.success for one in judged)


def test_value_functions_that_mean_other_things_by_a_grade_have_other_names() -> None:
    models: dict[str, object] = {"policy": {"model": "m"}}
    llm, calibrated = {"kind": "llm"}, {"kind": "llm", "calibration": "curve.json"}
    values: list[dict[str, object]] = [llm, {"kind": "llm", "grades": "web"}, calibrated, {"kind": "ensemble", "members": [llm]}]
    values += [{"kind": "ensemble", "members": [calibrated]}]
    names = [value_function_name(config(value=value, models=models)) for value in values]
    assert names[0] == "llm m" and len(set(names)) == len(names)


@pytest.mark.parametrize("text", ["{", '{"values": [0.5, 0.2], "probabilities": [0, 1]}', '{"values": [], "probabilities": []}'])
def test_a_curve_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError, match="exact train calibration RUN --fit"):
        load_curve(str(tmp_path / "c.json"))
