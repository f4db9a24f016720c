"""Errors on their way from a lane of Ray. The tests do not need Ray."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from pathlib import Path

import msgspec
import pytest

from exact.cli.bench_engine import lane_engine
from exact.errors import (
    AnswerError,
    EnvironmentFailure,
    ExactError,
    InfrastructureError,
    JournalError,
    ModelError,
    UncertainCommit,
    UsageError,
)
from exact.evaluation.engine import Hung
from exact.evaluation.folder import Replay
from exact.evaluation.local import LocalEngine
from exact.evaluation.ray_engine import Lane, raised
from exact.models.cache import Uncached
from exact.runs.journal.file import Journal, is_being_written
from exact.task import Task
from tests.evaluation.toys import toy_bench

KINDS = (UsageError, UncertainCommit, InfrastructureError, EnvironmentFailure, ModelError, AnswerError, JournalError)


async def said(path: Path, error: ExactError, monkeypatch: pytest.MonkeyPatch) -> ExactError:
    """Return the outcome of an error that is raised in a lane."""

    async def broken(self: LocalEngine, agent: str, task: Task) -> Replay:
        raise error

    monkeypatch.setattr(LocalEngine, "replay", broken)
    folder = toy_bench(path, seeds=1)
    lane = Lane(str(folder.path), "tests.evaluation.toys:lane")
    kind, text = await lane.replay("mcts", msgspec.json.encode(folder.plan.tasks[0]))
    await lane.close()
    return raised(kind, text.decode())


@pytest.mark.parametrize("error", [*(kind("the fact") for kind in KINDS), Hung(9.0)], ids=lambda error: type(error).__name__)
async def test_an_error_in_a_lane_is_raised_here_with_its_type(error: ExactError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = await said(tmp_path / "bench", error, monkeypatch)
    assert (type(here), str(here)) == (type(error), str(error))


async def test_a_lane_says_whether_its_environments_keep_what_is_done(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    lane = Lane(str(folder.path), "tests.evaluation.toys:lane")
    assert await lane.persists("mcts", msgspec.json.encode(folder.plan.tasks[0])) == ("done", b"false")
    await lane.close()


async def test_a_further_kind_of_error_is_raised_as_the_nearest_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(await said(tmp_path / "bench", Uncached("not in the cache"), monkeypatch)) is ModelError


_SAID: ContextVar[str] = ContextVar("said", default="nothing")


class Saying:
    """An engine that sets a context variable while it is open, as a user's own prompts do."""

    async def __aenter__(self) -> Saying:
        self._token = _SAID.set("something")
        return self

    async def __aexit__(self, *exc: object) -> None:
        _SAID.reset(self._token)

    async def persists(self, agent: str, task: Task) -> bool:
        return _SAID.get() == "something"


def saying(folder: object) -> Saying:
    return Saying()


async def test_calls_see_the_context_of_the_opening_in_any_asyncio_task(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    lane, task = Lane(str(folder.path), f"{__name__}:saying"), msgspec.json.encode(folder.plan.tasks[0])
    for _ in range(2):
        assert await asyncio.create_task(lane.persists("mcts", task)) == ("done", b"true")
    await asyncio.create_task(lane.close())


async def test_a_lane_has_its_part_of_what_all_of_them_may_use(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    engine = lane_engine(folder, 4, 2.0, 9)
    assert (engine._limits.processors, engine._limits.environments, engine._part) == (0.5, 2, 0.25)
    free = lane_engine(folder, 4, None, None)
    assert free._limits.processors is None and free._limits.environments >= 2


async def test_a_lane_gives_its_engine_what_it_was_given(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    lane = Lane(str(folder.path), f"{__name__}:given", 3, "x")
    with pytest.raises(ValueError, match="3 x"):
        await lane.persists("mcts", msgspec.json.encode(folder.plan.tasks[0]))
    await lane.close()


def given(folder: object, number: int, text: str) -> Saying:
    raise ValueError(f"{number} {text}")


async def test_environments_that_cannot_be_opened_are_reported_to_every_call(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    lane, task = Lane(str(folder.path), "no_such_module_at_all:lane"), msgspec.json.encode(folder.plan.tasks[0])
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            await lane.persists("mcts", task)
    await lane.close()


def test_a_journal_is_locked_until_its_writer_ends(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert not is_being_written(path)
    journal = Journal(path)
    assert is_being_written(path)
    journal.close()
    assert not is_being_written(path)
