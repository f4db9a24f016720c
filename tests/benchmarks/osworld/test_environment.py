"""Resets of OSWorld's environments: real desktops in gVisor, and in place of desktop_env a guest that carries out steps of a set-up.

Like desktop_env it passes over an answer that says that a step failed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.benchmarks.osworld.environment import OSWorldEnvironment, OSWorldFactory, settled_after
from exact.benchmarks.osworld.format import of, parse
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.desktop.vm.server import PORT
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.environments.sandbox.factory import SandboxedFactory
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.task import Outcome
from tests.benchmarks.osworld.test_format import item
from tests.environments.desktop.applications import id_of, needs_gtk

JUDGE = """
import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

class Judge:
    actions, capabilities = (), {"fidelity": "replay", "isolated": True}

    def __init__(self, log):
        self.log = log

    def reset(self, task):
        return {"text": ""}

    def step(self, action):
        return {"observation": {"text": ""}}

    def command(self, name, arguments):
        with open(self.log, "a") as file:
            file.write(name + "\\n")
        machine = "http://" + ":".join(arguments["address"].split(":")[:2])
        if name == "evaluate":
            path = urlencode({"file_path": arguments["task"]["evaluator"]["result"]["path"]}).encode()
            return {"text": str(float(self.ask(Request(machine + "/file", path)) == b"done\\n"))}
        for step in arguments["task"]["config"]:
            given = json.dumps(step["parameters"]).encode()
            self.ask(Request(machine + "/setup/" + step["type"], given, {"Content-Type": "application/json"}))
        return {}

    def ask(self, request):
        try:
            with urlopen(request) as answer:
                return answer.read()
        except HTTPError:
            return None
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file with what the judge was asked. The test is skipped where there are no desktops in gVisor."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    if lack := absent():
        pytest.skip(lack)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path / "log"


def step(kind: str, command: object, **more: object) -> dict[str, object]:
    """Return a step of a set-up that has a command."""
    return {"type": kind, "parameters": {"command": command, **more}}


def asked(log: Path) -> list[str]:
    """Return the names of the commands that the judge was given."""
    return log.read_text().split()


@asynccontextmanager
async def opened(log: Path, settle_seconds: float = 0.0) -> AsyncIterator[OSWorldFactory]:
    judges = WorkerFactory(EnvironmentSpec(f"{log.parent / 'judge.py'}:Judge", {"log": str(log)}))
    async with desktop_factory(sandbox=True, screenshots=False, vm_port=PORT) as desktops:
        assert isinstance(desktops, SandboxedFactory)
        yield OSWorldFactory(desktops, judges, settle_seconds)


async def test_a_task_is_set_up_once_and_later_resets_are_forks_of_that_state(log: Path) -> None:
    one, other = (parse(item(id=name, config=[]), "here").task("os") for name in ("one", "other"))
    async with opened(log) as environments, environments.open(simulation=True) as first, environments.open(simulation=True) as second:
        prints = {(await environment.reset(one)).fingerprint for environment in (first, first, second)}
        assert (len(prints), asked(log)) == (1, ["set_up"])
        await second.reset(other)
        assert asked(log) == ["set_up"] * 2
        for snapshot in environments.ready.values():
            environments.drop(snapshot)
        assert (await second.reset(one)).fingerprint in prints
    assert asked(log) == ["set_up"] * 3


async def test_a_step_of_a_set_up_that_the_desktop_failed_is_a_failure_and_no_start(log: Path) -> None:
    steps = {
        "no such key": step("execute", ["python", "-c", "import pyautogui; pyautogui.press('no such key')"]),
        r"execute: .*No such file or directory: 'absent'": step("execute", ["absent"]),
        "launch: absent cannot be started: No such file": step("launch", ["absent"]),
        "launch: sh -c .* died of SIGSEGV": step("launch", ["sh", "-c", "kill -SEGV $$"]),
        "launch: sh -c .* ended with status 3": step("launch", ["sh", "-c", "exit 3"]),
        "activate_window: Window Absent not found": {"type": "activate_window", "parameters": {"window_name": "Absent"}},
    }
    async with opened(log) as environments, environments.open(simulation=True) as environment:
        for said, failing in steps.items():
            with pytest.raises(EnvironmentFailure, match=f"^the desktop failed a step of the set-up: .*{said}"):
                await environment.reset(parse(item(config=[failing]), "here").task("os"))
        assert (environments.ready, asked(log)) == ({}, ["set_up"] * len(steps)), "a broken set-up is not kept for the next attempt"


async def test_a_step_that_executes_a_terminal_or_opens_a_folder_does_not_wait_for_its_end(log: Path) -> None:
    needs_gtk()
    steps = [step("execute", ["gnome-terminal"]), {"type": "activate_window", "parameters": {"window_name": "Terminal"}}]
    task = parse(item(config=[*steps, step("execute", ["xdg-open", "/home/user/Documents"])]), "here").task("os")
    async with opened(log) as environments, environments.open(simulation=True) as environment:
        assert "$" in (await environment.reset(task)).text, "it would have been refused after two minutes"


LATE = {"func": "exact_match", "result": {"type": "vm_file", "path": "/home/user/late.txt", "dest": "late.txt"}}
"""Evaluator that reads a file which a program of the desktop writes."""


@pytest.mark.parametrize(
    ("program", "settle_seconds"),
    [("sleep 10; echo done >late.txt", 12.0), ("for each in 1 2 3 4 5; do echo >>late.txt; sleep 1; done; echo done >late.txt", 0.0)],
)
async def test_a_state_is_judged_once_what_its_evaluator_reads_is_written(log: Path, program: str, settle_seconds: float) -> None:
    task = parse(item(config=[], evaluator=LATE), "here").task("os")
    writer = item(config=[step("execute", f"({program}) >/dev/null 2>&1 &", shell=True)])
    async with opened(log, settle_seconds) as environments, environments.open(simulation=True) as environment:
        await environment.reset(task)
        assert (await environment.evaluate(Outcome(actions=("stop",)))).raw == 0.0
        await environment._ask(environment._desktop, "set_up", task=writer)
        snapshot = await environment.snapshot()
        assert (await environment.evaluate(Outcome(actions=("stop",)))).success
        async with environments.fork(snapshot, simulation=True) as fork:
            assert (await fork.evaluate(Outcome(actions=("stop",)))).success


async def test_a_program_is_started_from_the_menu_of_the_desktop(log: Path) -> None:
    needs_gtk()
    async with opened(log) as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(parse(item(config=[]), "here").task("os"))
        [menu] = [each for each in seen.elements if each.name == "Applications"]
        seen = (await environment.step(environment.actions.parse(f"click [{menu.id}]"))).observation or seen
        names = [each.name for each in seen.elements if each.role == "menuitem"]
        assert names == sorted(names) and len(names) > 3
        [terminal] = [each for each in seen.elements if each.name == "Terminal"]
        seen = (await environment.step(environment.actions.parse(f"click [{terminal.id}]"))).observation or seen
        for _ in range(20):
            if any(each.role == "window" and "Terminal" in each.name for each in seen.elements):
                return
            seen = (await environment.step(environment.actions.parse("wait"))).observation or seen
        raise AssertionError(seen.text)


async def test_a_task_is_judged_after_the_time_that_it_records(log: Path) -> None:
    environment = OSWorldEnvironment(OSWorldFactory(None, None, 1.0), None)  # type: ignore[arg-type]
    asked = list[object]()

    class Desktop:
        async def command(self, name: str, **given: object) -> None:
            asked.append(given["least"])

    for task in (parse(item(), "here").task("os"), settled_after(parse(item(), "here").task("os"), 7.0)):
        environment._task = task
        await environment._settle(Desktop(), of(task))  # type: ignore[arg-type]
    assert asked == [1.0, 7.0]


async def test_a_folder_on_the_desktop_is_seen_and_opened(log: Path) -> None:
    needs_gtk()
    task = parse(item(config=[step("execute", ["mkdir", "-p", "/home/user/Desktop/plans/one"])]), "here").task("os")
    async with opened(log) as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(task)
        assert environment.obstacle == "" and "plans" in [each.name for each in seen.elements], seen.text
        await environment.step(environment.actions.parse(f"double_click [{id_of(seen, 'image', 'plans')}]"))
        for _ in range(20):
            seen = (await environment.step(environment.actions.parse("wait"))).observation or seen
            if "one" in [each.name for each in seen.elements]:
                return
        raise AssertionError(seen.text)
