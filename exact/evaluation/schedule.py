"""Makes all attempts of a plan, several at once, and records how each of them ended.

An attempt that the infrastructure ended is made again, a bounded number of times; one that came to a score never is.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from exact.environments.pool.capacity import Capacity
from exact.errors import InfrastructureError, JournalError, UncertainCommit, UsageError
from exact.evaluation.engine import Engine, Hung
from exact.evaluation.folder import AttemptRecord, BenchFolder, Replay, Result, result_of
from exact.evaluation.plan import Plan
from exact.runs.journal.store import Line, RunFolder, append_line
from exact.task import Task

LOOK_AGAIN = 1.0
"""Seconds until room is looked for again."""
_ALONE = (
    "attempts on such sites go one at a time, or one would see and reset what another does "
    "(where a suite starts its site itself, a sandbox gives each attempt its own: see `exact doctor`)"
)


@dataclass(frozen=True)
class _Job:
    """One attempt to be made, or the replay of one that was."""

    agent: str
    task: Task
    number: int
    line: Line | None = None
    """Of the attempt, where only its replay is wanted."""
    tries: int = 1
    """Of this job in this session."""
    hung: bool = False
    """Whether one of them hung."""
    persists: bool = False
    """Whether it is made in environments that keep what is done in them, as far as was asked."""


@dataclass(kw_only=True)
class Schedule:
    """One session at a benchmark; the next one goes on where it ends."""

    folder: BenchFolder
    engine: Engine
    parallel: int
    room: Capacity | None = None
    """What all attempts together may use; None: no bound. One is always let."""
    rounds: Mapping[str, int] = field(default_factory=dict)
    """Agents whose attempts hang on each other, because they remember, and how many of their tasks, in the order of the plan, make a round:
    a round begins when the one before has ended, and only attempts of one round are made at once."""
    finished: Callable[[Result, int, int], None] | None = None
    """Called with each result, how many there are, and of how many."""
    notify: Callable[[str], None] | None = None
    """Called once, where attempts go one at a time, with why."""
    _notified: bool = field(init=False, default=False)
    _plan: Plan = field(init=False)
    _results: dict[tuple[str, str], Result] = field(init=False)
    _runs: dict[str, RunFolder] = field(init=False)
    _running: dict[asyncio.Task[Line | Replay], _Job] = field(init=False, default_factory=dict)
    _flushed: int = field(init=False, default=0)
    _places: dict[str, int] = field(init=False)
    """Of each task in the plan."""
    _ended_first: Counter[str] = field(init=False, default_factory=Counter)
    """How many of an agent's first tasks have all ended."""

    async def run(self) -> list[Result]:
        """Make what is not made yet; every result in the order of the plan.

        Raises UsageError and JournalError, after which the rest can be gone on with.
        """
        self._plan = self.folder.plan
        self._places = {task.id: place for place, task in enumerate(self._plan.tasks)}
        self._runs = {agent: self.folder.agent(agent)[0] for agent in self._plan.agents}
        self._results = self.folder.done()
        waiting = deque(self._jobs())
        self._flush(anew=True)
        try:
            while waiting or self._running:
                await self._start(waiting)
                done, _ = await asyncio.wait(self._running, timeout=LOOK_AGAIN if waiting else None, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    again = self._ended(self._running.pop(task), task)
                    if again is not None:
                        waiting.appendleft(again)
        finally:
            await self._stop()
        self.folder.write_results(self._results)
        return [self._results[agent, task.id] for agent, task in self._plan.pairs]

    def _jobs(self) -> list[_Job]:
        """What is left to be done, in the order of the plan."""
        lines = {agent: {line.task: line for line in run.results() if line.status != "failed"} for agent, run in self._runs.items()}
        made = self.folder.numbers()
        return [
            _Job(agent, task, made.get((agent, task.id), 1), lines[agent].get(task.id))
            for agent, task in self._plan.pairs
            if (agent, task.id) not in self._results
        ]

    async def _start(self, waiting: deque[_Job]) -> None:
        """Begin what there is room for."""
        while waiting and len(self._running) < self.parallel:
            if self._running and self.room is not None and not self.room.fits(len(self._running)):
                return
            job = await self._next(waiting)
            if job is None:
                return
            work = self.engine.attempt(job.agent, job.task) if job.line is None else self.engine.replay(job.agent, job.task)
            self._running[asyncio.ensure_future(work)] = job

    async def _next(self, waiting: deque[_Job]) -> _Job | None:
        """Taken out of those that wait: the first that hangs on nothing, and whose site nobody is at who would see what it does."""
        for job in filter(self._may, tuple(waiting)):
            try:
                persists, known = self.parallel > 1 and await self.engine.persists(job.agent, job.task), True
            except UsageError:
                raise
            except Exception:  # noqa: BLE001 - its own attempt will meet it again, and ends by it
                persists, known = True, False
            if not persists or not any(each.persists for each in self._running.values()):
                waiting.remove(job)
                return replace(job, persists=persists)
            if not known:
                return None
            self._tell(job)
        return None

    def _tell(self, job: _Job) -> None:
        if self.notify is not None and not self._notified:
            self._notified = True
            self.notify(f"{job.task.id} is on a site that keeps what is done there: {_ALONE}")

    def _may(self, job: _Job) -> bool:
        """Whether all that it hangs on has ended."""
        if (size := self.rounds.get(job.agent)) is None:
            return True
        while (ended := self._ended_first[job.agent]) < len(self._plan.tasks):
            if (job.agent, self._plan.tasks[ended].id) not in self._results:
                break
            self._ended_first[job.agent] += 1
        return self._places[job.task.id] // size * size <= ended

    def _ended(self, job: _Job, made: asyncio.Task[Line | Replay]) -> _Job | None:
        """Record how it ended; what is to be done next about it, if anything."""
        try:
            came = made.result()
        except (UsageError, JournalError):
            raise
        except (InfrastructureError, UncertainCommit) as error:
            came = _failed(job, str(error), error.missing if isinstance(error, InfrastructureError) else "")
            again = isinstance(error, InfrastructureError)
            hung = isinstance(error, Hung)
        except Exception as error:  # noqa: BLE001 - whatever an agent or an evaluator raises ends its own attempt, and no other
            self._keep(job, error)
            came, again, hung = _failed(job, f"{type(error).__name__}: {error}"), False, False
        else:
            again, hung = True, False
        if isinstance(came, Replay):
            self._replayed(job, came)
            return None
        self._record(job, came, hung=hung)
        if came.status == "failed":
            return self._failed(job, came, again=again and job.tries <= self._plan.reruns and not (hung and job.hung), hung=hung)
        self._runs[job.agent].add_result(came)
        if came.promoted:
            return _Job(job.agent, job.task, job.number, came)
        self._settle(job, result_of(came, None, job.number))
        return None

    def _record(self, job: _Job, line: Line, *, hung: bool) -> None:
        append_line(
            self.folder.path / "attempts.jsonl",
            AttemptRecord(
                agent=job.agent, task=job.task.id, number=job.number, status=line.status, reason=line.reason, missing=line.missing,
                score=line.score, hung=hung, replay=job.line is not None, seconds=line.seconds,
            ),
        )  # fmt: skip

    def _failed(self, job: _Job, line: Line, *, again: bool, hung: bool) -> _Job | None:
        if again:
            number = job.number if job.line is not None else job.number + 1
            return _Job(job.agent, job.task, number, job.line, job.tries + 1, hung=job.hung or hung)
        if job.line is not None:
            self._replayed(job, Replay(task=line.task, score=None, verdict="failed", reason=line.reason, missing=line.missing))
            return None
        self._runs[job.agent].add_result(line)
        self._settle(job, result_of(line, None, job.number))
        return None

    def _replayed(self, job: _Job, replay: Replay) -> None:
        assert job.line is not None
        append_line(self.folder.agent_path(job.agent) / "replays.jsonl", replay)
        self._settle(job, result_of(job.line, replay, job.number))

    def _settle(self, job: _Job, result: Result) -> None:
        self._results[job.agent, job.task.id] = result
        self._flush()
        if self.finished is not None:
            self.finished(result, len(self._results), len(self._plan.pairs))

    def _flush(self, *, anew: bool = False) -> None:
        """Append to results.jsonl what follows on what it holds, so that it is always a beginning of what it will be."""
        pairs, path = [(agent, task.id) for agent, task in self._plan.pairs], self.folder.path / "results.jsonl"
        if anew:
            beginning = {}
            for pair in pairs:
                if pair not in self._results:
                    break
                beginning[pair] = self._results[pair]
            self.folder.write_results(beginning)
            self._flushed = len(beginning)
        while self._flushed < len(pairs) and pairs[self._flushed] in self._results:
            append_line(path, self._results[pairs[self._flushed]])
            self._flushed += 1

    def _keep(self, job: _Job, error: Exception) -> None:
        """A traceback is for whoever wrote what failed: it goes into a file."""
        with (self.folder.path / "errors.log").open("a") as file:
            file.write(f"{job.agent} {job.task.id}\n{''.join(traceback.format_exception(error))}\n")

    async def _stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()


def _failed(job: _Job, reason: str, missing: str = "") -> Line:
    """The line of an attempt that came to no end; of one whose replay did not, without its score: there only verdicts ask models."""
    if job.line is not None:
        missing = "judge" if missing == "model" else missing
        return msgspec.structs.replace(job.line, status="failed", score=None, raw=None, reason=f"replay: {reason}", missing=missing)
    return Line(task=job.task.id, seed=job.task.seed, agent=job.agent, status="failed", reason=reason, missing=missing)
