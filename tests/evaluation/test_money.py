"""All attempts of a benchmark together never spend more than its cap."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from exact.errors import InfrastructureError, UsageError
from exact.evaluation.folder import BenchFolder, Replay
from exact.evaluation.money import MoneyCap
from exact.evaluation.schedule import Schedule
from exact.models.base import Sampling, Usage
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal
from exact.runs.journal.store import ResultLine
from exact.task import Task
from tests.evaluation.toys import settings, toy_bench


class Spending:
    """An engine whose attempts spend money, as their journals tell."""

    def __init__(self, folder: BenchFolder, cost: float | None, *, broken: bool = False) -> None:
        self.folder, self.cost, self.broken, self.running, self.most = folder, cost, broken, 0, 0

    async def persists(self, agent: str, task: Task) -> bool:
        return False

    async def attempt(self, agent: str, task: Task) -> ResultLine:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        spend(self.folder, agent, task, self.cost)
        self.running -= 1
        if self.broken:
            raise InfrastructureError("the site is gone")
        return ResultLine(task=task.id, seed=task.seed, agent=agent, status="scored", score=1.0, cost=self.cost)

    async def replay(self, agent: str, task: Task) -> Replay:
        raise AssertionError("nothing was promoted")


def spend(folder: BenchFolder, agent: str, task: Task, cost: float | None) -> None:
    path = folder.agent(agent)[0].task_folder(task)
    path.mkdir(parents=True, exist_ok=True)
    journal = Journal(path / "journal.jsonl")
    if not (path / "journal.jsonl").stat().st_size:
        journal.write(ev.Opened(schema=ev.SCHEMA, task=task, seed=0, config=""))
    journal.write(
        ev.Called(
            key="k", role="policy", node=0, attempt=0, prompt="p", model="m", sampling=Sampling(), request="", answer="",
            usage=Usage(input_tokens=1, output_tokens=1, cost=cost), reserved=0.4,
        )
    )  # fmt: skip
    journal.close()


def bench(path: Path, limit: float | None = 0.5, seeds: int = 5, reruns: int = 0) -> BenchFolder:
    config = settings("react", "react")
    config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, money=limit))
    return toy_bench(path, config, seeds=seeds, reruns=reruns)


@pytest.mark.parametrize(("cap", "attempts", "at_once"), [(0.4, 0, 0), (1.0, 2, 2), (1.2, 3, 2), (10.0, 5, 4)])
async def test_an_attempt_starts_only_where_its_whole_limit_still_fits(tmp_path: Path, cap: float, attempts: int, at_once: int) -> None:
    folder = bench(tmp_path)
    engine, money = Spending(folder, 0.3), MoneyCap(folder, cap)
    results = await Schedule(folder=folder, engine=engine, parallel=4, money=money).run()
    assert (len(results), engine.most) == (attempts, at_once)
    assert money.spent == pytest.approx(0.3 * attempts) and money.spent <= cap


async def test_a_benchmark_goes_on_with_more_money_and_knows_what_was_spent(tmp_path: Path) -> None:
    folder = bench(tmp_path)
    assert len(await Schedule(folder=folder, engine=Spending(folder, 0.5), parallel=2, money=MoneyCap(folder, 1.0)).run()) == 2
    again = MoneyCap(BenchFolder.open(tmp_path), 2.0)
    assert again.spent == pytest.approx(1.0)
    assert len(await Schedule(folder=BenchFolder.open(tmp_path), engine=Spending(folder, 0.5), parallel=2, money=again).run()) == 4


async def test_reruns_after_failures_count_what_the_failed_attempts_spent(tmp_path: Path) -> None:
    folder = bench(tmp_path, seeds=2, reruns=3)
    money = MoneyCap(folder, 0.85)
    await Schedule(folder=folder, engine=Spending(folder, 0.1, broken=True), parallel=1, money=money).run()
    assert money.spent == pytest.approx(0.4), "four tries of the first task; the limit of the second does not fit beside them"


def test_a_call_of_unknown_cost_counts_as_what_was_reserved_for_it(tmp_path: Path) -> None:
    folder = bench(tmp_path)
    spend(folder, "react", folder.plan.tasks[0], None)
    assert MoneyCap(folder, 1.0).spent == 0.4


def test_attempts_without_a_limit_cannot_be_capped_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"react has none.*--budget money"):
        MoneyCap(bench(tmp_path, limit=None), 1.0)
