"""Ten tasks on each of two applications that the project was not built on, MoinMoin and MLflow: ReAct and R-MCTS.

The model is scripted, is asked over HTTP, knows the way of each task (`ways.py` of bench/_moin and bench/_mlflow), and proposes wrong
actions two times in three. An attempt counts as solved if the server's state is what the task asks for and nothing else changed. Needs the
applications, each in a virtual environment of its own:

    python -m venv .bench/venvs/moin && .bench/venvs/moin/bin/pip install --require-hashes -r constraints/moin.txt
    python -m venv .bench/venvs/mlflow && .bench/venvs/mlflow/bin/pip install --require-hashes -r constraints/mlflow.txt

EXACT_MOIN and EXACT_MLFLOW name the Python of others. Arms: `outside` (the application runs on this machine, the browser does not fork),
`expires` (the same; all sessions end after a few pages), `forked` (outside; the browser forks), `sandbox` (application and browser in one
sandbox).

    python bench/third_party.py                          all arms on MoinMoin
    python bench/third_party.py --think                  MoinMoin, Wagtail and MLflow outside, by a model that thinks 0.1 to 20 s

  solved                tasks solved, of all arms
  written_by_search     writes that the application received from outside, less those that were committed
  infrastructure        attempts that failed, and environments that broke in the others
  wrong_targets         with --think: writes that an attempt without thought and search did not send
  lost_actions          with --think: most actions of an attempt that were refused
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _common import ROOT, Figure, Noise, finish, lacks, parser, table, versions
from _mlflow.ways import WAYS as MLFLOW_WAYS
from _moin.ways import WAYS as MOIN_WAYS
from _thinking import WAGTAIL_TASKS, LoggedWagtail, SureThinkingWay, SureWay, ThinkingWay, requests, thought
from _ways import Ways

from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import read
from exact.config import parse
from exact.models.scripted import ScriptedServer
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

PASSWORD = "open-sesame-9"
ARMS = ("outside", "expires", "forked", "sandbox")
AGENTS: dict[str, dict[str, Any]] = {
    "react": {"search": {"algorithm": "react", "k": 1}, "policy": {"kind": "llm", "samples": 1}, "value": {"kind": "constant"},
              "reflection": {"kind": "none"}},
    "rmcts": {"search": {"algorithm": "mcts", "iterations": 5, "k": 3, "depth": 3}, "policy": {"kind": "llm", "samples": 9},
              "value": {"kind": "llm", "samples": 1}, "reflection": {"kind": "llm"}},
}  # fmt: skip
PAGES = {"react": 2, "rmcts": 8}
"""Pages after which sessions end: about half of an attempt, with what is searched."""
AT_ONCE = 4
"""Attempts at the same time, if the model thinks."""


@dataclass(frozen=True)
class Application:
    """An application with its files in `bench/_NAME`, or a suite."""

    name: str
    writes: re.Pattern[str]
    """Requests that change it."""
    ways: Ways | None = None
    """None: a suite, whose reference paths are the ways."""

    @property
    def files(self) -> Path:
        return Path(__file__).with_name(f"_{self.name}")

    def interpreter(self) -> Path:
        """Return the Python that has the application."""
        found = os.environ.get(f"EXACT_{self.name.upper()}")
        return Path(found or ROOT / ".bench" / "venvs" / self.name / "bin" / "python")


_MOIN_WRITES = r"^(?!.*/\+(login|lookup|search|cspreport))(POST .*|GET /\+(subscribe|quicklink|bookmark|logout).*)$"
_MLFLOW_WRITES = r"^(POST|PUT|PATCH|DELETE) (?!.*(search|get-history|traces/metrics|/graphql|/telemetry))"
_WAGTAIL_WRITES = r"^POST (?!.*(/login/|/preview|/editing-sessions/))"
APPLICATIONS = {
    "moin": Application("moin", re.compile(_MOIN_WRITES), MOIN_WAYS),
    "wagtail": Application("wagtail", re.compile(_WAGTAIL_WRITES)),
    "mlflow": Application("mlflow", re.compile(_MLFLOW_WRITES), MLFLOW_WAYS),
}


MOIN = APPLICATIONS["moin"]


@dataclass
class Place:
    """An application that runs, with its tasks."""

    application: Application
    tasks: Sequence[Task]
    log: Path
    environments: Callable[[Task], Any]

    def received(self) -> list[str]:
        """Return the writes that came so far."""
        return received(self.application, self.log)


def received(application: Application, log: Path) -> list[str]:
    """Return the writes in a log of requests."""
    found = [f"{line['method']} {line['path']}" for line in requests(log) if "/hooks/" not in line["path"]]
    return [each for each in found if application.writes.match(each) and "/__reset__" not in each]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def site_files(application: Application, folder: Path, port: int, arm: str) -> Path:
    """Copy site and tasks, with the port of the application. Return the task file."""
    shutil.copytree(application.files, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.glob("*.yaml"):
        file.write_text(file.read_text().replace("8931", str(port)))
    if arm == "sandbox":
        text = (folder / "site.yaml").read_text()
        service = {"command": [str(application.interpreter()), str(folder / "serve.py"), str(port), str(folder.parent / "served")],
                   "ready_url": f"http://127.0.0.1:{port}/hooks/state", "stateless": False, "seconds": 120}  # fmt: skip
        text = re.sub(r"^outside:\n(?:  .*\n)+", f"services: {json.dumps([service])}\n", text, flags=re.MULTILINE)
        (folder / "site.yaml").write_text(text)
    return folder / "tasks.yaml"


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder, which must be new."""
    folder.mkdir(parents=True)
    yield


def serves(process: subprocess.Popen[Any], port: int) -> bool:
    """Wait up to two minutes until a process takes connections at a port of this machine. Return whether it does."""
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as tried:
            tried.settimeout(1)
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False


@contextmanager
def server(application: Application, folder: Path, port: int, pages: int = 0) -> Iterator[None]:
    """Run an application on this machine."""
    with (folder / "server.log").open("ab") as log:
        command = [str(application.interpreter()), str(application.files / "serve.py"), str(port), str(folder / "served"), str(pages)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            if not serves(process, port):
                raise SystemExit(f"{application.name} does not serve:\n{(folder / 'server.log').read_text()[-2000:]}")
            yield
        finally:
            process.terminate()
            process.wait()


@asynccontextmanager
async def place(application: Application, work: Path, arm: str, pages: int, config: Any) -> AsyncIterator[Place]:
    """Run an application in a new folder."""
    work.mkdir(parents=True)  # noqa: ASYNC240
    if application.ways is None:
        suite = LoggedWagtail(work / "requests.jsonl")
        tasks = [suite.task(f"{application.name}/{number}") for number in WAGTAIL_TASKS]
        yield Place(application, tasks, work / "requests.jsonl", lambda task: suite.environments(config.browser))
        return
    port = free_port()
    with ExitStack() as stack:
        if arm != "sandbox":
            await asyncio.to_thread(stack.enter_context, server(application, work, port, pages))
        tasks = read(site_files(application, work / "site", port, arm))
        log = work / "served" / "requests.jsonl"
        yield Place(application, tasks, log, lambda task: open_environments(task, config, benchmark=False))


def name_of(task: Task) -> str:
    return task.id.partition("/")[2].partition("?")[0]


async def attempts(
    application: Application, arm: str, agent: str, only: Sequence[str], work: Path, noise: Noise, *, alone: bool, thinks: bool
) -> list[dict[str, Any]]:
    """Attempt the tasks of an application with one agent, and return a row for each.

    alone: each has an application of its own, and several run at the same time.
    """
    async with ScriptedServer(application.ways.answers if application.ways else str, **({"faults": thought} if thinks else {})) as models:
        model = {"model": "scripted", "base_url": models.base_url, "price": {"input": 0, "output": 0}}
        browser = {"screenshots": False, "sandbox": {"outside": "never", "expires": "never", "sandbox": "required"}.get(arm, "auto")}
        limits = {"actions": 14 if application.ways is None else 10, "seconds": 3600 if thinks else 1200}
        config = parse({**AGENTS[agent], "models": {"policy": model}, "browser": browser, "limits": limits})
        ways = {"react": SureThinkingWay if thinks else SureWay, "rmcts": ThinkingWay}[agent]
        build = ways.agent if application.ways is None else None
        pages, gate = PAGES[agent] if arm == "expires" else 0, asyncio.Semaphore(AT_ONCE)

        async def one(there: Place, task: Task) -> dict[str, Any]:
            row = {"application": application.name, "arm": arm, "agent": agent, "task": name_of(task)}
            row |= await attempt(there, task, config, work / f"run-{name_of(task)}", build)
            print(json.dumps(row), file=sys.stderr, flush=True)
            return row

        async def by_itself(number: int) -> dict[str, Any] | None:
            async with gate, place(application, work / str(number), arm, pages, config) as there:
                task = there.tasks[number]
                return await one(there, task) if not only or name_of(task) in only else None

        if alone:
            found = await asyncio.gather(*map(by_itself, range(10)))
            return [each for each in found if each]
        rows = []
        async with place(application, work, arm, pages, config) as there:
            for task in there.tasks:
                if not only or name_of(task) in only:
                    noise.probe()
                    rows.append(await one(there, task))
        return rows


async def attempt(there: Place, task: Task, config: Any, folder: Path, build: Any) -> dict[str, Any]:
    """Attempt one task, and return its row."""
    before, began = len(there.received()), time.monotonic()
    create(folder, (task,), config)
    run, config = reopen(folder)
    (line,) = await Runner(folder=run, config=config, open_environments=there.environments, build_agent=build).run()
    writes = there.received()[before:]
    [journal] = run.path.glob("tasks/*/journal.jsonl")
    committed = [event for event in read_journal(journal) if isinstance(event, ev.Committed)]
    effects = [effect for event in committed for effect in event.effects if effect.is_write and not effect.is_blocked]
    sent = [f"{effect.method} {effect.url}" for effect in effects]
    return {
        "solved": line.score == 1.0, "status": line.status, "reason": line.reason,
        "writes": writes, "sent": sent, "failures": line.failures, "drifted": line.drifted,
        "lost": [f"{each.action}: {each.refused}" for each in committed if each.refused],
        "actions": line.actions, "transitions": line.transitions, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


async def measure(
    arms: Sequence[str], agents: Sequence[str], only: Sequence[str], work: Path, names: Sequence[str]
) -> tuple[list[Any], Noise]:
    """Attempt the tasks one after the other, by a model that answers at once."""
    noise, rows = Noise(), list[dict[str, Any]]()
    for name in names:
        for arm in arms:
            for agent in agents:
                folder = work / f"{name}-{arm}-{agent}"
                rows += await attempts(APPLICATIONS[name], arm, agent, only, folder, noise, alone=False, thinks=False)
    return rows, noise


async def think(agents: Sequence[str], only: Sequence[str], work: Path, names: Sequence[str]) -> tuple[list[Any], Noise]:
    """Attempt the tasks by a model that thinks, and compare their writes with those of ReAct by a model that does not."""
    noise, rows = Noise(), list[dict[str, Any]]()
    for name in names:
        application = APPLICATIONS[name]
        noise.probe()
        known = await attempts(application, "outside", "react", only, work / f"{name}-at-once", noise, alone=True, thinks=False)
        right = {row["task"]: written(row) for row in known}
        for agent in agents:
            noise.probe()
            some = await attempts(application, "outside", agent, only, work / f"{name}-{agent}", noise, alone=True, thinks=True)
            rows += [{**row, "wrong": (written(row) - right[row["task"]]).total()} for row in some]
    return rows, noise


def written(row: dict[str, Any]) -> Counter[str]:
    """Return the writes of an attempt. Ids that each application draws anew are left out."""
    return Counter(re.sub(r"[0-9a-f]{32}", "ID", each) for each in row["writes"])


def main() -> None:
    offered = parser(__doc__ or "")
    offered.add_argument("--think", action="store_true", help="by a model that thinks; for all applications")
    offered.add_argument("--application", action="append", choices=[*APPLICATIONS], help="only this application")
    offered.add_argument("--arm", action="append", choices=ARMS, help="only this arm")
    offered.add_argument("--agent", action="append", choices=[*AGENTS], help="only this agent")
    offered.add_argument("--task", action="append", default=[], help="only this task")
    offered.add_argument("--work", type=Path, metavar="FOLDER", help="keep runs and the applications' logs there")
    options = offered.parse_args()
    names = options.application or ([*APPLICATIONS] if options.think else ["moin"])
    for name in names:
        if APPLICATIONS[name].ways and not APPLICATIONS[name].interpreter().exists():
            lacks(f"{name} is not installed: there is no {APPLICATIONS[name].interpreter()}: see --help")
    os.environ["MOIN_PASSWORD"] = PASSWORD
    arms, agents, only = options.arm or ARMS, options.agent or [*AGENTS], options.task
    if options.quick:
        arms, only = options.arm or ("outside",), only or ["rename"]
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        doing = think(agents, only, work, names) if options.think else measure(arms, agents, only, work, names)
        rows, noise = asyncio.run(doing)
    report(rows, noise, options)


def report(rows: list[dict[str, Any]], noise: Noise, options: Any) -> None:
    """Print the table, what was not solved, and the figures."""
    groups = list(dict.fromkeys((row["application"], row["arm"], row["agent"]) for row in rows))
    lines = []
    for group in groups:
        some = [row for row in rows if (row["application"], row["arm"], row["agent"]) == group]
        sums = [sum(map(int, (row[key] for row in some))) for key in ("solved", "failures", "drifted", "actions", "transitions")]
        lines.append(
            [" ".join(group), str(len(some)), *map(str, sums), str(sum(map(extra, some))), str(sum(len(row["lost"]) for row in some)),
             str(sum(row.get("wrong", 0) for row in some)), f"{sum(row['seconds'] for row in some):.0f}"]
        )  # fmt: skip
    heads = ("tasks", "solved", "failures", "drifted", "actions", "transitions", "written by search", "lost", "wrong", "s")
    table(["application, arm, agent", *heads], lines)
    for row in rows:
        if not row["solved"] or extra(row) or row.get("wrong") or row["lost"]:
            kept = {key: row[key] for key in ("status", "reason", "writes", "lost")}
            print(f"{row['application']} {row['arm']} {row['agent']} {row['task']}: {json.dumps(kept)}")
    figures = [
        Figure("solved", sum(row["solved"] for row in rows) / len(rows), 1.0),
        Figure("written_by_search", sum(map(extra, rows)), 0, at_least=False),
        Figure("infrastructure", sum(row["failures"] + (row["status"] == "failed") for row in rows), 0, at_least=False),
    ]
    if options.think:
        figures = [Figure(f"{each.name}_thinking", each.value, each.goal, each.at_least) for each in figures]
        figures.append(Figure("wrong_targets", sum(row["wrong"] for row in rows), 0, at_least=False))
        figures.append(Figure("lost_actions", max(len(row["lost"]) for row in rows), 1, at_least=False))
    finish(options, figures, noise, versions("exact-agent", "playwright"), {"attempts": rows})


def extra(row: dict[str, Any]) -> int:
    """Return the number of writes that the application received and that no commit sent."""
    sent = Counter(unquote(re.sub(r"http://[^/]+", "", each)) for each in row["sent"])
    return (Counter(map(unquote, row["writes"])) - sent).total() if row["arm"] != "sandbox" else 0


if __name__ == "__main__":
    main()
