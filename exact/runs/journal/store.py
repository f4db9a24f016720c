"""The files of a run.

runs/<name>/  run.json  config.yaml  results.jsonl  memory.sqlite  guest.log
  tasks/<task id>/  journal.jsonl  tree.json  report.html
  blobs/<first two digits>/<sha256>
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from exact.errors import JournalError, UsageError
from exact.observation import Observation
from exact.runs.journal.aliases import current
from exact.task import Task

S = TypeVar("S", bound=msgspec.Struct)


class ResultLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of results.jsonl: the end of one attempt."""

    task: str
    seed: int
    """The task's, which is in its id too where a suite draws problems by it; the run's own is in config.yaml."""
    agent: str
    status: str
    """`scored`, `judged` (no evaluator), `failed` (infrastructure), `stopped` (interrupted or nothing left to do)."""
    score: float | None = None
    """In [0, 1]; None unless scored."""
    value: float | None = None
    """The agent's own estimate at the end, in [0, 1]."""
    reason: str = ""
    missing: str = ""
    """What was not there, where that is known. `answer`: scored 0, for the task asks for a final answer and none was given. Of what failed,
    `environment`: a page, a site or the browser did not answer; `model`: one that the agent asks did not; `judge`: one that the verdict
    asks."""
    actions: int = 0
    transitions: int = 0
    evaluations: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    """US dollars; None where a price was unknown."""
    unaccounted: int = 0
    """Requests to models that were given up on: what they took is not in tokens and cost."""
    drifted: int = 0
    restores: int = 0
    """Returns of a searched environment to another state, by whatever route."""
    promoted: int = 0
    """Commits at which the searched environment became the live one."""
    raw: float | None = None
    """The benchmark's own figure, on its own scale; None where it gives none."""
    failures: int = 0
    seconds: float = 0.0
    oracle: bool = False
    told: int | None = None
    """Of an oracle: how many of its judgements held a verdict; with none it was no oracle. None of others, and where it was not counted."""
    same_task: bool = False
    """Whether what was learned on the same task, any seed of it, could be shown."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """run.json: what the run was asked to do."""

    tasks: tuple[Task, ...]
    agent: str
    benchmark: bool = True
    """Whether the tasks come from a suite; else from `--url`."""
    oracle: bool = False
    """Whether the agent is told the benchmark's verdict: never a result, only headroom."""
    versions: dict[str, str] = {}


class Blobs:
    """Content-addressed files: equal content is kept once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """The name of the content: hex SHA-256. On disk when this returns. Raises JournalError."""
        name = hashlib.sha256(data).hexdigest()
        path = self._path(name)
        if not path.exists():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, data)
            except OSError as error:
                raise JournalError(f"cannot write {path}: {error.strerror}: free some space, then `exact resume`") from error
        return name

    def get(self, name: str) -> bytes:
        """The content of a name. Raises JournalError if it is missing or not what it was."""
        try:
            data = self._path(name).read_bytes()
        except OSError as error:
            raise JournalError(f"blob {name[:12]} is missing from {self.folder}: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise JournalError(f"blob {name[:12]} in {self.folder} is damaged: its content has another digest")
        return data

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name

    def put_observation(self, observation: Observation) -> tuple[str, str]:
        """Names of an observation's text form and of its screenshot (empty where there is none)."""
        screenshot = self.put(observation.screenshot) if observation.screenshot else ""
        return self.put(msgspec.json.encode(msgspec.structs.replace(observation, screenshot=None))), screenshot

    def get_observation(self, name: str, screenshot: str = "") -> Observation:
        """The observation of these names."""
        observation = msgspec.json.decode(self.get(name), type=Observation)
        return msgspec.structs.replace(observation, screenshot=self.get(screenshot)) if screenshot else observation


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = Blobs(path / "blobs")

    @classmethod
    def create(cls, path: Path, manifest: Manifest, config: str) -> RunFolder:
        """A new run. Raises UsageError if one is there already."""
        if (path / "run.json").exists():
            raise UsageError(f"{path} already holds a run: `exact resume {path}`, or choose another --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_whole(path / "config.yaml", config.encode())
            write_whole(path / "run.json", msgspec.json.format(msgspec.json.encode(manifest)))
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}: choose another --out") from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run. Raises UsageError if there is none."""
        if (path / "bench.json").exists():
            raise UsageError(
                f"{path} is a benchmark: go on with `exact bench --resume --out {path}`, or name a run of it, {path}/agents/NAME"
            )
        if not (path / "run.json").exists():
            raise UsageError(f"no run in {path}: it has no run.json")
        return cls(path)

    @property
    def manifest(self) -> Manifest:
        """What the run was asked to do. Raises JournalError if run.json does not read."""
        try:
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JournalError(f"{self.path / 'run.json'} does not read: {error}") from error

    def task_folder(self, task: Task) -> Path:
        """Where one task's journal and report lie. Distinct for distinct ids."""
        name = re.sub(r"[^A-Za-z0-9_.=-]+", "_", task.id)[:80]
        return self.path / "tasks" / f"{name}-{hashlib.sha256(task.id.encode()).hexdigest()[:8]}"

    def results(self) -> Iterator[ResultLine]:
        """The finished attempts; a torn last line is left out. Raises JournalError on any other that does not read."""
        return read_lines(self.path / "results.jsonl", ResultLine)

    def add_result(self, line: ResultLine) -> None:
        """Append one finished attempt; on disk when this returns. Raises JournalError."""
        append_line(self.path / "results.jsonl", line)


def read_lines(path: Path, kind: type[S]) -> Iterator[S]:
    """The JSON lines of a file, if it is there; a torn last one is left out. Raises JournalError on any other that does not read."""
    if path.exists():
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            try:
                yield msgspec.json.decode(current(line, path.name), type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise JournalError(f"{path}:{number} does not read: {error}") from error


def append_line(path: Path, line: msgspec.Struct) -> None:
    """Append one line, in place of a torn last one; on disk when this returns. Raises JournalError."""
    try:
        with path.open("a+b") as file:
            data = path.read_bytes()
            file.truncate(data.rfind(b"\n") + 1)
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
