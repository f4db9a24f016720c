"""`kill -9` in the middle of a tool's call, and what a resumed run does: nothing twice, nothing lost. And tools by the command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import exact
from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from tests.docs.test_goals import free_port, running
from tests.e2e.kills import EXACT

SITE = Path(__file__).parents[2] / "examples" / "tools" / "site.py"

PARTS = '''
import pathlib, time, exact

def wait(name):
    pathlib.Path("in_" + name).touch()
    while not pathlib.Path("go_" + name).exists():
        time.sleep(0.02)

@exact.tool(effect="read")
def look(where: str) -> str:
    """Look somewhere."""
    with open("looked", "a") as file:
        file.write(where + "\\n")
    wait("look")
    return "a box"

@exact.tool
def send(text: str) -> str:
    """Send a text."""
    with open("sent", "a") as file:
        file.write(text + "\\n")
    wait("send")
    return "it is on its way"

class Yard(exact.BaseEnvironment):
    actions = exact.ActionSpace(["walk", exact.Verb(name="stop", form=(exact.Parameter.TEXT,), final=True)])
    capabilities = exact.Capabilities(fidelity="replay", isolated=True)

    async def reset(self, task):
        self.place = 0
        return exact.Observation(text="place 0")

    async def step(self, action):
        if action.name == "walk":
            self.place += 1
            wait("walk")
        return exact.Transition(observation=exact.Observation(text=f"place {self.place}"), terminated=action.name == "stop")

class Way:
    async def propose(self, context, actions, k):
        way = ['look {"where": "yard"}', 'send {"text": "hello"}', "walk", 'stop "done"']
        return [exact.Proposal(action=actions.parse(way[len(context.history)]), prior=1)]

class Half:
    async def evaluate(self, context):
        return 0.5
'''
TASKS = "environment: parts.py:Yard\ntasks:\n  - {id: one, instruction: Send hello.}\n"
CONFIG = (
    "search: {algorithm: mcts, iterations: 2, k: 1}\npolicy: {kind: parts.py:Way}\nvalue: {kind: parts.py:Half}\nreflection: {kind: none}\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in (("parts.py", PARTS), ("tasks.yaml", TASKS), ("config.yaml", CONFIG)):
        (tmp_path / name).write_text(text)
    return tmp_path


def start(place: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*EXACT, *command], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(place: Path) -> subprocess.Popen[str]:
    return start(place, "run", "tasks.yaml", "--config", "config.yaml", "--tools", "parts.py", "--out", "run")


def resume(place: Path, *more: str) -> tuple[int, str]:
    process = start(place, "resume", "run", *more)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def kill_when(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """`kill -9` as soon as something has happened."""
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0] if process.poll() is not None else "late"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def committed(place: Path) -> list[ev.Committed]:
    (path,) = (place / "run").glob("tasks/*/journal.jsonl")
    return [event for event in read_journal(path) if isinstance(event, ev.Committed)]


def test_a_write_in_flight_is_uncertain_and_sent_again_by_the_persons_word_alone(place: Path) -> None:
    (place / "go_look").touch()
    kill_when(run(place), lambda: (place / "in_send").exists())
    (place / "go_send").touch()
    (place / "go_walk").touch()
    code, output = resume(place)
    assert code != 0 and 'send {"text": "hello"} may have been carried out before the crash' in " ".join(output.split())
    assert lines(place / "sent") == ["hello"] and [each.action for each in committed(place)] == ['look {"where": "yard"}']
    code, output = resume(place, "--repeat-uncertain")
    assert code == 0, output
    assert lines(place / "sent") == ["hello", "hello"] and lines(place / "looked") == ["yard"]


def test_a_write_that_was_committed_is_never_sent_again_and_its_result_is_not_lost(place: Path) -> None:
    for name in ("go_look", "go_send"):
        (place / name).touch()
    kill_when(run(place), lambda: (place / "in_walk").exists() and len(committed(place)) == 2)
    (place / "go_walk").touch()
    code, output = resume(place)
    assert code == 0, output
    assert lines(place / "sent") == ["hello"] and lines(place / "looked") == ["yard"]
    last = committed(place)[-1]
    seen = RunFolder.open(place / "run").blobs.get_observation(committed(place)[-2].observation)
    assert last.action == 'stop "done"' and seen.text.endswith("place 1")
    assert "| it is on its way" in seen.text and "| a box" in seen.text
    assert subprocess.run([*EXACT, "report", "run"], cwd=place, capture_output=True).returncode == 0
    assert lines(place / "sent") == ["hello"]


def test_a_read_in_flight_is_made_again_and_the_run_goes_on(place: Path) -> None:
    kill_when(run(place), lambda: (place / "in_look").exists())
    for name in ("go_look", "go_send", "go_walk"):
        (place / name).touch()
    code, output = resume(place)
    assert code == 0, output
    assert lines(place / "looked") == ["yard", "yard"] and lines(place / "sent") == ["hello"]


def test_a_dry_run_names_the_tools_and_what_a_server_says_of_its_own(place: Path) -> None:
    server = Path(__file__).parents[2] / "examples" / "tools" / "file_server.py"
    with (place / "config.yaml").open("a") as file:
        file.write(f"tools: [{{command: [{sys.executable}, {server}, .], reads: [read_file]}}]\n")
    process = start(place, "run", "tasks.yaml", "--config", "config.yaml", "--tools", "parts.py", "--dry-run")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "look (reads), send (writes), MCP server" in output
    assert "list_files writes: the server says that list_files only reads" in output
    assert "read_file reads\n" in output and "write_file writes\n" in output and not (place / "looked").exists()


def test_a_file_without_tools_is_a_wrong_usage_of_one_line(place: Path) -> None:
    (place / "empty.py").write_text("def plain(name: str) -> str: ...\n")
    process = start(place, "run", "tasks.yaml", "--config", "config.yaml", "--tools", "empty.py", "--dry-run")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2 and "declares no tool: write @exact.tool above a function" in " ".join(output.split())


CALLS: list[str] = []


@exact.tool(effect="read")
def find_customer(name: str) -> str:
    """Find a customer."""
    CALLS.append(f"find {name}")
    return "42"


@exact.tool
def log(text: str) -> str:
    """Write into the log."""
    CALLS.append(f"log {text}")
    return "logged"


class Clerk:
    """A policy that finds a customer, logs it, and fills the number in; and a judge that likes each of these steps."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        named = {each.name: each.id for each in context.observation.elements if each.role in ("textbox", "button")}
        number = f'fill [{named.get("Customer number", 0)}] "42"'
        way = ['find_customer {"name": "Ann"}', 'log {"text": "Ann is 42"}', number, 'stop "done"']
        others = [f'fill [{named.get("Customer number", 0)}] "1"', 'find_customer {"name": "Bo"}']
        at = sum(each.action.key in way for each in context.history)
        wanted = dict.fromkeys([way[min(at, 3)], *others])
        return tuple(Proposal(action=actions.parse(text), prior=1 / (1 + rank)) for rank, text in enumerate(wanted))[:k]

    async def evaluate(self, context: Context) -> Evaluation:
        seen = context.observation.text
        return Evaluation(value=0.2 + 0.3 * ("| 42" in seen) + 0.2 * ("| logged" in seen) + 0.2 * ('value="42"' in seen or '"42"' in seen))


async def test_a_search_in_a_browser_comes_back_to_states_with_results_and_calls_once(tmp_path: Path) -> None:
    port = free_port()
    clerk = Clerk()
    config = exact.Config.parse(
        {"search": {"algorithm": "mcts", "iterations": 8, "k": 3}, "reflection": {"kind": "none"}, "limits": {"actions": 4},
         "browser": {"screenshots": False, "allow_origins": []}}
    )  # fmt: skip
    CALLS.clear()
    with running(sys.executable, SITE, port, tmp_path / "mail", port=port) as address:
        solution = await exact.solve(
            "Log who the customer is.", url=f"{address}/ticket", agent=exact.Agent(policy=clerk, value=clerk), config=config,
            tools=[find_customer, log], out=tmp_path / "run",
        )  # fmt: skip
    assert solution.actions[:2] == ('find_customer {"name": "Ann"}', 'log {"text": "Ann is 42"}')
    assert CALLS.count("log Ann is 42") == 1 and solution.result.drifted == 0 and solution.result.failures == 0
    (path,) = (tmp_path / "run").glob("tasks/*/journal.jsonl")
    events = list(read_journal(path))
    reads = [each.info["result"] for each in events if isinstance(each, ev.Acted | ev.Committed) and each.info.get("result")]
    arrived = [each.match for each in events if isinstance(each, ev.Arrived)]
    assert len(reads) > CALLS.count("find Ann") >= 1 and {*arrived} <= {"exact", "equivalent"} and len(arrived) > 2
