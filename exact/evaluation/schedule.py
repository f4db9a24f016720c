"""The schedule of a benchmark: runs all attempts of a plan, several at once, and records how each ended.

After an infrastructure failure an attempt is rerun a bounded number of times. An attempt with a score is never rerun.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from exact.benchmarks.ids import join
from exact.environments.pool.capacity import Capacity
from exact.errors import InfrastructureError, JournalError, PartError, UncertainCommit, UsageError
from exact.evaluation.engine import Engine, Hung
from exact.evaluation.folder import AttemptRecord, BenchFolder, Replay, Result, result_of
from exact.evaluation.money import MoneyCap
from exact.evaluation.plan import Plan
from exact.runs.journal.store import ResultLine, RunFolder, append_line, log_error
from exact.task import Task

LOOK_AGAIN = 1.0
"""Seconds between two checks of whether another attempt fits."""
_ALONE = (
    "attempts on such sites run one at a time, because one would see and reset the changes of another "
    "(where a suite starts its site itself, a sandbox gives each attempt its own: see `exact doctor`)"
)


@dataclass(frozen=True)
class _Job:
    """An attempt to run, or the replay of an ended attempt."""

    agent: str
    task: Task
    number: int
    line: ResultLine | None = None
    """ResultLine of the ended attempt if only its replay is left to do."""
    tries: int = 1
    """Number of times that this job was started in this session."""
    hung: bool = False
    """Whether one of these tries hung."""
    after: float = 0.0
    """Time of the event loop's clock before which it is not started."""
    persists: bool = False
    """Whether side effects persist in its environments, or this is unknown. False if it was not asked."""


@dataclass(kw_only=True)
class Schedule:
    """One session of a benchmark. The next session resumes at its end."""

    folder: BenchFolder
    engine: Engine
    parallel: int
    capacity: Capacity | None = None
    """Bound on the memory of all attempts together; None for no bound. One attempt is always allowed."""
    money: MoneyCap | None = None
    """Bound on the money of all attempts together; None for no bound."""
    rounds: Mapping[str, int] = field(default_factory=dict)
    """Size of a round, in tasks in the order of the plan, for agents whose attempts depend on each other because they share a memory.

    A round begins when the one before it has ended, and only attempts of one round run at once.
    """
    pause: float = 0.0
    """Seconds before the first rerun of an attempt whose model did not answer. Each further rerun waits twice as long."""
    finished: Callable[[Result, int, int], None] | None = None
    """Callback for each result, with the number of results so far and in all."""
    notify: Callable[[str], None] | None = None
    """Callback for the reason why attempts run one at a time. It is called at most once."""
    _notified: bool = field(init=False, default=False)
    _plan: Plan = field(init=False)
    _results: dict[tuple[str, str], Result] = field(init=False)
    _runs: dict[str, RunFolder] = field(init=False)
    _running: dict[asyncio.Task[ResultLine | Replay], _Job] = field(init=False, default_factory=dict)
    _flushed: int = field(init=False, default=0)
    _positions: dict[str, int] = field(init=False)
    """Position of each task in the plan."""
    _ended_first: Counter[str] = field(init=False, default_factory=Counter)
    """Number of tasks at the beginning of the plan that have all ended, by agent."""

    async def run(self) -> list[Result]:
        """Run the attempts that are left. Return every result in the order of the plan; some are missing if the money did not suffice.

        Raises UsageError or JournalError, after which the benchmark can be resumed.
        """
        self._plan = self.folder.plan
        self._positions = {task.id: position for position, task in enumerate(self._plan.tasks)}
        self._runs = {agent: self.folder.agent(agent)[0] for agent in self._plan.agents}
        self._results = self.folder.done()
        waiting = deque(self._jobs())
        self._flush(anew=True)
        try:
            while waiting or self._running:
                await self._start(waiting)
                if not self._running:
                    if (seconds := self._seconds_until(waiting)) is None:  # no waiting job fits within the money
                        break
                    await asyncio.sleep(seconds)
                    continue
                done, _ = await asyncio.wait(self._running, timeout=LOOK_AGAIN if waiting else None, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    again = self._ended(self._running.pop(task), task)
                    if again is not None:
                        waiting.appendleft(again)
        finally:
            await self._stop()
        self.folder.write_results(self._results)
        return [self._results[agent, task.id] for agent, task in self._plan.pairs if (agent, task.id) in self._results]

    def _seconds_until(self, waiting: deque[_Job]) -> float | None:
        """Return the seconds until the first of the jobs that wait for their model may start; None if none does."""
        now = asyncio.get_running_loop().time()
        return min((job.after - now for job in waiting if job.after > now), default=None)

    def _jobs(self) -> list[_Job]:
        """Return the jobs that are left, in the order of the plan."""
        lines = {agent: {line.task: line for line in run.results() if line.status != "failed"} for agent, run in self._runs.items()}
        made = self.folder.numbers()
        return [
            _Job(agent, task, made.get((agent, task.id), 1), lines[agent].get(task.id))
            for agent, task in self._plan.pairs
            if (agent, task.id) not in self._results
        ]

    async def _start(self, waiting: deque[_Job]) -> None:
        """Start as many jobs as fit."""
        while waiting and len(self._running) < self.parallel:
            if self._running and self.capacity is not None and not self.capacity.fits(len(self._running)):
                return
            job = await self._next(waiting)
            if job is None:
                return
            if self.money is not None:
                self.money.reserve(job.agent, job.task.id)
            work = self.engine.attempt(job.agent, job.task) if job.line is None else self.engine.replay(job.agent, job.task)
            self._running[asyncio.ensure_future(work)] = job

    async def _next(self, waiting: deque[_Job]) -> _Job | None:
        """Remove and return the first waiting job that depends on no running one and whose side effects no running attempt would see."""
        for job in filter(self._is_ready, tuple(waiting)):
            try:
                persists, known = self.parallel > 1 and await self.engine.persists(job.agent, job.task), True
            except UsageError:
                raise
            except Exception:  # noqa: BLE001 - the job's own attempt raises it again, and records it
                persists, known = True, False
            if not persists or not any(each.persists for each in self._running.values()):
                waiting.remove(job)
                return replace(job, persists=persists)
            if not known:
                return None
            self._warn(job)
        return None

    def _warn(self, job: _Job) -> None:
        if self.notify is not None and not self._notified:
            self._notified = True
            self.notify(f"{job.task.id} is on a site that is not isolated: {_ALONE}")

    def _is_ready(self, job: _Job) -> bool:
        """Return whether the job fits within the money, its pause is over, and every attempt that it depends on has ended."""
        if job.after > asyncio.get_running_loop().time():
            return False
        if self.money is not None and not self.money.admits(job.agent, job.task.id):
            return False
        if any((job.agent, id) not in self._results for id in self._before(job.task)):
            return False
        if (size := self.rounds.get(job.agent)) is None:
            return True
        while (ended := self._ended_first[job.agent]) < len(self._plan.tasks):
            if (job.agent, self._plan.tasks[ended].id) not in self._results:
                break
            self._ended_first[job.agent] += 1
        return self._positions[job.task.id] // size * size <= ended

    def _before(self, task: Task) -> list[str]:
        """Return the ids of the plan's tasks that are attempted before a task: those that it names, with its seed."""
        return [id for name in task.after for id in (name, join(name, task.seed)) if id in self._positions]

    def _ended(self, job: _Job, made: asyncio.Task[ResultLine | Replay]) -> _Job | None:
        """Record how a job ended. Return the job that follows from it: a rerun, a replay or None."""
        if self.money is not None:
            self.money.settle(job.agent, job.task)
        try:
            line = made.result()
        except (UsageError, JournalError):
            raise
        except (InfrastructureError, UncertainCommit) as error:
            line = _failed(job, str(error), error.missing)
            again = isinstance(error, InfrastructureError)
            hung = isinstance(error, Hung)
        except Exception as error:  # noqa: BLE001 - any error of an agent or an evaluator ends its own attempt only
            log_error(self.folder.path, f"{job.agent} {job.task.id}", error, self._runs[job.agent].scrubber)
            line, again, hung = _failed(job, f"{type(error).__name__}: {error}"), False, False
        else:
            again, hung = line.missing not in (PartError.missing, UncertainCommit.missing), False
        if isinstance(line, Replay):
            self._replayed(job, line)
            return None
        self._record(job, line, hung=hung)
        if line.status == "failed":
            return self._failed(job, line, again=again and job.tries <= self._plan.reruns and not (hung and job.hung), hung=hung)
        self._runs[job.agent].add_result(line)
        if line.promoted:
            return _Job(job.agent, job.task, job.number, line)
        self._settle(job, result_of(line, None, job.number))
        return None

    def _record(self, job: _Job, line: ResultLine, *, hung: bool) -> None:
        append_line(
            self.folder.path / "attempts.jsonl",
            AttemptRecord(
                agent=job.agent, task=job.task.id, number=job.number, status=line.status, reason=line.reason, missing=line.missing,
                score=line.score, hung=hung, replay=job.line is not None, seconds=line.seconds,
            ),
        )  # fmt: skip

    def _failed(self, job: _Job, line: ResultLine, *, again: bool, hung: bool) -> _Job | None:
        if again:
            number = job.number if job.line is not None else job.number + 1
            pause = self.pause * 2.0 ** (job.tries - 1) if line.missing in ("model", "judge") else 0.0
            after = asyncio.get_running_loop().time() + pause
            return _Job(job.agent, job.task, number, job.line, job.tries + 1, hung=job.hung or hung, after=after)
        if job.line is not None:
            self._replayed(job, Replay(task=line.task, score=None, match="failed", reason=line.reason, missing=line.missing))
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
        """Append the next results to results.jsonl, so that the file is always a prefix of its final content."""
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

    async def _stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()


def _failed(job: _Job, reason: str, missing: str = "") -> ResultLine:
    """Return the line of a failed attempt, or of an attempt whose replay failed. In a replay only evaluators ask models."""
    if job.line is not None:
        missing = "judge" if missing == "model" else missing
        return msgspec.structs.replace(job.line, status="failed", score=None, raw=None, reason=f"replay: {reason}", missing=missing)
    return ResultLine(task=job.task.id, seed=job.task.seed, agent=job.agent, status="failed", reason=reason, missing=missing)
