"""The files of a run folder.

runs/<name>/  run.json  config.yaml  signature  results.jsonl  memory.sqlite  guest.log
  session.jsonl (of a session)
  tasks/<task id>/  journal.jsonl  tree.json  report.html
  blobs/<first two digits>/<sha256>
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import traceback
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from exact.errors import JournalError, UsageError
from exact.observation import Observation
from exact.runs.folder_check import MOST, MOST_BLOB, MOST_LINE, check_folder
from exact.runs.journal.aliases import current
from exact.runs.journal.session import FILE as SESSION
from exact.runs.journal.session import AnySessionEvent, tasks_of
from exact.runs.way import Way
from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.secrecy.values import Secret
from exact.signature import sign
from exact.task import Task
from exact.untrusted import decoded, open_regular, read_bounded

_NAME = re.compile(r"[0-9a-f]{64}")
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


class ResultLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of results.jsonl: the outcome of one attempt."""

    task: str
    seed: int
    """Seed of the task, which is also in its id where a suite draws problems by it. The seed of the run is in config.yaml."""
    agent: str
    policy: str = ""
    """Kind of the policy: a built-in one, or the name of a part of the user's own. Empty where it was not recorded."""
    value_function: str = ""
    """Kind of the value function, likewise."""
    status: str
    """Kind of the end. `scored`: by the benchmark. `judged`: by the agent alone, as there is no evaluator. `failed`: the infrastructure
    failed. `stopped`: interrupted, or nothing left to do. `needs_user`: the page wants what only a person can do, such as a captcha."""
    score: float | None = None
    """Score in [0, 1]; None unless scored."""
    value: float | None = None
    """Value of the final state by the agent's own evaluation, in [0, 1]; None without one."""
    answer: str | None = None
    """Text of the final `stop`; None where the attempt gave no answer."""
    data: dict[str, Any] | None = None
    """Object that the final answer was put into; None where the task asks for none, or none fits its schema."""
    partial: bool = False
    """Whether the attempt ended before the agent had answered, so that `data` holds what was there."""
    reason: str = ""
    score_reason: str = ""
    """Reason that the evaluator gave for the score."""
    missing: str = ""
    """Missing part, where it is known. `answer`: scored 0, since the task asks for a final answer and none was given. Of a failed attempt,
    `environment`: a page, a site or the browser did not answer; `model`: a model that the agent asks did not; `judge`: a model that the
    benchmark's evaluator asks did not; `part`: a policy, value function, evaluator or the like raised an error; `commit`: an action may
    have been carried out before a crash."""
    actions: int = 0
    """Committed actions."""
    transitions: int = 0
    """Environment steps, replayed ones included."""
    evaluations: int = 0
    """Evaluations by the value function."""
    calls: int = 0
    """Model calls."""
    tokens: int = 0
    """Tokens of all model calls, input and output."""
    cost: float | None = 0.0
    """US dollars; None where a price was unknown."""
    unaccounted: int = 0
    """Requests to models that were given up on. Their tokens and cost are not included."""
    drifted: int = 0
    """Arrivals of a simulated environment at another state than it was sent to."""
    restores: int = 0
    """Returns of a simulated environment to another state, by a restore, a fork or a reset with replay."""
    promoted: int = 0
    """Commits at which a fork became the live environment."""
    raw: float | None = None
    """Score on the benchmark's own scale; None where it gives none."""
    failures: int = 0
    """Calls and environments that failed and were retried."""
    seconds: float = 0.0
    """Wall-clock seconds of the attempt, interruptions not counted."""
    oracle: bool = False
    """Whether the agent was informed of the benchmark's score."""
    informed: int | None = None
    """Evaluations of an oracle that hold the benchmark's score; with none it was no oracle. None for others, or where not counted."""
    trained_with_reward: bool = False
    """Whether the agent read the environment's rewards, as only training on tasks of no benchmark may."""
    same_task: bool = False
    """Whether reflections on the same task, with any seed, could be recalled."""
    followed: int = 0
    """Committed actions that the way of an earlier run said, without a search: see `exact run --from`."""
    healed: tuple[str, ...] = ()
    """Places at which the search found another way than the earlier run's, a line each."""
    touched: int = 0
    """Answers and interventions of people that changed what the agent did. With any, the attempt is not scored."""
    began: bool = True
    """Whether the start of the task was reached. Where it was not, nothing was searched and nothing was done."""
    resumable: bool = True
    """Whether `exact resume` may finish a failed attempt. False where only a new run can."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of run.json: what the run is to do."""

    tasks: tuple[Task, ...]
    agent: str
    benchmark: bool = True
    """Whether the tasks come from a suite; False where from `--url`."""
    oracle: bool = False
    """Whether the agent is informed of the benchmark's score: headroom, never a result."""
    trained_with_reward: bool = False
    """Whether the agent reads the environment's rewards, as only training on tasks of no benchmark may."""
    versions: dict[str, str] = {}
    ways: dict[str, Way] = {}
    """Ways of an earlier run that are carried out again, by the id of the task."""
    session: Task | None = None
    """Start of a session, whose goals are the tasks: they stand in session.jsonl. None for any other run."""


KEPT = 32
"""Observations that are kept in memory, the last used ones: each context of a search has those of all states on its path."""


class Blobs:
    """Content-addressed files. Equal content is stored once."""

    def __init__(self, folder: Path, scrubber: Scrubber = NOTHING, *, marks: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> None:
        """Use a folder. `scrubber` removes secrets from all that is stored. `marks`: what a detector found, by an observation's name."""
        self.folder, self.scrubber, self._marks = folder, scrubber, marks
        self._kept: dict[tuple[str, str], Observation] = {}

    def with_marks(self, marks: Mapping[str, tuple[str, ...]]) -> Blobs:
        """Return the same blobs, whose observations say what a detector found in them; `marks` may grow."""
        return Blobs(self.folder, self.scrubber, marks=marks)

    def put(self, data: bytes) -> str:
        """Store content and return its name, the hex SHA-256. It is on disk when this returns. Raises JournalError."""
        data = self.scrubber.data(data)
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
        """Return the content of a name. Raises JournalError where it is missing or damaged."""
        if not _NAME.fullmatch(name):
            raise JournalError(f"blob {name[:12]!r} is no name of a blob: the journal was not written by exact")
        try:
            data = read_bounded(self._path(name), MOST_BLOB)
        except OSError as error:
            raise JournalError(f"blob {name[:12]} is missing from {self.folder}: {error.strerror}") from error
        except UsageError as error:
            raise JournalError(f"blob {name[:12]} does not read: {error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise JournalError(f"blob {name[:12]} in {self.folder} is damaged: its content has another digest")
        return data

    def read(self, name: str, kind: type[T]) -> T:
        """Return the JSON of a name as a type. Raises JournalError."""
        try:
            return decoded(self.get(name), kind)
        except ValueError as error:
            raise JournalError(f"blob {name[:12]} in {self.folder} does not read: {error}") from error

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name

    def put_observation(self, observation: Observation) -> tuple[str, str]:
        """Store an observation. Return the names of its text form and of its screenshot, which is empty where there is none."""
        screenshot = self.put(observation.screenshot) if observation.screenshot else ""
        return self.put(msgspec.json.encode(msgspec.structs.replace(observation, screenshot=None, marked=()))), screenshot

    def get_observation(self, name: str, screenshot: str = "") -> Observation:
        """Return the observation of these names. Raises JournalError."""
        if (seen := self._kept.pop((name, screenshot), None)) is None:
            seen = msgspec.structs.replace(self.read(name, Observation), marked=(), screenshot=self.get(screenshot) if screenshot else None)
        self._kept[name, screenshot] = seen
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return msgspec.structs.replace(seen, marked=marked) if (marked := self._marks.get(name, ())) else seen


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scrubber = NOTHING
        self.blobs = Blobs(path / "blobs")

    def protect(self, secrets: Iterable[Secret]) -> None:
        """Remove secrets from all that is written from now on."""
        self.scrubber = self.blobs.scrubber = Scrubber(secrets)

    @classmethod
    def create(cls, path: Path, manifest: Manifest, config: str) -> RunFolder:
        """Create a run folder. Raises UsageError where the path holds a run, JournalError where it cannot be written."""
        if (path / "run.json").exists():
            raise UsageError(f"{path} already holds a run: `exact resume {path}`, or choose another output folder")
        if not is_text(str(path)):
            raise UsageError(f"the path {str(path)!r} is not UTF-8: choose another output folder")
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_whole(path / "config.yaml", config.encode())
            write_whole(path / "run.json", msgspec.json.format(msgspec.json.encode(manifest)))
            sign(path)
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}: choose another output folder") from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the run folder at a path. Raises UsageError where it holds no run."""
        if (path / "bench.json").exists():
            raise UsageError(
                f"{path} is a benchmark: name a run of it, {path}/agents/NAME; `exact show --progress` shows how far it is, and "
                f"`exact bench --resume --out {path}` resumes it"
            )
        if not (path / "run.json").exists():
            raise UsageError(f"no run in {path}: it has no run.json; name the folder that `exact run` wrote")
        check_folder(path)
        return cls(path)

    @property
    def manifest(self) -> Manifest:
        """Tasks and agent of the run. Raises JournalError where run.json does not read."""
        try:
            found = decoded(read_bounded(self.path / "run.json", MOST["run.json"]), Manifest)
        except (OSError, ValueError, UsageError) as error:
            raise JournalError(f"{self.path / 'run.json'} does not read: {error}") from error
        return found if found.session is None else msgspec.structs.replace(found, tasks=tasks_of(found.session, self.session()))

    def session(self) -> Iterator[AnySessionEvent]:
        """Yield the events of a session, none of another run. Raises JournalError where a line is invalid."""
        return read_lines(self.path / SESSION, AnySessionEvent)  # type: ignore[arg-type]

    def note(self, event: AnySessionEvent) -> None:
        """Append an event of a session. It is on disk when this returns. Raises JournalError."""
        append_line(self.path / SESSION, scrubbed(event, self.scrubber))

    def task_folder(self, task: Task) -> Path:
        """Return the folder of a task's journal and report. Distinct ids have distinct folders."""
        name = re.sub(r"[^A-Za-z0-9_.=-]+", "_", task.id)[:80]
        return self.path / "tasks" / f"{name}-{hashlib.sha256(task.id.encode()).hexdigest()[:8]}"

    def journal_of(self, task: Task) -> Path:
        """Return the journal of a task's attempt. Raises JournalError if it was not started."""
        path = self.task_folder(task) / "journal.jsonl"
        if not path.exists():
            raise JournalError(f"no journal of {task.id} in {self.path}: it was not started: `{self.resuming}` starts it")
        return path

    @property
    def resuming(self) -> str:
        """Command that resumes the run, or the benchmark that it belongs to."""
        bench = self.path.parent.parent
        return f"exact bench --resume --out {bench}" if (bench / "bench.json").exists() else f"exact resume {self.path}"

    def results(self) -> Iterator[ResultLine]:
        """Yield the finished attempts, without a torn last line. Raises JournalError where another line is invalid."""
        return read_lines(self.path / "results.jsonl", ResultLine)

    def add_result(self, line: ResultLine) -> None:
        """Append one finished attempt. It is on disk when this returns. Raises JournalError."""
        append_line(self.path / "results.jsonl", scrubbed(line, self.scrubber))


def log_error(folder: Path, about: str, error: BaseException, scrubber: Scrubber) -> None:
    """Append a traceback to errors.log in a folder, for the author of the failed code."""
    with (folder / "errors.log").open("a", errors="backslashreplace") as file:
        file.write(scrubber.text(f"{about}\n{''.join(traceback.format_exception(error))}\n"))


def is_text(text: str) -> bool:
    """Return whether a text can be stored: it holds no halves of characters, which names of files have that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def scrubbed(value: S, scrubber: Scrubber) -> S:
    """Return a struct with placeholders in place of secrets. Single words stay where a placeholder would not fit the type."""
    if not scrubber:
        return value
    plain = msgspec.to_builtins(value)
    done = scrubber.value(plain)
    if done is plain:
        return value
    try:
        return msgspec.convert(done, type(value))
    except msgspec.ValidationError:
        return msgspec.convert(scrubber.value(plain, keep_words=True), type(value))


def read_lines(path: Path, kind: type[S]) -> Iterator[S]:
    """Yield the JSON lines of a file, without a torn last one; none where the file is absent. Raises JournalError where one is invalid."""
    if path.exists():
        for number, line in enumerate(lines_of(path), 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decoded(current(line, path.name), kind)
            except (ValueError, RecursionError) as error:
                raise JournalError(f"{path}:{number} does not read: {error}") from error


def lines_of(path: Path, begin: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file from a place on, one at a time in memory; a torn last one lacks its end.

    Raises JournalError where the file does not read, or a line is longer than any of ours.
    """
    try:
        with BufferedReader(open_regular(path)) as file:
            file.seek(begin)
            while line := file.readline(MOST_LINE + 1):
                if len(line) > MOST_LINE:
                    raise UsageError(f"it has a line of more than {MOST_LINE:,} bytes, and was not written by exact")
                yield line
    except (OSError, UsageError) as error:
        raise JournalError(f"cannot read {path}: {getattr(error, 'strerror', '') or error}") from error


def append_line(path: Path, line: msgspec.Struct) -> None:
    """Append one line, in place of a torn last one. It is on disk when this returns. Raises JournalError."""
    try:
        with path.open("a+b") as file:
            data = path.read_bytes()
            file.truncate(data.rfind(b"\n") + 1)
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}: free some space, then `exact resume`") from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves either the old content or the new. Raises OSError."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # two threads may write one blob
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
