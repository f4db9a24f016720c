"""Ten tasks on MoinMoin, a wiki that the project was not built on: ReAct and R-MCTS, the wiki outside and in the sandbox.

The model is scripted, is asked over HTTP, knows the way of each task (bench/_moin/ways.py), and proposes wrong actions two times in three.
An attempt counts as solved if the server's state is what the task asks for and nothing else changed. Needs the wiki in a virtual
environment of its own:

    python -m venv .bench/venvs/moin && .bench/venvs/moin/bin/pip install --require-hashes -r constraints/moin.txt

EXACT_MOIN names the Python of another one. Arms: `outside` (the wiki runs on this machine, the browser does not fork), `expires` (the same;
all sessions end after a few pages), `forked` (outside; the browser forks), `sandbox` (wiki and browser in one sandbox).

  solved                tasks solved, of all arms
  written_by_search     writes that the wiki received from outside, less those that were committed
  infrastructure        attempts that failed, and environments that broke in the others
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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _common import ROOT, Figure, Noise, finish, lacks, parser, table, versions
from _moin.ways import answers

from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import read
from exact.config import parse
from exact.models.scripted import ScriptedServer
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

FILES = Path(__file__).with_name("_moin")
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
WRITES = re.compile(r"^(?!.*/\+(login|lookup|search|cspreport))(POST .*|GET /\+(subscribe|quicklink|bookmark|logout).*)$")
"""Requests that change the wiki."""


def interpreter() -> Path:
    """Return the Python that has MoinMoin."""
    return Path(os.environ.get("EXACT_MOIN") or ROOT / ".bench" / "venvs" / "moin" / "bin" / "python")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def site_files(folder: Path, port: int, arm: str) -> Path:
    """Copy site and tasks, with the port of the wiki. Return the task file."""
    shutil.copytree(FILES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.glob("*.yaml"):
        file.write_text(file.read_text().replace("8931", str(port)))
    if arm == "sandbox":
        text = (folder / "site.yaml").read_text()
        service = {"command": [str(interpreter()), str(folder / "serve.py"), str(port), str(folder.parent / "wiki")],
                   "ready_url": f"http://127.0.0.1:{port}/hooks/state", "stateless": False, "seconds": 120}  # fmt: skip
        text = re.sub(r"^outside:\n(?:  .*\n)+", f"services: {json.dumps([service])}\n", text, flags=re.MULTILINE)
        (folder / "site.yaml").write_text(text)
    return folder / "tasks.yaml"


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder, which must be new."""
    folder.mkdir(parents=True)
    yield


def serves(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait up to two minutes until a process takes connections at a port of this machine. Return whether it does."""
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as tried:
            tried.settimeout(1)
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return True
        os.sched_yield()
    return False


@contextmanager
def wiki(folder: Path, port: int, pages: int = 0) -> Iterator[None]:
    """Run the wiki on this machine."""
    log = (folder / "wiki.log").open("ab")
    process = subprocess.Popen(
        [str(interpreter()), str(FILES / "serve.py"), str(port), str(folder / "wiki"), str(pages)], stdout=log, stderr=log
    )
    try:
        if not serves(process, port):
            raise SystemExit(f"the wiki does not serve:\n{(folder / 'wiki.log').read_text()[-2000:]}")
        yield
    finally:
        process.terminate()
        process.wait()
        log.close()


def received(folder: Path) -> list[str]:
    """Return the writes that the wiki received so far."""
    path = folder / "wiki" / "requests.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [f"{line['method']} {line['path']}" for line in lines]
    return [each for each in found if WRITES.match(each) and "/hooks/" not in each]


async def attempts(arm: str, agent: str, only: Sequence[str], work: Path, noise: Noise) -> list[dict[str, Any]]:
    """Attempt the tasks in one arm with one agent, and return a row for each."""
    port, rows = free_port(), list[dict[str, Any]]()
    async with ScriptedServer(answers) as server:
        model = {"model": "scripted", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
        browser = {"screenshots": False, "sandbox": {"outside": "never", "expires": "never", "sandbox": "required"}.get(arm, "auto")}
        config = parse({**AGENTS[agent], "models": {"policy": model}, "browser": browser, "limits": {"actions": 10, "seconds": 1200}})
        with made(work), nullcontext() if arm == "sandbox" else wiki(work, port, PAGES[agent] if arm == "expires" else 0):
            tasks = read(site_files(work / "site", port, arm))
            for task in tasks:
                if only and task.id.partition("/")[2].partition("?")[0] not in only:
                    continue
                noise.probe()
                rows.append(await attempt(task, config, work, arm, agent))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


async def attempt(task: Task, config: Any, work: Path, arm: str, agent: str) -> dict[str, Any]:
    """Attempt one task, and return its row."""
    name = task.id.partition("/")[2].partition("?")[0]
    before, began = len(received(work)), time.monotonic()
    create(work / name, (task,), config)
    run, config = reopen(work / name)
    opened = lambda task: open_environments(task, config, benchmark=False)  # noqa: E731
    (line,) = await Runner(folder=run, config=config, open_environments=opened).run()
    writes = received(work)[before:]
    [journal] = run.path.glob("tasks/*/journal.jsonl")
    committed = [event for event in read_journal(journal) if isinstance(event, ev.Committed)]
    effects = [effect for event in committed for effect in event.effects if effect.is_write and not effect.is_blocked]
    sent = [f"{effect.method} {effect.url}" for effect in effects]
    return {
        "arm": arm, "agent": agent, "task": name, "solved": line.score == 1.0, "status": line.status, "reason": line.reason,
        "writes": writes, "sent": sent, "failures": line.failures, "drifted": line.drifted,
        "actions": line.actions, "transitions": line.transitions, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


async def measure(arms: Sequence[str], agents: Sequence[str], only: Sequence[str], work: Path) -> tuple[list[dict[str, Any]], Noise]:
    noise, rows = Noise(), list[dict[str, Any]]()
    for arm in arms:
        for agent in agents:
            rows += await attempts(arm, agent, only, work / f"{arm}-{agent}", noise)
    return rows, noise


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--arm", action="append", choices=ARMS, help="only this arm")
    options.add_argument("--agent", action="append", choices=[*AGENTS], help="only this agent")
    options.add_argument("--task", action="append", default=[], help="only this task")
    options.add_argument("--work", type=Path, metavar="FOLDER", help="keep runs and the wiki's log there")
    options = options.parse_args()
    if not interpreter().exists():
        lacks(f"MoinMoin is not installed: there is no {interpreter()}: see --help")
    os.environ["MOIN_PASSWORD"] = PASSWORD
    arms, agents, only = options.arm or ARMS, options.agent or [*AGENTS], options.task
    if options.quick:
        arms, only = options.arm or ("outside",), only or ["rename"]
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rows, noise = asyncio.run(measure(arms, agents, only, work))
    report(rows, noise, options)


def report(rows: list[dict[str, Any]], noise: Noise, options: Any) -> None:
    """Print the table, what was not solved, and the figures."""
    groups = list(dict.fromkeys((row["arm"], row["agent"]) for row in rows))
    lines = []
    for group in groups:
        some = [row for row in rows if (row["arm"], row["agent"]) == group]
        sums = [sum(map(int, (row[key] for row in some))) for key in ("solved", "failures", "drifted", "actions", "transitions")]
        lines.append(
            [" ".join(group), str(len(some)), *map(str, sums), str(sum(map(extra, some))), f"{sum(row['seconds'] for row in some):.0f}"]
        )
    table(["arm", "tasks", "solved", "failures", "drifted", "actions", "transitions", "written by search", "s"], lines)
    for row in rows:
        if not row["solved"] or extra(row):
            print(f"{row['arm']} {row['agent']} {row['task']}: {row['status']}: {row['reason']}; writes {row['writes']}")
    figures = [
        Figure("solved", sum(row["solved"] for row in rows) / len(rows), 1.0),
        Figure("written_by_search", sum(map(extra, rows)), 0, at_least=False),
        Figure("infrastructure", sum(row["failures"] + (row["status"] == "failed") for row in rows), 0, at_least=False),
    ]
    finish(options, figures, noise, versions("exact-agent", "playwright"), {"attempts": rows})


def extra(row: dict[str, Any]) -> int:
    """Return the number of writes that the wiki received and that no commit sent."""
    sent = Counter(unquote(re.sub(r"http://[^/]+", "", each)) for each in row["sent"])
    return (Counter(map(unquote, row["writes"])) - sent).total() if row["arm"] != "sandbox" else 0


if __name__ == "__main__":
    main()
