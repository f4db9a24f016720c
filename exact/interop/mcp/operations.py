"""Operations behind the tools of the MCP server, as plain data. Nothing here knows the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exact.config import Config, load_recorded
from exact.errors import ExactError, InfrastructureError, UsageError, unknown
from exact.library.run import Run, Runner
from exact.library.tasks import named, page_task, task_of
from exact.origins import origin
from exact.prompts.fence import fence, one_line
from exact.runs.attempt.person import Ask
from exact.runs.folder_check import memory_file
from exact.runs.journal.events import AnyEvent
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import ResultLine, RunFolder
from exact.runs.runner import check_models, create
from exact.task import Task
from exact.text import counted, inert

TEXT = 12_000
"""Maximum characters of one text from a page, a model or a tree. A longer text is cut at its end, with a note."""
LINE = 300
"""Maximum characters of a line, such as a reason."""
MANY = 200
"""Maximum entries of a list. Further ones are counted."""

Report = Callable[[int, str], None]
"""A function that is informed of an attempt's progress: the number of events so far, and one line about it."""


class Operations:
    """One configuration, one folder of runs, and the operations that a client may ask for.

    Texts from pages and models are fenced in the results, and every text and list is bounded.
    """

    def __init__(self, config: Config, runs: Path, *, origins: Sequence[str] = ()) -> None:
        """Make the operations of a server.

        Args:
            config: The agent, its models, limits and browser. A client cannot change them.
            runs: Folder that runs are written to and read from. A client names runs in it, never paths.
            origins: Origins that a client may have opened by address; empty for all.

        Raises UsageError if a key or a price is missing, or an origin is invalid.
        """
        if bad := next((each for each in origins if not origin(each)), None):
            raise UsageError(f"invalid --origin {bad!r}: write scheme://host[:port], such as https://example.org")
        check_models(config)
        self._config, self._runs, self._origins = config, runs, frozenset(origin(each) for each in origins)
        self._turn = asyncio.Lock()

    def list_tasks(self, pattern: str = "", limit: int = 50) -> dict[str, Any]:
        """Return the suites with their sizes, or the ids of a suite (`miniwob`) or a pattern (`miniwob/click-*`). Raises UsageError."""
        from exact.benchmarks import registry

        if not pattern:
            return {"suites": {name: _size(suite) for name, suite in registry.suites().items()}}
        ids = [task.id for task in registry.expand([pattern])] if "/" in pattern else list(registry.suite(pattern).ids())
        return {"tasks": ids[: _bounded(limit)], "total": len(ids)}

    async def solve(
        self, task: str = "", url: str = "", instruction: str = "", *, report: Report = lambda n, text: None, ask: Ask | None = None
    ) -> dict[str, Any]:
        """Attempt a task of a benchmark, or an instruction from an address on, in a new run. Attempts wait for each other.

        Args:
            task: Id of a benchmark's task. Excludes `url` and `instruction`.
            url: Address of the first page.
            instruction: The goal in words.
            report: Told of the progress.
            ask: Asks a person, if `browser.confirm` or `browser.ask_user` wants one. None: actions that need a yes are refused.

        Raises UsageError, JournalError, and InfrastructureError if the attempt failed.
        """
        chosen = self._task(task, url, instruction)
        if self._turn.locked():
            report(0, "waiting for another attempt to end")
        async with self._turn:
            folder = self._new_run(chosen, benchmark=bool(task))
            line = await self._attempt(folder, bool(task), report, ask)
        if line.status == "failed":
            way = f": resume with `exact resume {folder.path}`" if line.resumable else ""
            raise InfrastructureError(f"the attempt failed without a score: {line.reason}{way}")
        return {"run": folder.path.name, **_outcome(line), **_texts(line, Run(folder.path).tree(chosen.id).root.path())}

    def list_runs(self, limit: int = 20) -> dict[str, Any]:
        """Return the newest runs, with the results of their tasks."""
        paths = self._paths()
        newest = sorted(paths.values(), key=lambda path: (path / "run.json").stat().st_mtime, reverse=True)
        return {"runs": [_described(path) for path in newest[: _bounded(limit)]], "total": len(paths)}

    def show_tree(self, run: str, task: str = "", depth: int = 3) -> dict[str, Any]:
        """Return the tree of an attempt, to a depth, with visits N, values Q and V, and priors P. Raises UsageError, JournalError."""
        from exact.search.inspect.text import draw, summary

        opened, chosen = self._attempted(run, task)
        tree = opened.tree(chosen.id)
        drawn = draw(tree, max(1, min(depth, 50)))
        return {
            "run": run,
            "task": inert(chosen.id),
            "summary": summary(tree),
            "best": _lines((edge.action.key for edge in _principal(opened, tree)), "actions"),
            "tree": fence(drawn, "search tree", TEXT),
        }

    def show_state(self, run: str, node: int, task: str = "") -> dict[str, Any]:
        """Return one state of an attempt: the page's observation, its evaluation and its actions. Raises UsageError, JournalError."""
        from exact.search.inspect.text import label, state_label

        opened, chosen = self._attempted(run, task)
        tree = opened.tree(chosen.id)
        if not 0 <= node < len(tree.nodes):
            raise UsageError(f"no state {node}: this tree has the states 0 to {len(tree.nodes) - 1}")
        state = tree.nodes[node]
        found: dict[str, Any] = {"run": run, "task": inert(chosen.id), "state": state_label(state), "depth": state.depth}
        if state.observation:
            seen = RunFolder.open(opened.path).blobs.get_observation(state.observation)
            found["page"] = fence(f"{seen.url}\n{seen.title}\n{seen.text}", "page text", TEXT)
        if state.evaluation is not None and state.evaluation.rationale:
            found["evaluation"] = fence(state.evaluation.rationale, "evaluation", TEXT)
        rows = (f"{label(edge)}{f'  -> state {edge.child.id}' if edge.child else ''}  {edge.rationale}" for edge in state.edges)
        return {**found, "actions": _lines(rows, "actions")}

    def search_memory(self, words: str, run: str = "", limit: int = 10) -> dict[str, Any]:
        """Return reflections that contain some of the words, the best match first.

        They are those of a run, or of the memory that the server's configuration names. Raises UsageError.
        """
        from exact.reflection.memory.open import open_memory

        with open_memory(self._memory(run), browse=True) as memory:
            found = memory.search(words, k=min(_bounded(limit), 50))
        return {
            "reflections": [
                {
                    "id": each.reflection.id,
                    "kind": each.reflection.kind,
                    "task": one_line(inert(each.reflection.task), LINE),
                    "retrieved": each.retrieved,
                    "helped": each.helped,
                    "hurt": each.hurt,
                    "text": fence(each.reflection.text, "reflection", 1000),
                }
                for each in found
            ]
        }

    def _task(self, task: str, url: str, instruction: str) -> Task:
        if task and not (url or instruction):
            return task_of(task, own=False)  # a client names no code
        if task or not (url and instruction):
            raise UsageError("give either task (an id that list_tasks shows), or url and instruction")
        found = page_task(url, instruction)
        if self._origins and origin(url) not in self._origins:
            raise UsageError(f"{origin(url)} may not be opened here: allowed: {', '.join(sorted(self._origins))}")
        return found

    async def _attempt(self, folder: RunFolder, benchmark: bool, report: Report, ask: Ask | None) -> ResultLine:
        from exact.benchmarks.open import open_environments

        config, events = self._config, 0

        def watch(task: Task, state: AttemptState, event: AnyEvent) -> None:
            nonlocal events
            events += 1
            report(events, _progress(state))

        runner = Runner(
            folder=folder,
            config=config,
            open_environments=lambda task: open_environments(task, config, benchmark=benchmark),
            watch=watch,
            ask=ask,
        )
        [line] = await runner.run()
        return line

    def _new_run(self, task: Task, *, benchmark: bool) -> RunFolder:
        self._runs.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1_000_000):
            path = self._runs / f"mcp-{number}"
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return create(path, (task,), self._config, benchmark=benchmark)
        raise UsageError(f"{self._runs} holds a million runs: start the server with another --runs")

    def _paths(self) -> dict[str, Path]:
        """Return the folders of the runs, by name."""
        if not self._runs.is_dir():
            return {}
        return {path.name: path for path in self._runs.iterdir() if (path / "run.json").is_file()}

    def _run(self, name: str) -> Path:
        paths = self._paths()
        if name not in paths:
            raise unknown("run", name, paths) if paths else UsageError(f"no run {name!r}: there is none yet; call solve first")
        return paths[name]

    def _attempted(self, run: str, task: str) -> tuple[Run, Task]:
        opened = Run(self._run(run))
        chosen = named(opened.tasks, task or None)
        if not (RunFolder.open(opened.path).task_folder(chosen) / "journal.jsonl").exists():
            raise UsageError(f"task {chosen.id!r} of run {run!r} was not started")
        return opened, chosen

    def _memory(self, run: str) -> str | Path:
        configured = self._config.reflection.memory
        if not run:
            if not configured:
                raise UsageError("no memory: name a run, or start the server with --set reflection.memory=FILE")
            if not configured.startswith(("postgresql://", "postgres://")) and not Path(configured).is_file():
                raise UsageError(f"no memory at {configured} yet: it is made by the first attempt that reflects")
            return configured
        path = self._run(run)
        if (own := memory_file(path)).is_file():
            return own
        if configured and load_recorded(path).reflection.memory == configured:
            return self._memory("")
        raise UsageError(f"run {run!r} has no memory of its own: its agent wrote no reflections, or wrote them elsewhere")


def _size(suite: Any) -> int | str:
    try:
        return len(list(suite.ids()))
    except ExactError as error:
        return f"not installed: {one_line(str(error), LINE)}"


def _bounded(limit: int) -> int:
    return max(1, min(limit, MANY))


def _progress(state: AttemptState) -> str:
    best = max((edge.value for edge in state.search.tree.root.edges if edge.value is not None), default=None)
    parts = [
        counted(len(state.search.tree.nodes), "state"),
        counted(int(state.spending.task.spent.get("actions", 0)), "action") + " committed",
    ]
    return ", ".join(parts + ([] if best is None else [f"best value {best:.2f}"]))


def _outcome(line: ResultLine) -> dict[str, Any]:
    """Return the figures of a result."""
    return {
        "task": inert(line.task),
        "status": line.status,
        "score": line.score,
        "value": line.value,
        "reason": one_line(inert(line.reason), LINE),
        "transitions": line.transitions,
        "calls": line.calls,
        "cost": line.cost,
        "seconds": line.seconds,
    }


def _texts(line: ResultLine, path: Sequence[Any]) -> dict[str, Any]:
    """Return the answer and the actions."""
    answer = None if line.answer is None else fence(line.answer, "answer", TEXT)
    return {"answer": answer, "actions": _lines((edge.action.key for edge in path), "actions")}


def _lines(rows: Any, label: str) -> str:
    """Return rows as one fenced text, a line each."""
    found = [one_line(row, LINE) for row in rows]
    rest = [f"(... {counted(len(found) - MANY, 'further line')})"] if len(found) > MANY else []
    return fence("\n".join(found[:MANY] + rest), label, TEXT)


def _principal(run: Run, tree: Any) -> list[Any]:
    """Return the best actions from the first root on, one after the other."""
    from exact.search.registry import final_choice
    from exact.search.rules.final import principal

    node, found = tree.nodes[0], []
    for index in principal(tree, final_choice(run.config.search), node):
        found.append(node.edges[index])
        node = node.edges[index].child or node
    return found


def _described(path: Path) -> dict[str, Any]:
    try:
        run = Run(path)
        results = [_outcome(ResultLine(**line)) for line in run.results()]
        return {"run": inert(path.name), "tasks": [inert(task.id) for task in run.tasks[:MANY]], "results": results[-MANY:]}
    except ExactError as error:
        return {"run": inert(path.name), "error": one_line(inert(str(error)), LINE)}
