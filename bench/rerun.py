"""What carrying yesterday's way out again costs: tasks on MoinMoin, Trac and Wagtail, solved by R-MCTS once and then by `exact run --from`.

The agents know the way of each task, whatever its labels are, among wrong actions: the policy of MoinMoin is a scripted model over HTTP,
those of Trac and Wagtail are objects (_guided.py). A call is a request of the policy or of the value function. The applications run
outside, so nothing is undone and simulated writes are blocked. Pages change between the runs (_changing_site.py):

  same        nothing
  relabelled  each link and button of the way has another label, and lists stand in the other order
  inserted    a notice stands before the first page that the way opens by an action that is not presumed to write, or before its start

A result counts as solved by the state of the server. MoinMoin needs a virtual environment of its own, which EXACT_MOIN names
(bench/third_party.py); the others need `shells/setup.sh --sites`.

    python bench/rerun.py                    all tasks
    python bench/rerun.py --quick            one task of Trac, under a minute

  rerun_calls_same, _relabelled, _inserted   calls of the reruns, as a share of the calls of the fresh searches
  rerun_success_loss                         tasks that a fresh search solved and a rerun did not, of all reruns
  rerun_writes_twice                         writes that a rerun sent and the fresh run had not, or more often than it
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from _common import Figure, Noise, finish, lacks, parser, table, versions
from _guided import SiteWay
from _moin.ways import WAYS
from _ways import Ways, block
from third_party import MOIN, PASSWORD, free_port, serves, site_files

from exact.action import Action, ActionSpace
from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import read
from exact.benchmarks.sites.suite import SERVER, TRAC, WAGTAIL, SiteSuite
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.sandbox.service import Service
from exact.errors import UsageError
from exact.library.rerun import approved, earlier_way
from exact.models.scripted import Question, ScriptedServer
from exact.observation import Observation
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import Blobs
from exact.runs.runner import Runner, create, reopen
from exact.runs.way import Way
from exact.task import Task

CHANGES = ("same", "relabelled", "inserted")
TASKS = {"moin": ("edit", "create", "rename", "delete", "revert", "subscribe", "quicklink", "settings", "count", "tags"),
         "trac": ("12", "13", "14", "15", "16", "17", "18", "21", "22", "23"),
         "wagtail": ("1", "10", "13", "16", "18", "20", "21", "22", "23", "26")}  # fmt: skip
QUICK = {"trac": ("21",)}
SEARCH = {"algorithm": "mcts", "iterations": 5, "k": 3, "depth": 3}
BROWSER = {"screenshots": False, "sandbox": "never", "person_seconds": 5}
"""Nobody watches: a write without a yes is refused soon."""
CONTINUE = "To the page"
READS = re.compile(r"/(\+(login|lookup|search|cspreport)|login/?|admin/login/|__reset__)|/preview|/editing-sessions/|/hooks/")
"""Addresses of requests that change nothing, or that log in."""
CHANGING_GETS = re.compile(r"^GET /\+(subscribe|quicklink|bookmark)")


@dataclass
class Place:
    """An application that runs, with its tasks."""

    name: str
    tasks: Sequence[Task]
    log: Path
    rules: Path
    open: Callable[[Task], Any]
    words: dict[str, str] = field(default_factory=dict)
    """New labels on its pages, by the old ones."""
    asked: int = 0
    """Questions to agents that are objects."""

    def change(self, rules: Mapping[str, Any]) -> None:
        """Change the pages from now on."""
        self.words = dict(rules.get("words", {}))
        self.rules.write_text(json.dumps(rules))

    def writes(self) -> Counter[str]:
        """Return the writes that came so far. Ids that a form draws anew are left out."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        found = [f"{line['method']} {line['path']}" for line in lines if not READS.search(line["path"])]
        found = [each for each in found if not each.startswith(("GET", "HEAD")) or CHANGING_GETS.match(each)]
        return Counter(re.sub(r"[0-9a-f]{32}", "ID", each) for each in found)


class ChangingSite(SiteSuite):
    """Trac or Wagtail, whose pages change."""

    def __init__(self, application: Any, rules: Path, log: Path) -> None:
        super().__init__(application)
        self._rules, self._log = rules, log

    async def _service(self, port: int, token: str) -> Service:
        service = await super()._service(port, token)
        at = service.command.index(str(SERVER))
        program = (str(Path(__file__).with_name("_changing_site.py")), str(self._rules), str(self._log))
        return msgspec.structs.replace(service, command=(*service.command[:at], *program, *service.command[at:]))


class ChangedWay(SiteWay):
    """The reference path by somebody who reads other labels, and goes on from a notice."""

    prior = 0.5

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self._place.asked += 1
        if (link := noticed(context.observation)) is not None:
            return (Proposal(action=actions.action("click", link), prior=0.7), Proposal(action=actions.action("go_back"), prior=0.3))
        return await super().propose(self._plain(context), actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        self._place.asked += 1
        found, last = await super().evaluate(self._plain(context)), context.history[-1] if context.history else None
        back = last is not None and noticed(last.observation) is not None and last.action.name == "go_back"
        return msgspec.structs.replace(found, value=found.value / 2) if back else found

    def _along(self, context: Context) -> tuple[int, int]:
        """Count as `KnownWay` does. Of elements with one role and name each is right: lists may stand in another order."""
        history = []
        for taken in context.history:
            right = self._right(context, super()._along(msgspec.structs.replace(context, history=tuple(history)))[0], taken.observation)
            alike = right is not None and named(right, taken.observation) == named(taken.action, taken.observation)
            history.append(msgspec.structs.replace(taken, action=right) if alike else taken)
        return super()._along(msgspec.structs.replace(context, history=tuple(history)))

    def _plain(self, context: Context) -> Context:
        """Return a context with the old labels and without notices."""
        old = {new: name for name, new in self._place.words.items()}
        history = tuple(
            msgspec.structs.replace(each, observation=renamed(each.observation, old))
            for each in context.history
            if noticed(each.observation) is None
        )
        return msgspec.structs.replace(context, observation=renamed(context.observation, old), history=history)


def noticed(seen: Observation) -> str | None:
    """Return the id of a notice's link; None for another page."""
    return next((each.id for each in seen.elements if each.role == "link" and each.name == CONTINUE), None)


def named(action: Action, seen: Observation) -> list[Any]:
    """Return an action with the roles and names of its elements in place of their ids."""
    known = {each.id: (each.role, each.name) for each in seen.elements}
    return [action.name, *(known.get(each, each) if isinstance(each, str) else each for each in action.args)]


def renamed(seen: Observation, old: Mapping[str, str]) -> Observation:
    elements = tuple(msgspec.structs.replace(each, name=old.get(each.name, each.name)) for each in seen.elements)
    return msgspec.structs.replace(seen, elements=elements)


@dataclass(frozen=True)
class ChangedWays:
    """The scripted model of MoinMoin, which reads other labels and goes on from a notice."""

    ways: Ways
    place: list[Place]

    def __call__(self, question: Question, sample: int) -> str:
        messages = [(role, self._plain(text)) for role, text in question.messages]
        system, text = messages[0][1], messages[-1][1]
        if (link := re.search(rf'\[(\d+)\] link "{CONTINUE}"', text)) is None:
            return self.ways.answers(msgspec.structs.replace(question, messages=messages), sample)
        if "Verdict" not in system:
            return f"It is on the way.\nAction: {'go_back' if sample % 3 == 0 else f'click [{link[1]}]'}"
        untried = "was not carried out" in text
        return f"As the page shows.\nVerdict: {'C' if not untried else 'B' if CONTINUE in block(text, 'steps') else 'E'}"

    def _plain(self, text: str) -> str:
        for old, new in self.place[0].words.items() if self.place else ():
            text = text.replace(f'"{new}"', f'"{old}"')
        return text


@asynccontextmanager
async def moin(work: Path, config: Any) -> AsyncIterator[Place]:
    """Run the wiki on this machine."""
    port, rules, log = free_port(), work / "rules.json", work / "requests.jsonl"
    tasks = read(site_files(MOIN, work / "site", port, "outside"))
    program = (Path(__file__).with_name("_changing_site.py"), rules, log, MOIN.files / "serve.py", port, work / "served")
    with (work / "server.log").open("ab") as said:
        process = subprocess.Popen([str(MOIN.interpreter()), *map(str, program)], stdout=said, stderr=said)  # noqa: ASYNC220
        try:
            if not await asyncio.to_thread(serves, process, port):
                raise SystemExit(f"moin does not serve:\n{(work / 'server.log').read_text()[-2000:]}")
            yield Place("moin", tasks, log, rules, lambda task: open_environments(task, config, benchmark=False))
        finally:
            process.terminate()
            process.wait()


@asynccontextmanager
async def place(name: str, work: Path, config: Any, models: list[Place]) -> AsyncIterator[Place]:
    """Run an application, whose pages are as they are."""
    work.mkdir(parents=True)  # noqa: ASYNC240
    (work / "rules.json").write_text("{}")
    if name == "moin":
        async with moin(work, config) as found:
            models[:] = [found]
            yield found
        return
    suite = ChangingSite({"trac": TRAC, "wagtail": WAGTAIL}[name], work / "rules.json", work / "requests.jsonl")
    async with suite.environments(config.browser) as environments:

        @asynccontextmanager
        async def opened(task: Task) -> AsyncIterator[Any]:
            yield environments

        yield Place(name, [suite.task(f"{name}/{each}") for each in TASKS[name]], work / "requests.jsonl", work / "rules.json", opened)


async def attempt(there: Place, task: Task, config: Any, folder: Path, earlier: Path | None) -> dict[str, Any]:
    """Attempt a task, along the way of an earlier run if there is one, and return its row."""
    from exact.agents.agent import Agent

    before, asked, began, ways = there.writes(), there.asked, time.monotonic(), {}
    if earlier is not None:
        task, way, blobs = earlier_way(earlier, task, {})
        ways = approved({task.id: (way, blobs)})
    run, config = reopen(create(folder, (task,), config, benchmark=False, ways=ways).path)
    known = None if there.name == "moin" else ChangedWay(there)
    build = None if known is None else lambda *_: Agent(policy=known, value=known)
    (line,) = await Runner(folder=run, config=config, open_environments=there.open, build_agent=build).run()
    return {
        "solved": line.score == 1.0, "status": line.status, "reason": line.reason, "calls": line.calls + there.asked - asked,
        "followed": line.followed, "healed": list(line.healed), "actions": line.actions, "transitions": line.transitions,
        "writes": dict(there.writes() - before), "seconds": round(time.monotonic() - began, 1),
        "guided": Counter(each.match for each in read_journal(run.journal_of(task)) if isinstance(each, ev.Guided)),
    }  # fmt: skip


def rules_of(change: str, way: Way, blobs: Blobs) -> dict[str, Any]:
    """Return how the pages change that a way goes over."""
    seen = [blobs.get_observation(step.observation) for step in way.steps]
    if change == "relabelled":
        pointed = [page.element(id) for step, page in zip(way.steps, seen, strict=True) for id in re.findall(r"\[(\d+)\]", step.action)]
        names = {each.name for each in pointed if each is not None and each.role in ("link", "button") and each.name.strip()}
        return {"words": {name: f"Now {name}" for name in sorted(names)}, "order": True}
    paths = [unquote(urlsplit(each.url).path) for each in seen]
    opened = (path for old, path, step in zip(paths, paths[1:], way.steps, strict=False) if path not in (old, paths[0]) and not step.wrote)
    return {"notice": next(opened, paths[0])} if change == "inserted" else {}


async def measure(only: Mapping[str, Sequence[str]], changes: Sequence[str], work: Path) -> tuple[list[dict[str, Any]], Noise]:
    """Attempt each task once, and carry its way out again on each kind of changed page."""
    noise, rows, models = Noise(), list[dict[str, Any]](), list[Place]()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedServer(ChangedWays(WAYS, models)))
        model = {"model": "scripted", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
        for name, chosen in only.items():
            agent = {"policy": {"kind": "llm", "samples": 9}, "value": {"kind": "llm", "samples": 1}, "models": {"policy": model}}
            config = parse({
                "search": SEARCH, "reflection": {"kind": "none"}, "browser": BROWSER,
                "limits": {"actions": 14, "seconds": 1200}, **(agent if name == "moin" else {}),
            })  # fmt: skip
            async with place(name, work / name, config, models) as there:
                for task in there.tasks:
                    id = task.id.partition("/")[2].partition("?")[0]
                    if id in chosen:
                        noise.probe()
                        rows += await one(there, task, config, work / name / f"task-{id}", changes)
    return rows, noise


async def one(there: Place, task: Task, config: Any, folder: Path, changes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a task: the fresh search and, if it solved the task, a rerun on each kind of pages."""
    there.change({})
    rows = [{"application": there.name, "task": task.id, "change": "fresh", **await attempt(there, task, config, folder / "fresh", None)}]
    print(json.dumps(rows[0]), file=sys.stderr, flush=True)
    for change in changes if rows[0]["solved"] else ():
        _, way, blobs = earlier_way(folder / "fresh", task, {})
        there.change(rules_of(change, way, blobs))
        row = await attempt(there, task, config, folder / change, folder / "fresh")
        rows.append({"application": there.name, "task": task.id, "change": change, **row})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    offered = parser(__doc__ or "")
    offered.add_argument("--application", action="append", choices=[*TASKS], help="only this application")
    offered.add_argument("--task", action="append", default=[], help="only this task")
    offered.add_argument("--change", action="append", choices=CHANGES, help="only this kind of changed pages")
    offered.add_argument("--work", type=Path, metavar="FOLDER", help="keep runs and the applications' logs there")
    options = offered.parse_args()
    names = options.application or (QUICK if options.quick else TASKS)
    if "moin" in names and not MOIN.interpreter().exists():
        lacks(f"moin is not installed: there is no {MOIN.interpreter()}: see --help")
    try:
        SiteSuite(TRAC).check(SiteSuite(TRAC).task("trac/21"))
    except UsageError as error:
        lacks(str(error))
    os.environ["MOIN_PASSWORD"] = PASSWORD
    first = {name: TASKS[name][:1] for name in TASKS} | QUICK
    only = {name: tuple(options.task) or (first if options.quick else TASKS)[name] for name in names}
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rows, noise = asyncio.run(measure(only, options.change or CHANGES, work))
    report(rows, noise, options)


def report(rows: list[dict[str, Any]], noise: Noise, options: Any) -> None:
    """Print a row for each application and kind of change, what was healed or lost, and the figures."""
    fresh = {row["task"]: row for row in rows if row["change"] == "fresh"}
    again = [row for row in rows if row["change"] != "fresh"]
    lines = []
    for name, change in dict.fromkeys((row["application"], row["change"]) for row in rows):
        some = [row for row in rows if (row["application"], row["change"]) == (name, change)]
        sums = [sum(map(int, (row[key] for row in some))) for key in ("solved", "calls", "actions", "followed", "transitions")]
        healed, twice = sum(len(row["healed"]) for row in some), sum(more(row, fresh) for row in some)
        seconds = sum(row["seconds"] for row in some)
        lines.append([f"{name} {change}", *map(str, (len(some), *sums, healed, twice)), f"{seconds:.0f}"])
    table(["application, change", "tasks", "solved", "calls", "actions", "followed", "steps", "healed", "twice", "s"], lines)
    for row in again:
        if not row["solved"] or more(row, fresh):
            print(f"{row['task']} {row['change']}: {json.dumps({key: row[key] for key in ('status', 'reason', 'writes', 'healed')})}")
    finish(options, figures(again, fresh), noise, versions("exact-agent", "playwright"), {"attempts": rows})


def more(row: dict[str, Any], fresh: Mapping[str, dict[str, Any]]) -> int:
    """Return the number of writes of a rerun that the fresh run had not sent, or less often."""
    return 0 if row["change"] == "fresh" else (Counter(row["writes"]) - Counter(fresh[row["task"]]["writes"])).total()


def figures(again: Sequence[dict[str, Any]], fresh: Mapping[str, dict[str, Any]]) -> list[Figure]:
    """Return the figures of all reruns."""
    goals = {"same": 0.0, "relabelled": 0.33, "inserted": 0.5}
    found = []
    for change in dict.fromkeys(row["change"] for row in again):
        some = [row for row in again if row["change"] == change]
        calls, before = (sum(row["calls"] for row in rows) for rows in (some, [fresh[row["task"]] for row in some]))
        found.append(Figure(f"rerun_calls_{change}", calls / before if before else 1.0, goals[change], at_least=False))
    lost = sum(not row["solved"] for row in again) / len(again) if again else 1.0
    found.append(Figure("rerun_success_loss", lost, 0, at_least=False))
    found.append(Figure("rerun_writes_twice", sum(more(row, fresh) for row in again), 0, at_least=False))
    return found


if __name__ == "__main__":
    main()
