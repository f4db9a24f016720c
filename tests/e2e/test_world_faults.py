"""Searches in environments that break: they go on, or stop with their best answer; a fault is no score, and nothing is left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.check.suite import held
from exact.environments.process.worker import EnvironmentSpec
from exact.environments.restore.costs import Costs
from exact.environments.sandbox import sandboxes
from exact.environments.sandbox.factory import SandboxedFactory, sandboxed_factory
from exact.environments.sandbox.images import SandboxImage
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes
from exact.errors import EnvironmentFailure
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.task import Task


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a snapshot of every state, because these environments are so fast that the planner would only replay."""
    monkeypatch.setattr(Costs, "pays", lambda self, returns, way: True)


LIGHTS = Path(__file__).parents[2] / "examples" / "own_environment" / "lights.py"
FRAGILE = """
import os, sys
sys.path.insert(0, {folder!r})
from lights import Lights

class Fragile(Lights):
    def step(self, action):
        if action["args"] == ["4"]:
            os.kill(os.getpid(), 9)
        return super().step(action)
"""
"""Two ways lead to the light: 0 and 3, 1 and 4."""


class EverySwitch:
    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        switches = context.observation.elements
        return tuple(Proposal(action=actions.action("press", each.id), prior=1 / len(switches)) for each in switches)


class Brightness:
    async def evaluate(self, context: Context) -> Evaluation:
        lamps = context.observation.elements
        return Evaluation(value=1.0 if context.terminated else 0.8 * sum("on" in each.name.split() for each in lamps) / len(lamps))


@pytest.fixture(autouse=True)
def runsc() -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


async def search(folder: Path, factory: EnvironmentSpec, harm: Callable[[SandboxedFactory, int], None]) -> ResultLine:
    """Run one search; `harm` is called after each event with the number of events."""
    found = {"algorithm": "best_first", "iterations": 16, "k": 5, "commit": "plan", "workers": 2}
    config, agent, count = parse({"search": found, "reflection": {"kind": "none"}}), Agent(policy=EverySwitch(), value=Brightness()), 0
    async with sandboxed_factory(factory) as environments:

        def watch(*_: object) -> None:
            nonlocal count
            count += 1
            harm(environments, count)

        run = create(folder / "run", (Task(id="lights/5", instruction="Turn all lamps on."),), config)
        watched = Runner(
            folder=run, config=config, open_environments=lambda task: nullcontext(environments), build_agent=lambda *_: agent, watch=watch
        )
        (line,) = await watched.run()
    return line


@pytest.fixture(autouse=True)
def nothing_is_left_running(runsc: None) -> Iterator[None]:
    before = held()["processes"]
    yield
    assert held()["processes"] <= before


async def test_an_action_that_kills_its_guest_ends_a_path_and_not_the_search(tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(FRAGILE.format(folder=str(LIGHTS.parent)))
    factory = EnvironmentSpec(f"{tmp_path / 'fragile.py'}:Fragile", paths=(LIGHTS.parent,))
    line = await search(tmp_path, factory, lambda environments, count: None)
    assert (line.status, line.score) == ("scored", 1.0) and line.failures > 0


@pytest.mark.parametrize(("when", "status", "score"), [(range(10, 40, 10), "scored", 1.0), (range(1000), "failed", None)])
async def test_a_search_survives_kills_of_runsc_and_constant_kills_are_a_failure_and_no_score(
    tmp_path: Path, when: range, status: str, score: float | None
) -> None:
    def kill(environments: SandboxedFactory, count: int) -> None:
        if count in when:
            for pid in environments.sandboxes.pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    line = await search(tmp_path, EnvironmentSpec(f"{LIGHTS}:Lights"), kill)
    assert (line.status, line.score) == (status, score)


async def test_truncated_images_are_avoided(tmp_path: Path) -> None:
    harmed = set[Path]()

    def truncate(environments: SandboxedFactory, count: int) -> None:
        for folder in environments.sandboxes.folder.glob("images/*"):
            pages = folder / "pages.img"
            if folder.name != environments.origin and pages.exists() and folder.name in environments.sandboxes.images:
                os.truncate(pages, 1000)
                harmed.add(folder)

    line = await search(tmp_path, EnvironmentSpec(f"{LIGHTS}:Lights"), truncate)
    assert (line.status, line.score) == ("scored", 1.0) and harmed


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system with space for one or two images."""
    (folder := tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("this user cannot mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # what was killed may have it open for a moment


@pytest.mark.parametrize(("left", "status", "score"), [(2 << 20, "scored", 1.0), (0, "failed", None)])
async def test_snapshots_fail_on_a_full_disk_and_an_environment_that_cannot_start_is_no_score(
    left: int, status: str, score: float | None, tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, refused, checkpoint = list[str](), list[str](), Sandboxes.checkpoint

    async def counted(self: Sandboxes, sandbox: Sandbox, *, pinned: bool = False) -> SandboxImage:
        try:
            image = await checkpoint(self, sandbox, pinned=pinned)
        except EnvironmentFailure as error:
            refused.append(str(error))
            raise
        kept.append(image.id)
        return image

    def fill(environments: SandboxedFactory, count: int) -> None:
        if environments.origin and (free := shutil.disk_usage(small).free) > left:
            with suppress(OSError), (small / "rest").open("ab", buffering=0) as file:
                file.write(bytes(free - left))

    monkeypatch.setattr(sandboxes, "_image_folder", lambda: small)
    monkeypatch.setattr(Sandboxes, "checkpoint", counted)
    line = await search(tmp_path, EnvironmentSpec(f"{LIGHTS}:Lights"), fill)
    assert (line.status, line.score) == (status, score)
    assert kept and (refused or not left), "without any space the first environment of the search may fail before a snapshot does"
    assert not [each for each in refused if "no space left" not in each] and (left or "no space left" in line.reason)
