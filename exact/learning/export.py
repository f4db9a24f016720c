"""Exports: journals read one after another, and written as lines of one file with a manifest beside it.

Files that are written line by line and appear only when they are whole.

Replays of exported conversations: their answers carried out again, one after another, in a fresh environment.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from exact.agents.parse import parse_action
from exact.config import Config, ViewConfig
from exact.context import copied_texts
from exact.environments.backtracking import BacktrackingEnvironment
from exact.environments.base import Environment
from exact.errors import ActionError, UsageError
from exact.learning.attempts import JournaledAttempt, attempts, run_folders
from exact.learning.filters import Filters
from exact.learning.formats import Format, Pictures, text_of, written
from exact.learning.records import CONVERSATIONS, Kind, Skipped, TrainingRecord, records
from exact.learning.states import StateTexts
from exact.models.base import Image, Message, Text, pictures_once
from exact.models.tokens import TURN, rough
from exact.runs.journal.store import RunFolder, write_whole
from exact.runs.secrets import known_secrets
from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.secrecy.shapes import shapes
from exact.task import Task
from exact.version import __version__

Progress = Callable[[str], None]
Chosen = Callable[[RunFolder], Sequence[Task]]
"""Selects the tasks of a run."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request for an export: the records and their format."""

    kind: Kind
    form: Format = "conversational"
    filters: Filters = Filters()
    view: Config | None = None
    """Configuration whose `view`, `policy` and `value` say how states are shown. None: that of each run."""
    pictures: bool | None = None
    """Whether to show screenshots. None: as `view` says."""
    margin: float = 0.1
    """Least difference of values of a preference."""


class AttemptLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Outcome of one attempt in an export."""

    task: str
    journal: str
    """Hex SHA-256 of the journal."""
    records: int = 0
    left_out: str = ""
    """Reason why the whole attempt is left out."""
    damage: str = ""
    """Reason why the journal was not read to its end."""
    skipped: tuple[str, ...] = ()
    """Parts that gave no record, each with its reason: the first ones."""


class RunLine(msgspec.Struct, kw_only=True):
    """Outcome of one run in an export."""

    run: str
    agent: str
    versions: dict[str, str]
    attempts: list[AttemptLine] = []


class ExportManifest(msgspec.Struct, kw_only=True):
    """The contents of an export, its provenance, and the parts left out."""

    exact: str
    kind: Kind
    format: Format
    filters: Filters
    margin: float
    file: str
    sha256: str = ""
    bytes: int = 0
    records: int = 0
    attempts: int = 0
    """Attempts that gave a record."""
    answers: int = 0
    """Answers of the agent in all records."""
    tokens: int = 0
    """Tokens of all records, by an estimate; for rollouts those of the completions, exactly."""
    trained_tokens: int = 0
    """Tokens that are learned."""
    pictures: int = 0
    duplicates: int = 0
    scrubbed: int = 0
    """Records in which a known secret was replaced."""
    left_out: dict[str, int] = {}
    """Attempts and records that were left out, by reason."""
    skipped: dict[str, int] = {}
    """Number of parts that gave no record, by reason."""
    damaged: int = 0
    """Journals that were not read to their end."""
    runs: list[RunLine] = []


_MOST_NAMED = 5
"""Skipped parts that are named for one attempt."""


def export(
    request: Request, runs: Sequence[Path], out: Path, *, chosen: Chosen = lambda run: run.manifest.tasks, progress: Progress
) -> ExportManifest:
    """Write the records of runs to a file, with `FILE.manifest.json` beside it, and return the manifest.

    One attempt is in memory at a time. The file appears when it is whole; on an error it does not appear, and an older one stays. Raises
    UsageError if a folder holds no run or nothing is left to export; OSError if the file cannot be written.
    """
    folders = run_folders(runs)
    manifest = ExportManifest(
        exact=__version__, kind=request.kind, format=request.form, filters=request.filters, margin=request.margin, file=out.name
    )
    with LineWriter(out) as writer:
        job = _Export(request, writer, manifest)
        for folder in folders:
            job.run(folder, chosen(folder), progress)
        if not writer.lines:
            raise UsageError(_nothing(manifest))
        manifest.records, manifest.bytes, manifest.pictures = writer.lines, writer.bytes, writer.pictures
        manifest.sha256 = writer.commit()
    write_whole(out.with_name(f"{out.name}.manifest.json"), msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


def _nothing(manifest: ExportManifest) -> str:
    reasons = Counter(manifest.left_out) + Counter(manifest.skipped)
    why = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3)) or "no attempt has what it needs"
    hint = ": --outcome any also takes attempts that were not solved" if manifest.left_out.keys() & {"not solved", "not scored"} else ""
    return f"nothing to export as {manifest.kind}: {why}{hint}"


class _Export:
    """One export while it is made."""

    def __init__(self, request: Request, writer: LineWriter, manifest: ExportManifest) -> None:
        self._request, self._writer, self._manifest = request, writer, manifest
        self._left_out, self._skipped, self._sites = Counter[str](), Counter[str](), Counter[str]()
        self._scrubber: Scrubber = NOTHING

    def run(self, folder: RunFolder, tasks: Sequence[Task], progress: Progress) -> None:
        """Export the attempts of a run."""
        whole = folder.manifest
        line = RunLine(run=str(folder.path), agent=whole.agent, versions=dict(whole.versions))
        self._manifest.runs.append(line)
        for number, attempt in enumerate(attempts(folder, tasks), 1):
            if number == 1:
                self._scrubber = Scrubber(known_secrets(whole.tasks, attempt.config))
            line.attempts.append(self._attempt(attempt))
            progress(f"{folder.path}: {number} of {len(tasks)}, {self._writer.lines:,} records")
        self._manifest.left_out, self._manifest.skipped = dict(self._left_out), dict(self._skipped)

    def _attempt(self, attempt: JournaledAttempt) -> AttemptLine:
        request, line = self._request, AttemptLine(task=attempt.task.id, journal=attempt.digest, damage=attempt.damage)
        self._manifest.damaged += bool(attempt.damage)
        if reason := request.filters.of_attempt(attempt, request.kind, self._sites):
            self._left_out[reason] += 1
            line.left_out = reason
            return line
        config, view = request.view or attempt.config, _view(request, attempt)
        texts, before, named = StateTexts(attempt, config.policy, config.value, view), self._writer.lines, list[str]()
        shows = (
            (attempt.config.view.images if request.pictures is None else request.pictures) if request.kind == "rollouts" else view.images
        )
        by_step = request.form == "prompt-completion" and request.kind in CONVERSATIONS
        for found in records(request.kind, texts, by_step=by_step, margin=request.margin):
            if isinstance(found, Skipped):
                self._skipped[_without_names(found.reason)] += 1
                named.append(found.reason if found.node < 0 else f"{found.node}: {found.reason}")
            else:
                self._record(attempt, _with_pictures_once(found) if shows else found, shows)
        line.records, line.skipped = self._writer.lines - before, tuple(named[:_MOST_NAMED])
        self._manifest.attempts += line.records > 0
        self._sites[attempt.site] += line.records > 0
        return line

    def _record(self, attempt: JournaledAttempt, record: TrainingRecord, shows: bool) -> None:
        manifest, form = self._manifest, self._request.form
        clean = _scrubbed(record, self._scrubber)
        tokens, trained = token_counts(clean, shows)
        reason = self._request.filters.of_record(record, tokens) or _told(record, clean)
        if reason:
            self._left_out[reason] += 1
            return
        content = [msgspec.to_builtins(each) for each in (clean.prompt, clean.completion, clean.rejected)]
        if not self._writer.is_new(content, clean.columns.get("completion_ids")):
            manifest.duplicates += 1
            return
        pictures = Pictures(f"{self._writer.path.stem}_pictures", self._writer.store) if shows else None
        self._writer.write(written(clean, form, pictures, _about(attempt, clean), attempt.reward))
        manifest.scrubbed += clean is not record
        manifest.answers += record.steps
        manifest.tokens, manifest.trained_tokens = manifest.tokens + tokens, manifest.trained_tokens + trained


def _view(request: Request, attempt: JournaledAttempt) -> ViewConfig:
    """Return the view of the states that a request asks for."""
    view = (request.view or attempt.config).view
    return view if request.pictures is None else msgspec.structs.replace(view, images=request.pictures)


def _about(attempt: JournaledAttempt, record: TrainingRecord) -> dict[str, Any]:
    """Return the provenance of a record. Every record of a kind has the same keys."""
    return {
        "run": attempt.run,
        "task": attempt.task.id,
        "node": record.node,
        "steps": record.steps,
        "back": record.back,
        "end": record.end,
        "terminated": record.terminated,
        "score": attempt.reward,
    }


def token_counts(record: TrainingRecord, pictures: bool = False) -> tuple[int, int]:
    """Return the tokens of a record and those of them that are learned: exact if it has token ids, else estimated."""
    if (ids := record.columns.get("completion_ids")) is not None:
        return len(ids) + len(record.columns.get("prompt_ids") or ()), sum(record.columns["completion_mask"])
    answers = (*record.completion, *record.rejected)
    trained = record.trained or tuple(message.role == "assistant" for message in record.completion)
    learned = sum(map(_tokens, (m for m, learn in zip(record.completion, trained, strict=True) if learn))) + sum(
        map(_tokens, record.rejected)
    )
    shown = sum(isinstance(part, Image) for message in record.prompt + answers for part in message.parts) if pictures else 0
    return sum(map(_tokens, record.prompt + answers)) + 1000 * shown, learned


def _tokens(message: Message) -> int:
    return TURN + rough(text_of(message))


def _with_pictures_once(record: TrainingRecord) -> TrainingRecord:
    """Return a record with each picture once, as a model is shown them. A rollout is as it was sent, as its token ids are."""
    if "completion_ids" in record.columns:
        return record
    start = len(record.prompt)
    turns = pictures_once(record.prompt + record.completion)
    rejected = pictures_once(record.prompt + record.rejected)[start:]
    return msgspec.structs.replace(record, prompt=turns[:start], completion=turns[start:], rejected=rejected)


def _scrubbed(record: TrainingRecord, scrubber: Scrubber) -> TrainingRecord:
    """Return a record without the known secrets. The same object if it holds none."""
    if not scrubber:
        return record
    plain = [[_plain(message) for message in turns] for turns in (record.prompt, record.completion, record.rejected)]
    columns = {name: value for name, value in record.columns.items() if not name.endswith("_ids")}
    given = [plain, columns]
    done = scrubber.value(given, keep_words=True)
    if done is given:
        return record
    prompt, completion, rejected = (tuple(map(_rewritten, turns, texts)) for turns, texts in
                                    zip((record.prompt, record.completion, record.rejected), done[0], strict=True))  # fmt: skip
    changed = {name: done[1].get(name, value) for name, value in record.columns.items()}
    return msgspec.structs.replace(record, prompt=prompt, completion=completion, rejected=rejected, columns=changed)


def _told(record: TrainingRecord, clean: TrainingRecord) -> str:
    """Return the reason if a record reveals a secret although it was scrubbed; empty if it reveals none. `clean`: the scrubbed record."""
    if clean is not record and "completion_ids" in record.columns:
        return "a secret in its token ids"
    return "the shape of a secret" if _has_secret_shape(clean) else ""


def _plain(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


def _rewritten(message: Message, texts: list[str]) -> Message:
    left = iter(texts)
    return Message(message.role, tuple(Text(next(left)) if isinstance(part, Text) else part for part in message.parts))


def _has_secret_shape(record: TrainingRecord) -> bool:
    return any(shapes(text_of(message)) for message in (*record.prompt, *record.completion, *record.rejected))


def _without_names(reason: str) -> str:
    """Return a reason without the names of blobs, so that equal reasons are counted together."""
    return " ".join("..." if len(word) >= 12 and all(sign in "0123456789abcdef" for sign in word) else word for word in reason.split())[
        :200
    ]


class LineWriter:
    """Writes lines of JSON to a temporary file beside the named one, which it replaces on `commit`.

    A with block that is left without a commit, by an error or by Ctrl-C, leaves no file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.bytes = path, 0, 0
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._hash = hashlib.sha256()
        self._seen = set[bytes]()
        self._pictures = set[str]()

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)

    def is_new(self, *content: Any) -> bool:
        """Return whether no equal content was seen before. 16 bytes a line are remembered."""
        digest = hashlib.blake2b(msgspec.json.encode(content), digest_size=16).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        data = msgspec.json.encode(line) + b"\n"
        self._file.write(data)
        self._hash.update(data)
        self.lines, self.bytes = self.lines + 1, self.bytes + len(data)

    def store(self, name: str, data: bytes) -> None:
        """Store a picture below the folder of the export, once. Its name is that of its content."""
        if name not in self._pictures:
            path = self.path.parent / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                write_whole(path, data)
            self._pictures.add(name)

    def commit(self) -> str:
        """Put the file in its place and return the hex SHA-256 of its content."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._part.replace(self.path)
        return self._hash.hexdigest()

    @property
    def pictures(self) -> int:
        """Pictures that the lines name."""
        return len(self._pictures)


class ReplayedConversation(NamedTuple):
    """State that a conversation led to."""

    end: str
    """Fingerprint of the last state; empty if the last action ended the episode."""
    terminated: bool
    refused: int
    """Answers without an action, or with one that the environment refused."""


async def replay(line: Mapping[str, Any], environment: Environment, task: Task, *, labels: bool = False) -> ReplayedConversation:
    """Carry out the answers of an exported conversation and return the state that they lead to.

    line: one line of an export in the format `conversational`, `chat` or `verifiers`. labels: whether its actions name elements by label.
    Raises EnvironmentFailure.
    """
    turns = line.get("messages") or [*line["prompt"], *line["completion"]]
    walked, refused, terminated = BacktrackingEnvironment(environment), 0, False
    seen = await walked.reset(task)
    shown = [seen]
    for turn in turns:
        if turn["role"] != "assistant":
            continue
        content = turn["content"]
        text = content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
        try:
            known = copied_texts(task.instruction, shown)
            transition = await walked.step(parse_action(text, walked.actions, seen, labels=labels, known=known).action)
        except ActionError:
            refused += 1
            continue
        terminated, seen = transition.terminated, transition.observation or seen
        shown.append(seen)
    return ReplayedConversation("" if terminated else seen.fingerprint, terminated, refused)
