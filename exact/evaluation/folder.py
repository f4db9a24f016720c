"""The files of a benchmark.

bench.json  results.jsonl  attempts.jsonl  table.md  curve.svg  index.html
agents/<agent>/   a run folder: run.json  config.yaml  results.jsonl  replays.jsonl  tasks/  blobs/

The line of an attempt is written in its agent's folder first. results.jsonl is built from these lines in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from exact.config import Config, dump
from exact.errors import JournalError, UsageError
from exact.evaluation.plan import BenchSession, Plan, checked_names
from exact.runs.folder_check import MOST
from exact.runs.journal.store import Manifest, ResultLine, RunFolder, read_lines, write_whole
from exact.runs.runner import reopen
from exact.runs.secrets import conceal
from exact.untrusted import decoded, read_bounded


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The result of replaying the committed actions of an attempt in a fresh environment that search never used."""

    task: str
    score: float | None
    """Score in [0, 1]; None if the actions could not be replayed."""
    raw: float | None = None
    match: str
    """`same`: each state equalled the attempt's. `drifted`: one did not. `refused`: an action could not be executed. `failed`: an
    infrastructure failure ended it, after all reruns, so that the attempt has no score."""
    reason: str = ""
    missing: str = ""
    """Missing part, as in `ResultLine.missing`."""


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of attempts.jsonl: the end of an attempt or the failure of a replay, whether it counts or not."""

    agent: str
    task: str
    number: int
    """Number of the attempt, from 1. Above 1 it is a rerun after an infrastructure failure."""
    status: str
    reason: str = ""
    missing: str = ""
    """Missing part, as in `ResultLine.missing`."""
    score: float | None = None
    hung: bool = False
    replay: bool = False
    """Whether a replay failed. Its attempt, of the same number, had ended."""
    seconds: float = 0.0


class Result(ResultLine, frozen=True, kw_only=True):
    """One line of results.jsonl: the last attempt at one task and seed by one agent. Tables use `score`."""

    live_score: float | None = None
    """Score of the live environment. It differs from `score` only if search had used the live environment."""
    replay: str = ""
    """`Replay.match`; empty if the live environment was never used by search."""
    attempts: int = 1
    """Number of attempts, infrastructure failures included, replays excluded."""


class BenchFolder:
    """The folder of one benchmark."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, plan: Plan, configs: Mapping[str, Config]) -> BenchFolder:
        """Write a new benchmark. Raises UsageError if the folder already holds one."""
        if (path / "bench.json").exists():
            raise UsageError(
                f"{path} already holds a benchmark: resume it with `exact bench --resume --out {path}`, or choose another output folder"
            )
        folder = cls(path)
        folder._write(plan, configs)
        return folder

    @classmethod
    def open(cls, path: Path) -> BenchFolder:
        """Open an existing benchmark. Raises UsageError if there is none."""
        if not (path / "bench.json").exists():
            raise UsageError(f"no benchmark in {path}: it has no bench.json")
        return cls(path)

    def add_session(self, session: BenchSession, configs: Mapping[str, Config] | None = None) -> dict[str, tuple[str, str]]:
        """Add a session, with the further agents of `configs`. Return the changes, as `BenchSession.since` does.

        No session is added if nothing is left to do. Raises UsageError for invalid names, JournalError.
        """
        plan, configs = self.plan, configs or {}
        agents = checked_names([*plan.agents, *configs])
        if not configs and len(self.done()) == len(plan.pairs):
            return {}
        later = (*plan.later, msgspec.structs.replace(session, agents=tuple(configs)))
        self._write(msgspec.structs.replace(plan, agents=agents, later=later), configs)
        return session.since(plan.sessions[-1])

    def _write(self, plan: Plan, configs: Mapping[str, Config]) -> None:
        """Write the folders of agents, then the plan that names them. After a crash in between, the benchmark is as before."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            plan = msgspec.structs.replace(plan, tasks=conceal(plan.tasks, Config())[0])
            for name, config in configs.items():
                where = self.agent_path(name)
                (where / "run.json").unlink(missing_ok=True)  # left by a creation that was interrupted
                manifest = Manifest(
                    tasks=plan.tasks, agent=name, benchmark=not plan.own, oracle=config.value.kind == "oracle",
                    trained_with_reward=config.value.kind == "reward", versions=plan.sessions[-1].versions,
                )  # fmt: skip
                RunFolder.create(where, manifest, dump(conceal((), config)[1]))
            write_whole(self.path / "bench.json", msgspec.json.format(msgspec.json.encode(plan)))
        except OSError as error:
            raise JournalError(f"cannot write {self.path}: {error.strerror}: choose another output folder") from error

    @property
    def plan(self) -> Plan:
        """The plan in bench.json. Raises JournalError if it cannot be read."""
        try:
            plan = decoded(read_bounded(self.path / "bench.json", MOST["bench.json"]), Plan)
            checked_names(plan.agents)  # they are names of folders, which a stranger's benchmark may place anywhere
        except (OSError, ValueError, UsageError) as error:
            raise JournalError(f"{self.path / 'bench.json'} does not read: {error}") from error
        return plan

    def agent_path(self, agent: str) -> Path:
        """Return the path of one agent's run folder."""
        return self.path / "agents" / agent

    def agent(self, agent: str) -> tuple[RunFolder, Config]:
        """Return one agent's run folder and its configuration."""
        return reopen(self.agent_path(agent))

    def replays(self, agent: str) -> dict[str, Replay]:
        """Return the replays of one agent by task id."""
        return {each.task: each for each in read_lines(self.agent_path(agent) / "replays.jsonl", Replay)}

    def attempts(self) -> list[AttemptRecord]:
        """Return every ended attempt, in the order in which they ended."""
        return list(read_lines(self.path / "attempts.jsonl", AttemptRecord))

    def results(self) -> list[Result]:
        """Return the lines of results.jsonl."""
        return list(read_lines(self.path / "results.jsonl", Result))

    def numbers(self) -> dict[tuple[str, str], int]:
        """Return the number of the next attempt, by agent and task, for each whose last one ended with an infrastructure failure."""
        return {pair: number + 1 for pair, number in self._last(failed=True).items()}

    def _last(self, *, failed: bool) -> dict[tuple[str, str], int]:
        """Return the number of the last attempt, or of the last that `failed`, by agent and task."""
        last: dict[tuple[str, str], int] = {}
        for each in self.attempts():
            if not each.replay and (each.status == "failed" or not failed):
                last[each.agent, each.task] = max(each.number, last.get((each.agent, each.task), 1))
        return last

    def gather(self) -> dict[tuple[str, str], Result]:
        """Return the result by agent and task, from the agents' folders, in the order of the plan.

        An attempt that was promoted has no result before its replay has ended.
        """
        plan, numbers = self.plan, self._last(failed=False)
        ends = {agent: {line.task: line for line in self.agent(agent)[0].results()} for agent in plan.agents}
        replays = {agent: self.replays(agent) for agent in plan.agents}
        return {
            (agent, task.id): result_of(line, replay, numbers.get((agent, task.id), 1))
            for agent, task in plan.pairs
            if (line := ends[agent].get(task.id)) is not None
            and ((replay := replays[agent].get(task.id)) is not None or not (line.promoted and line.status == "scored"))
        }

    def done(self) -> dict[tuple[str, str], Result]:
        """Return the results that are final. Failed attempts are run again when the benchmark is resumed."""
        return {pair: each for pair, each in self.gather().items() if each.status != "failed"}

    def write_results(self, results: Mapping[tuple[str, str], Result]) -> None:
        """Write results.jsonl, with the results so far in the order of the plan. Raises JournalError."""
        ordered = [results[agent, task.id] for agent, task in self.plan.pairs if (agent, task.id) in results]
        write_file(self.path / "results.jsonl", b"".join(msgspec.json.encode(each) + b"\n" for each in ordered))


def result_of(line: ResultLine, replay: Replay | None, attempts: int) -> Result:
    """Return the result of an attempt: with the score of its replay if there is one, otherwise of the live environment."""
    fields = {name: getattr(line, name) for name in line.__struct_fields__ if name in Result.__struct_fields__}
    if replay is not None and replay.match == "failed":
        fields |= {"status": "failed", "score": None, "raw": None, "reason": replay.reason, "missing": replay.missing}
    elif replay is not None and line.status == "scored":
        fields |= {"score": replay.score, "raw": replay.raw, "missing": replay.missing}
    elif replay is not None and replay.score is not None:  # adopted: the attempt had no evaluator's score
        fields |= {"status": "scored", "score": replay.score, "raw": replay.raw, "reason": replay.reason, "missing": replay.missing}
    return Result(**fields | {"live_score": line.score, "replay": replay.match if replay else "", "attempts": attempts})


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically. Raises JournalError."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}: free some space, then `exact bench --resume`") from error
