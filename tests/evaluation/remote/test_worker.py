"""Calls of an engine in the process of a Ray task, and errors on their way back. The tests do not need Ray.

A process runs its own event loop, so that these tests are not asynchronous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

import msgspec
import pytest

from exact.cli.bench_plan import worker_engine
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
from exact.evaluation.folder import BenchFolder, Replay
from exact.evaluation.local import LocalEngine
from exact.evaluation.remote.delivery import DeliveryItem, Incoming
from exact.evaluation.remote.parcel import Cargo, Parcel, What
from exact.evaluation.remote.worker import Outcome, close_opened, opened, raised
from exact.models.cache import Uncached
from exact.runs.journal.file import Journal, is_being_written
from exact.runs.journal.store import ResultLine
from exact.task import Task
from tests.evaluation.toys import settings, toy_bench

KINDS = (UsageError, UncertainCommit, InfrastructureError, EnvironmentFailure, ModelError, AnswerError)


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    close_opened()


def called(
    folder: BenchFolder, what: What, *, make: str = "tests.evaluation.toys:worker", agent: str = "mcts",
    arguments: tuple[object, ...] = (), items: list[DeliveryItem] | None = None,
) -> Outcome:  # fmt: skip
    """Return the outcome of a call in the process of a Ray task, which is this one."""
    run, task = folder.agent(agent)[0], folder.plan.tasks[0]

    async def send(batch: Sequence[DeliveryItem]) -> None:
        if items is not None:
            items.extend(batch)

    cargo = Cargo.of(folder, make=make, arguments=arguments, carried=())
    return opened(msgspec.msgpack.encode(cargo)).call(Parcel.of(what, run, agent, task), send)


@pytest.mark.parametrize("error", [*(kind("the fact") for kind in KINDS), Hung(9.0)], ids=lambda error: type(error).__name__)
def test_an_error_there_is_raised_here_with_its_type(error: ExactError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = said(tmp_path / "bench", error, monkeypatch)
    assert (type(here), str(here)) == (type(error), str(error))


@pytest.mark.parametrize(
    ("error", "kind"), [(Uncached("not in the cache"), ModelError), (JournalError("a full disk"), InfrastructureError)]
)
def test_a_further_kind_of_error_is_raised_as_the_nearest_that_is_known(
    error: ExactError, kind: type[ExactError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal there is no journal of this machine, whose errors end a benchmark."""
    assert type(said(tmp_path / "bench", error, monkeypatch)) is kind


def said(path: Path, error: ExactError, monkeypatch: pytest.MonkeyPatch) -> ExactError:
    """Return the outcome of an error that is raised in a process of a Ray task."""

    async def broken(self: LocalEngine, agent: str, task: Task) -> Replay:
        raise error

    monkeypatch.setattr(LocalEngine, "replay", broken)
    kind, text, _ = called(toy_bench(path, seeds=1), "replay")
    return raised(kind, text)


def test_what_an_attempt_writes_there_is_written_here(tmp_path: Path) -> None:
    there, here, items = toy_bench(tmp_path / "there", seeds=1), toy_bench(tmp_path / "here", seeds=1), list[DeliveryItem]()
    kind, data, _ = called(there, "attempt", items=items)
    incoming = Incoming(here.agent("mcts")[0], here.plan.tasks[0])
    incoming.take(items)
    incoming.close()
    run, task = here.agent("mcts")[0], here.plan.tasks[0]
    assert kind == "done" and msgspec.json.decode(data, type=ResultLine).status == "scored"
    assert {path.name for path in run.task_folder(task).iterdir()} == {"journal.jsonl", "tree.json"}
    assert called(here, "replay")[0] == "done", "the journal and the blobs that arrived do not replay"


def test_an_attempt_leaves_nothing_in_the_process_but_its_open_engine(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    for _ in range(2):
        assert called(folder, "attempt")[0] == "done"
        bench = opened(msgspec.msgpack.encode(Cargo.of(folder, make="tests.evaluation.toys:worker", arguments=(), carried=())))
        run = bench._folder.agent("mcts")[0]
        assert list((run.path / "tasks").iterdir()) == [] and not run.blobs.folder.exists()


def test_a_process_says_whether_its_environments_keep_what_is_done(tmp_path: Path) -> None:
    assert called(toy_bench(tmp_path / "bench", seeds=1), "persists")[:2] == ("done", b"false")


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


def test_calls_see_the_context_of_the_opening(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    for _ in range(2):
        assert called(folder, "persists", make=f"{__name__}:saying")[:2] == ("done", b"true")


def test_a_process_has_its_part_of_what_all_of_them_may_use(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    engine = worker_engine(folder, 4, 2.0, 9)
    assert (engine._limits.processors, engine._limits.environments, engine._part) == (0.5, 2, 0.25)
    free = worker_engine(folder, 4, None, None)
    assert free._limits.processors is None and free._limits.environments >= 2


def test_a_process_gives_its_engine_what_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 x"):
        called(toy_bench(tmp_path / "bench", seeds=1), "persists", make=f"{__name__}:given", arguments=(3, "x"))


def given(folder: object, number: int, text: str) -> Saying:
    raise ValueError(f"{number} {text}")


def test_an_engine_that_cannot_be_opened_is_reported_to_every_call(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            called(folder, "persists", make="no_such_module_at_all:engine")


def test_no_key_of_this_machine_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-4711-not-for-others")
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1)
    cargo = msgspec.msgpack.encode(Cargo.of(folder, make="tests.evaluation.toys:worker", arguments=(), carried=()))
    assert b"sk-4711" not in cargo


@pytest.mark.parametrize("name", ["../../results.jsonl", "journal.jsonl", ".hidden"])
def test_a_file_that_is_none_of_an_attempt_is_refused(name: str, tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    incoming = Incoming(folder.agent("mcts")[0], folder.plan.tasks[0])
    with pytest.raises(InfrastructureError, match="no file of an attempt"):
        incoming.take([DeliveryItem("file", name, b"x")])
    with pytest.raises(InfrastructureError, match="a blob that is not"):
        incoming.take([DeliveryItem("blob", "ab" * 32, b"x")])
    incoming.close()


def test_a_journal_is_locked_until_its_writer_ends(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert not is_being_written(path)
    journal = Journal(path)
    assert is_being_written(path)
    journal.close()
    assert not is_being_written(path)
