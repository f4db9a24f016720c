"""A task in OSWorld's form, set up and judged by the unmodified desktop_env on a desktop in gVisor that was forked in between."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from exact.benchmarks.osworld.environment import OSWorldEnvironment
from exact.benchmarks.osworld.suite import FOLDER, OSWorld
from exact.config import BrowserConfig
from exact.errors import UsageError
from exact.task import Outcome

KEY = "org.gnome.desktop.notifications show-banners"
TASK = {
    "id": "banners",
    "instruction": "Turn the banners of notifications off.",
    "config": [{"type": "execute", "parameters": {"command": f"gsettings set {KEY} true", "shell": True}}],
    "evaluator": {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": f"gsettings get {KEY}", "shell": True},
        "expected": {"type": "rule", "rules": {"expected": "false\n"}},
    },
}


async def do(environment: OSWorldEnvironment, program: str, *, until: str) -> None:
    """Carry out a program, and wait until the desktop shows a text."""
    found = await environment.step(environment.actions.parse(f"python {json.dumps(program)}"))
    for _ in range(60):
        assert found.observation is not None
        if until in found.observation.text:
            return
        found = await environment.step(environment.actions.parse("wait"))
    raise AssertionError(f"{until!r} was not shown: {found.observation}")


@pytest.mark.skipif(
    FOLDER not in os.environ, reason=f"runs where {FOLDER} is set: the desktop with desktop_env takes minutes on a busy machine"
)
async def test_a_state_is_judged_and_judged_again_after_a_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "examples" / "os" / "banners.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(TASK))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    suite = OSWorld()
    task = suite.task("osworld/os/banners")
    try:
        suite.check(task)
    except UsageError as error:
        pytest.skip(str(error))
    async with suite.environments(BrowserConfig()) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environment, OSWorldEnvironment)
        await environment.reset(task)
        before = await environment.snapshot()
        await do(environment, "pyautogui.hotkey('ctrl', 'alt', 't')", until="$")
        await do(environment, f"pyautogui.write('gsettings set {KEY} false; echo ok$((1+1))\\n')", until="ok2")
        done = await environment.evaluate(Outcome(actions=("stop",)))
        assert (done.success, (await environment.evaluate(Outcome(actions=("fail",)))).success) == (True, False)
        await environment.restore(before)
        assert (await environment.evaluate(Outcome(actions=("stop",)))).raw == 0.0
