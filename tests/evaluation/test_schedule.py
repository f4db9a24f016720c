"""The schedule runs all attempts concurrently, in order and within limits, and selects none by its score."""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from exact.environments.toy.environment import Operation
from exact.environments.toy.factory import Faults, ToyFactory, toy_task
from exact.errors import EnvironmentFailure, ExactError, InfrastructureError, JournalError, ModelError, UncertainCommit, UsageError
from exact.evaluation import schedule as schedule_module
from exact.evaluation.engine import Hung
from exact.evaluation.folder import BenchFolder, Result
from exact.evaluation.local import LocalEngine
from exact.evaluation.plan import Plan
from exact.evaluation.schedule import Schedule, _Job
from exact.runs.journal.store import ResultLine
from exact.task import Task
from tests.evaluation.toys import WORLD, run, settings, toy_bench, toy_engine


class Scripted:
    """An engine whose attempts end as scripted, one after the other."""

    def __init__(self, *endings: ResultLine | Exception, turns: int = 3) -> None:
        self.endings, self.turns, self.most, self.order = list(endings), turns, 0, list[tuple[str, str]]()
        self.running: list[str] = []
        self.together: set[tuple[str, ...]] = set()
        self.kept: Callable[[str, Task], bool] = lambda agent, task: False

    async def persists(self, agent: str, task: Task) -> bool:
        return self.kept(agent, task)

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        self.order.append((agent, task.id))
        self.running.append(agent)
        self.most = max(self.most, len(self.running))
        self.together.add(tuple(self.running))
        assert agent != "rmcts" or self.running.count(agent) == 1
        for _ in range(self.turns * (3 if task.seed == 0 else 1)):
            await asyncio.sleep(0)
        self.running.remove(agent)
        ending = self.endings.pop(0) if self.endings else line(1.0)
        if isinstance(ending, Exception):
            raise ending
        return ResultLine(**{**{name: getattr(ending, name) for name in ResultLine.__struct_fields__}, "task": task.id, "agent": agent})

    async def replay(self, agent: str, task: Task) -> object:
        raise AssertionError("nothing was promoted")


def line(score: float | None, status: str = "scored", reason: str = "") -> ResultLine:
    return ResultLine(task="", seed=0, agent="", status=status, score=score, reason=reason)


async def scripted(folder: BenchFolder, engine: Scripted, **more: object) -> list[Result]:
    return await Schedule(folder=folder, engine=engine, parallel=4, **more).run()  # type: ignore[arg-type]


async def test_every_agent_attempts_every_task_and_results_follow_the_order_of_the_plan(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench")
    await run(folder)
    assert [(each.agent, each.task) for each in folder.results()] == [(agent, task.id) for agent, task in folder.plan.pairs]
    assert all(each.status == "scored" for each in folder.results()) and len(folder.attempts()) == 6


async def test_results_are_flushed_in_order_though_attempts_end_in_another(tmp_path: Path) -> None:
    folder, seen = toy_bench(tmp_path / "bench"), []

    def finished(result: Result, done: int, of: int) -> None:
        seen.append([each.task for each in folder.results()])

    await scripted(folder, engine := Scripted(), finished=finished)
    final = [each.task for each in folder.results()]
    assert engine.most == 4 and [] in seen, "the first to end was not the first of the plan"
    assert all(each == final[: len(each)] for each in seen)


@pytest.mark.parametrize("error", [ModelError("no answer"), EnvironmentFailure("no page"), InfrastructureError("a node died"), Hung(9.0)])
async def test_an_infrastructure_failure_is_rerun_and_both_attempts_are_recorded(tmp_path: Path, error: InfrastructureError) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1)
    (result,) = await scripted(folder, Scripted(error, line(0.0)))
    assert (result.score, result.attempts) == (0.0, 2)
    told = [(each.number, each.status, each.reason, each.missing) for each in folder.attempts()]
    assert told == [(1, "failed", str(error), error.missing), (2, "scored", "", "")]


async def test_an_attempt_that_may_have_committed_is_not_rerun(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1)
    (result,) = await scripted(folder, engine := Scripted(UncertainCommit("a crash in a real step")))
    assert (result.status, result.attempts, len(engine.order)) == ("failed", 1, 1)


async def test_reruns_are_bounded_and_a_failure_has_no_score(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1)
    (result,) = await scripted(folder, engine := Scripted(*[line(None, "failed", "site down")] * 9))
    assert len(engine.order) == 2 and (result.status, result.score, result.reason) == ("failed", None, "site down")
    assert result.attempts == 2 and folder.gather() == {("mcts", result.task): result}, "the table counts the reruns that were made"


async def test_a_hung_attempt_is_rerun_once_for_any_number_of_reruns(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1, reruns=3)
    (result,) = await scripted(folder, engine := Scripted(ModelError("out"), *[Hung(9.0)] * 9))
    assert (result.status, result.attempts, len(engine.order)) == ("failed", 3, 3)


async def test_a_score_is_never_tried_for_again(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=2)
    await scripted(folder, engine := Scripted(line(0.0), line(0.0)))
    await scripted(folder, engine)
    assert len(engine.order) == 2, "no best-of"


async def test_a_failed_attempt_is_rerun_when_the_benchmark_is_resumed(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=2, reruns=0)
    await scripted(folder, Scripted(line(None, "failed"), line(1.0)))
    results = await scripted(folder, engine := Scripted(line(1.0)))
    assert len(engine.order) == 1 and sorted(each.attempts for each in results) == [1, 2]
    assert all(each.status == "scored" for each in folder.results())


async def test_an_error_of_an_agent_ends_its_attempt_alone_and_its_traceback_is_logged(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=3)
    results = await scripted(folder, Scripted(ZeroDivisionError("by nothing")))
    assert sorted(each.status for each in results) == ["failed", "scored", "scored"]
    assert "ZeroDivisionError: by nothing" in (folder.path / "errors.log").read_text()


@pytest.mark.parametrize("error", [UsageError("no key"), JournalError("the disk is full")])
async def test_a_mistake_of_the_user_and_a_journal_that_is_not_written_end_it_all(tmp_path: Path, error: ExactError) -> None:
    with pytest.raises(type(error), match=str(error)):
        await scripted(toy_bench(tmp_path / "bench"), Scripted(error))


async def test_an_agent_that_remembers_attempts_one_task_after_the_other_in_the_order_of_the_plan(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react"), settings("rmcts"), seeds=5)
    await scripted(folder, engine := Scripted(), rounds={"rmcts": 1})
    assert engine.most > 1
    assert [task for agent, task in engine.order if agent == "rmcts"] == [task.id for task in folder.plan.tasks]


async def test_attempts_on_a_site_that_keeps_what_is_done_go_one_at_a_time_beside_all_others(tmp_path: Path) -> None:
    engine, said = Scripted(), list[str]()
    engine.kept = lambda agent, task: agent != "isolated"
    folder = toy_bench(tmp_path / "bench", settings("one"), settings("other"), settings("isolated"), seeds=6)
    results = await scripted(folder, engine, notify=said.append)
    assert len(results) == 18 and engine.most == 4
    assert (
        all(len(each) - each.count("isolated") <= 1 for each in engine.together)
        and ("one", "isolated", "isolated", "isolated") in engine.together
    )
    assert len(said) == 1 and "run one at a time" in said[0]


async def test_one_attempt_after_the_other_needs_no_question(tmp_path: Path) -> None:
    engine = Scripted()
    engine.kept = lambda agent, task: pytest.fail("nobody overlaps")
    await Schedule(folder=toy_bench(tmp_path / "bench"), engine=engine, parallel=1).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [EnvironmentFailure("the site does not start"), ZeroDivisionError("by nothing")])
async def test_attempts_whose_environments_do_not_open_tell_so_themselves(tmp_path: Path, error: Exception) -> None:
    def broken(agent: str, task: Task) -> bool:
        raise error

    engine = Scripted()
    engine.kept = broken
    results = await scripted(toy_bench(tmp_path / "bench"), engine)
    assert len(results) == 6 and engine.most == 1, "nobody knows whether they may overlap"


@pytest.mark.parametrize(("isolated", "most"), [(True, 3), (False, 1)])
async def test_no_site_is_reset_under_an_attempt(tmp_path: Path, isolated: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    running, seen, whole = [0], [0], LocalEngine.attempt

    async def attempt(self: LocalEngine, agent: str, task: Task) -> ResultLine:
        running[0] += 1
        seen[0] = max(seen[0], running[0])
        try:
            return await whole(self, agent, task)
        finally:
            running[0] -= 1

    monkeypatch.setattr(LocalEngine, "attempt", attempt)
    await run(toy_bench(tmp_path / "bench"), ToyFactory(WORLD, isolated=isolated), parallel=3)
    assert seen[0] == most


async def test_no_attempt_begins_where_there_is_no_room_and_one_always_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def fits(self, running: int) -> bool:
            return False

    monkeypatch.setattr(schedule_module, "LOOK_AGAIN", 0.001)
    await scripted(toy_bench(tmp_path / "bench"), engine := Scripted(), capacity=Full())
    assert engine.most == 1 and len(engine.order) == 6


async def test_a_hung_attempt_is_killed_with_its_environment_and_rerun_once(tmp_path: Path) -> None:
    hanging = [True]

    async def wait(operation: Operation) -> None:
        if operation == "step" and hanging and hanging.pop():
            await asyncio.Event().wait()

    environments = ToyFactory(WORLD, wait=wait)
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=2)
    await run(folder, environments, hang=0.5)
    assert [each.attempts for each in folder.results()].count(2) == 1 and all(each.status == "scored" for each in folder.results())
    assert [(each.number, each.hung) for each in folder.attempts() if each.hung] == [(1, True)]
    assert environments.counts.live == 0, "what hung was closed too"


async def test_environments_that_break_are_replaced_and_attempts_come_to_their_end(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=4, reruns=9)
    await run(folder, ToyFactory(WORLD, fidelity="replay", faults=Faults(fail_every=9)))
    assert all(each.status == "scored" for each in folder.results())


async def test_an_attempt_whose_environment_breaks_is_listed_in_attempts_each_time(tmp_path: Path) -> None:
    breaking = ["once", "twice", "thrice"]

    async def wait(operation: Operation) -> None:
        if operation == "reset" and breaking:
            raise EnvironmentFailure(f"the environment is gone: {breaking.pop(0)}")

    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=2, reruns=3)
    await run(folder, ToyFactory(WORLD, wait=wait), parallel=1)
    assert [each.reason for each in folder.attempts() if each.status == "failed"] == [
        "the environment is gone: once", "the environment is gone: twice", "the environment is gone: thrice"
    ]  # fmt: skip
    assert {each.task: each.attempts for each in folder.results()} == Counter(each.task for each in folder.attempts())
    assert all(each.status == "scored" for each in folder.results())


async def test_an_attempt_whose_environment_broke_in_a_step_that_may_have_written_is_not_rerun(tmp_path: Path) -> None:
    steps = 0

    async def wait(operation: Operation) -> None:
        nonlocal steps
        steps += operation == "step"
        if steps == 2:
            raise EnvironmentFailure("the site hung up")

    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=1, reruns=3)
    await run(folder, ToyFactory(WORLD, isolated=False, wait=wait))
    (attempt,) = folder.attempts()
    assert attempt.status == "failed" and "(the site hung up): look at the site" in attempt.reason


async def test_an_attempt_reports_what_broke_its_environment(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=3, reruns=9)
    await run(folder, ToyFactory(WORLD, faults=Faults(fail_every=5)))
    failed = [each.reason for each in folder.attempts() if each.status == "failed"]
    assert failed and all(reason.startswith("the toy environment is broken at step") for reason in failed)


async def test_attempts_share_environments_and_leave_none_open(tmp_path: Path) -> None:
    environments = ToyFactory(WORLD)
    await run(toy_bench(tmp_path / "bench", seeds=6), environments, parallel=2)
    assert environments.counts.live == 0 and environments.counts.opened < 12, "an environment serves many attempts"


async def test_a_torn_or_lost_results_file_is_completed_and_nothing_is_run_again(tmp_path: Path) -> None:
    folder, environments = toy_bench(tmp_path / "bench"), ToyFactory(WORLD)
    await run(folder)
    path = folder.path / "results.jsonl"
    whole = path.read_bytes()
    for left in (whole[:-20], whole[: len(whole) // 2], b""):
        path.write_bytes(left)
        await run(folder, environments)
        assert path.read_bytes() == whole
    assert environments.counts.resets == 0


async def test_an_oracle_that_was_cut_off_begins_anew_and_its_journal_is_kept(tmp_path: Path) -> None:
    from exact.config import parse

    oracle = parse({"name": "oracle", "value": {"kind": "oracle"}, "limits": {"actions": 2}, "reflection": {"kind": "none"}})
    folder = toy_bench(tmp_path / "bench", oracle, seeds=1)
    journal = folder.agent("oracle")[0].task_folder(folder.plan.tasks[0]) / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("what was told is gone")
    await run(folder)
    assert folder.results()[0].status == "scored" and (journal.parent / "journal.1.jsonl").read_text() == "what was told is gone"


async def test_returns_of_a_search_are_counted_and_an_agent_without_one_has_none(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), settings("mcts", iterations=20), seeds=2)
    await run(folder, ToyFactory(WORLD, fidelity="replay"))
    restores = {agent: sum(each.restores for each in folder.results() if each.agent == agent) for agent in ("react", "mcts")}
    assert restores["react"] == 0 < restores["mcts"]


async def test_a_round_begins_when_the_one_before_has_ended_and_its_tasks_are_made_at_once(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=6)
    running, seen = set[str](), list[set[str]]()

    class Watched(Schedule):
        async def _start(self, waiting: deque[_Job]) -> None:
            await super()._start(waiting)
            running.clear()
            running.update(job.task.id for job in self._running.values())
            seen.append(set(running))

    async with toy_engine(folder, ToyFactory(WORLD)) as engine:
        results = await Watched(folder=folder, engine=engine, parallel=6, rounds={"mcts": 3}).run()
    first, second = ({task.id for task in folder.plan.tasks[part]} for part in (slice(0, 3), slice(3, 6)))
    assert len(results) == 6 and seen[0] == first and second in seen
    assert not any(together & first and together & second for together in seen)


async def test_a_model_that_is_gone_for_a_while_is_waited_for_longer_each_time(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=1, reruns=3)
    loop, times = asyncio.get_running_loop(), list[float]()

    class Timed(Scripted):
        async def attempt(self, agent: str, task: Task) -> ResultLine:
            times.append(loop.time())
            return await super().attempt(agent, task)

    await scripted(folder, Timed(*[ModelError("gone")] * 3), pause=0.02)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert [result.score for result in folder.results()] == [1.0] and len(pauses) == 3
    assert all(pause >= least for pause, least in zip(pauses, (0.02, 0.04, 0.08), strict=True))


async def test_other_attempts_run_while_one_waits_for_its_model_and_other_failures_do_not_wait(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), reruns=1)
    await scripted(folder, engine := Scripted(ModelError("gone"), EnvironmentFailure("no page")), pause=0.05)
    assert [task for _, task in engine.order[3:]] == [folder.plan.tasks[2].id, folder.plan.tasks[1].id]
    assert all(result.status == "scored" for result in folder.results())


async def test_a_task_begins_when_those_that_it_needs_have_ended(tmp_path: Path) -> None:
    """The task with seed 0 takes three times as long as the others."""
    tasks = [toy_task(WORLD, seed) for seed in (0, 1, 2)]
    first = tasks[0].id.partition("?")[0]
    second = msgspec.structs.replace(tasks[0], id="toy/second?seed=0", after=(first, "toy/of-no-benchmark"))
    config = settings("react", "react")
    plan = Plan(suite="toy", agents=("react",), tasks=(*tasks, second), budget={"actions": 4.0}, reruns=1)
    engine = Scripted(turns=9)
    folder = BenchFolder.create(tmp_path / "bench", plan, {"react": config})
    done: list[str] = []
    await scripted(folder, engine, finished=lambda result, _, of: done.append(f"ended {result.task}"))
    assert [id for _, id in engine.order] == [*(task.id for task in tasks), second.id] and len(done) == 4
    assert engine.most == 3 and done.index(f"ended {tasks[0].id}") < done.index(f"ended {second.id}")
