"""The files of a benchmark.

bench.json  results.jsonl  attempts.jsonl  table.md  curve.svg  index.html
agents/<agent>/   a run folder: run.json  config.yaml  results.jsonl  replays.jsonl  tasks/  blobs/

What an attempt came to is in its agent's folder first; results.jsonl is made of those in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from exact.config import Config, dump
from exact.errors import JournalError, UsageError
from exact.evaluation.plan import BenchSession, Plan, checked_names
from exact.runs.journal.store import Line, Manifest, RunFolder, read_lines, write_whole
from exact.runs.runner import reopen


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The committed actions of an attempt, taken again in a fresh environment where nobody searched."""

    task: str
    score: float | None
    """In [0, 1]; None where they could not be taken again."""
    raw: float | None = None
    verdict: str
    """`same`: each state was the one of the attempt. `drifted`: one was not. `refused`: an action did not fit. `failed`: the infrastructure
    ended it, after all reruns, so that the attempt has no score."""
    reason: str = ""
    missing: str = ""
    """As `Line.missing`."""


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of attempts.jsonl: how one attempt ended, or a replay that the infrastructure ended, whether it counts or not."""

    agent: str
    task: str
    number: int
    """From 1; above 1 it was made again because the one before was ended by the infrastructure."""
    status: str
    reason: str = ""
    missing: str = ""
    """As `Line.missing`."""
    score: float | None = None
    hung: bool = False
    replay: bool = False
    """Whether it was a replay that failed; its attempt, of the same number, had come to its end."""
    seconds: float = 0.0


class Result(Line, frozen=True, kw_only=True):
    """One line of results.jsonl: the last attempt at one task and seed by one agent. `score` is what tables are made of."""

    live_score: float | None = None
    """Where the attempt ended. Else than `score` only if the live environment was one that search had used."""
    replay: str = ""
    """How the committed actions fared in a fresh environment; empty where the live environment was fresh itself."""
    attempts: int = 1
    """How many were made, those that the infrastructure ended included, replays not."""


class BenchFolder:
    """One benchmark on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, plan: Plan, configs: Mapping[str, Config]) -> BenchFolder:
        """A new benchmark. Raises UsageError if one is there already."""
        if (path / "bench.json").exists():
            raise UsageError(f"{path} already holds a benchmark: go on with `exact bench --resume --out {path}`, or choose another --out")
        folder = cls(path)
        folder._write(plan, configs)
        return folder

    @classmethod
    def open(cls, path: Path) -> BenchFolder:
        """An existing benchmark. Raises UsageError if there is none."""
        if not (path / "bench.json").exists():
            raise UsageError(f"no benchmark in {path}: it has no bench.json")
        return cls(path)

    def go_on(self, session: BenchSession, configs: Mapping[str, Config] | None = None) -> dict[str, tuple[str, str]]:
        """Another session, with further agents on the same tasks if any; what is not as in the last one, as `BenchSession.since` has it.

        Where nothing is left to be made there is none. Raises UsageError for names that will not do, JournalError.
        """
        plan, configs = self.plan, configs or {}
        agents = checked_names([*plan.agents, *configs])
        if not configs and len(self.done()) == len(plan.pairs):
            return {}
        later = (*plan.later, msgspec.structs.replace(session, agents=tuple(configs)))
        self._write(msgspec.structs.replace(plan, agents=agents, later=later), configs)
        return session.since(plan.sessions[-1])

    def _write(self, plan: Plan, configs: Mapping[str, Config]) -> None:
        """The folders of agents, then what names them: cut short in between, it is as before."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name, config in configs.items():
                where = self.agent_path(name)
                (where / "run.json").unlink(missing_ok=True)  # of a creation that was cut short
                manifest = Manifest(
                    tasks=plan.tasks, agent=name, benchmark=not plan.own, oracle=config.value.kind == "oracle",
                    versions=plan.sessions[-1].versions,
                )  # fmt: skip
                RunFolder.create(where, manifest, dump(config))
            write_whole(self.path / "bench.json", msgspec.json.format(msgspec.json.encode(plan)))
        except OSError as error:
            raise JournalError(f"cannot write {self.path}: {error.strerror}: choose another --out") from error

    @property
    def plan(self) -> Plan:
        """What was asked for. Raises JournalError if it does not read."""
        try:
            return msgspec.json.decode((self.path / "bench.json").read_bytes(), type=Plan)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JournalError(f"{self.path / 'bench.json'} does not read: {error}") from error

    def agent_path(self, agent: str) -> Path:
        """Where one agent's run lies."""
        return self.path / "agents" / agent

    def agent(self, agent: str) -> tuple[RunFolder, Config]:
        """One agent's run, and its configuration."""
        return reopen(self.agent_path(agent))

    def replays(self, agent: str) -> dict[str, Replay]:
        """By task."""
        return {each.task: each for each in read_lines(self.agent_path(agent) / "replays.jsonl", Replay)}

    def attempts(self) -> list[AttemptRecord]:
        """Every attempt that has ended, in that order."""
        return list(read_lines(self.path / "attempts.jsonl", AttemptRecord))

    def results(self) -> list[Result]:
        """What results.jsonl holds."""
        return list(read_lines(self.path / "results.jsonl", Result))

    def numbers(self) -> dict[tuple[str, str], int]:
        """The number of the next attempt where the infrastructure ended one: one more than were ended by it."""
        return {pair: number + 1 for pair, number in self._last(failed=True).items()}

    def _last(self, *, failed: bool) -> dict[tuple[str, str], int]:
        """The number of the last attempt that was made of each, or `failed`: of the last that failed."""
        found: dict[tuple[str, str], int] = {}
        for each in self.attempts():
            if not each.replay and (each.status == "failed" or not failed):
                found[each.agent, each.task] = max(each.number, found.get((each.agent, each.task), 1))
        return found

    def gather(self) -> dict[tuple[str, str], Result]:
        """The result of every agent and task that has one, from the agents' folders, in the order of the plan.

        An attempt that was promoted has none before its replay has ended.
        """
        plan, made = self.plan, self._last(failed=False)
        ends = {agent: {line.task: line for line in self.agent(agent)[0].results()} for agent in plan.agents}
        replays = {agent: self.replays(agent) for agent in plan.agents}
        return {
            (agent, task.id): result_of(line, replay, made.get((agent, task.id), 1))
            for agent, task in plan.pairs
            if (line := ends[agent].get(task.id)) is not None
            and ((replay := replays[agent].get(task.id)) is not None or not (line.promoted and line.status == "scored"))
        }

    def done(self) -> dict[tuple[str, str], Result]:
        """Those that nothing is left to be done about: failed ones are made again when it is gone on with."""
        return {pair: each for pair, each in self.gather().items() if each.status != "failed"}

    def write_results(self, results: Mapping[tuple[str, str], Result]) -> None:
        """results.jsonl as far as there are results, in the order of the plan. Raises JournalError."""
        ordered = [results[agent, task.id] for agent, task in self.plan.pairs if (agent, task.id) in results]
        write_file(self.path / "results.jsonl", b"".join(msgspec.json.encode(each) + b"\n" for each in ordered))


def result_of(line: Line, replay: Replay | None, attempts: int) -> Result:
    """What counts of an attempt: the score in a fresh environment, where there is one; that of the live environment else."""
    found = {name: getattr(line, name) for name in line.__struct_fields__ if name in Result.__struct_fields__}
    if replay is not None and replay.verdict == "failed":
        found |= {"status": "failed", "score": None, "raw": None, "reason": replay.reason, "missing": replay.missing}
    elif replay is not None and line.status == "scored":
        found |= {"score": replay.score, "raw": replay.raw, "missing": replay.missing}
    elif replay is not None and replay.score is not None:  # adopted: nobody had judged where the attempt ended
        found |= {"status": "scored", "score": replay.score, "raw": replay.raw, "reason": replay.reason, "missing": replay.missing}
    return Result(**found | {"live_score": line.score, "replay": replay.verdict if replay else "", "attempts": attempts})


def write_file(path: Path, data: bytes) -> None:
    """A whole file at once. Raises JournalError."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}: free some space, then `exact bench --resume`") from error
