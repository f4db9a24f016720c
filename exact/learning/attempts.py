"""The attempts of run folders, one at a time, read as far as their journals are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exact.config import Config, load_recorded
from exact.context import Context
from exact.errors import ExactError, JournalError, UsageError
from exact.runs.attempt.observations import agent_context
from exact.runs.journal import events as ev
from exact.runs.journal.file import Tail, is_being_written
from exact.runs.journal.search_state import AskMoment
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs, ResultLine, RunFolder
from exact.search.tree import Node
from exact.task import Score, Task


@dataclass(kw_only=True, eq=False)
class JournaledAttempt:
    """One attempt, read from its journal."""

    run: str
    """Path of the run folder as it was given."""
    task: Task
    config: Config
    blobs: Blobs
    state: AttemptState
    digest: str
    """Hex SHA-256 of the journal file."""
    line: ResultLine | None = None
    """Line of results.jsonl; None if there is none."""
    steps: list[tuple[ev.Acted, Node]] = field(default_factory=list)
    """Simulated steps in the order in which they were taken, each with the state that it was taken in."""
    damage: str = ""
    """Reason why the journal was not read to its end; empty if it was."""
    is_running: bool = False
    """Whether a process is writing the journal now."""

    @property
    def score(self) -> Score | None:
        """The benchmark's score; None if the attempt was not scored."""
        if self.state.live.scored is not None:
            return self.state.live.scored.score
        line = self.line
        if line is None or line.score is None:
            return None
        return Score(value=line.score, success=line.score == 1.0, raw=line.raw)

    @property
    def reward(self) -> float | None:
        """The benchmark's score as a number in [0, 1]; None if the attempt was not scored."""
        score = self.score
        return None if score is None else score.value

    @property
    def path(self) -> list[Node]:
        """The committed states, from the task's start."""
        return [self.state.search.tree.nodes[id] for id in self.state.live.path]

    def context(self, node: Node) -> Context:
        """Return the context that an agent is shown at a node. Raises JournalError if a part of it is missing."""
        return agent_context(self.state, self.blobs, self.task, node, AskMoment(node.depth, None, ()))

    @property
    def site(self) -> str:
        """Origin of the task's start, or the first part of its id if it has no start address."""
        scheme, found, rest = self.task.start.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}" if found else self.task.id.partition("/")[0]


def run_folders(paths: Sequence[Path]) -> list[RunFolder]:
    """Return the run folders at paths, those of a benchmark's agents among them, each once. Raises UsageError."""
    found: dict[Path, RunFolder] = {}
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"there is no run folder {path}")
        agents = sorted(each.parent for each in path.glob("agents/*/run.json")) if (path / "bench.json").exists() else [path]
        if not agents:
            raise UsageError(f"the benchmark in {path} holds no run yet: wait until its first attempt has begun")
        for each in agents:
            found.setdefault(each.resolve(), RunFolder.open(each))
    return list(found.values())


def attempts(folder: RunFolder, tasks: Sequence[Task]) -> Iterator[JournaledAttempt]:
    """Yield the attempts at the tasks of a run, one after another, so that one is in memory at a time.

    A damaged journal gives the events before the damage, with the reason. Raises UsageError, JournalError if the folder itself cannot be
    read.
    """
    config = load_recorded(folder.path)
    lines = {line.task: line for line in _results(folder)}
    for task in tasks:
        journal = folder.task_folder(task) / "journal.jsonl"
        if journal.exists():
            yield _attempt(folder, task, config, journal, lines.get(task.id))


def _results(folder: RunFolder) -> Iterator[ResultLine]:
    """Yield the lines of results.jsonl up to the first that cannot be read. Scores stand in the journals too."""
    try:
        yield from folder.results()
    except JournalError:
        return


def _attempt(folder: RunFolder, task: Task, config: Config, journal: Path, line: ResultLine | None) -> JournaledAttempt:
    with journal.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    state = AttemptState(config)
    found = JournaledAttempt(
        run=str(folder.path), task=task, config=config, blobs=folder.blobs, state=state, digest=digest, line=line,
        is_running=is_being_written(journal),
    )  # fmt: skip
    try:
        tail = Tail(journal)
        for event in tail.new():
            state.replay(event)
            if isinstance(event, ev.Acted):
                found.steps.append((event, state.search.tree.nodes[event.node]))
        if tail.torn and not found.is_running:  # a line that is still being written is not damage
            found.damage = "its last line is torn"
    except (ExactError, LookupError, AssertionError) as error:
        found.damage = str(error) or type(error).__name__
    if state.live.opened is not None and state.live.opened.task.id != task.id:
        found.damage = f"it is the journal of {state.live.opened.task.id}"
        found.state, found.steps = AttemptState(config), []
    return found
