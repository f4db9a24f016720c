"""The five tasks of the suite `desktop`, and their evaluators."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from exact.benchmarks import registry
from exact.benchmarks.desktop import DesktopSuite
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.desktop import absent
from exact.errors import UsageError
from exact.observation import Observation
from exact.task import Outcome, Task

SUITE = DesktopSuite()


def test_a_seed_draws_the_task_and_equal_seeds_draw_the_same() -> None:
    for name in SUITE.ids():
        one, other = SUITE.task(f"{name}?seed=1"), SUITE.task(f"{name}?seed=2")
        assert one == registry.task(f"{name}?seed=1") and one.instruction != other.instruction
    with pytest.raises(UsageError, match="did you mean 'desktop/multiply'"):
        SUITE.task("desktop/multiplay")


def by_hand(task: Task) -> list[str]:
    """Return the actions of a person who solves the task; `<name>` stands for an element."""
    texts, numbers = re.findall(r'"(.+?)"', task.instruction), re.findall(r"\d+", task.instruction)
    note = json.loads(task.private["desktop"])["files"].get("note.txt", "")  # type: ignore[arg-type]
    save = 'press "Control+s"'
    match task.id.partition("?")[0].removeprefix("desktop/"):
        case "write-note":
            return [f'fill <textbox> "{texts[0]}"', "click <File>", "click <Save>"]
        case "replace-word":
            return [f"fill <textbox> {json.dumps(note.replace(texts[0], texts[1]))}", save]
        case "delete-line":
            return [f"fill <textbox> {json.dumps(note.replace(texts[0] + chr(10), ''))}", save]
        case "multiply":
            return [*(f"click <{key}>" for key in f"{numbers[0]}*{numbers[1]}=")]
        case _:
            keys = [f"click <{key}>" for key in f"{numbers[0]}+{numbers[1]}="]
            return [*keys, f'fill <textbox> "{int(numbers[0]) + int(numbers[1])}"', save]


async def do(environment: Environment, seen: Observation, action: str) -> Observation:
    ids = {key: each.id for each in reversed(seen.elements) for key in (each.role, each.name)}
    text = re.sub(r"(\w+) <(.+?)>", lambda found: f"{found[1]} [{ids[found[2]]}]", action, count=1)
    after = (await environment.step(environment.actions.parse(text))).observation
    assert after is not None
    return after


async def test_each_task_is_unsolved_at_first_and_solved_by_hand() -> None:
    if lack := absent() or ", ".join(name for name in ("mousepad", "galculator") if not shutil.which(name)):
        pytest.skip(f"no desktop: {lack}")
    async with (
        SUITE.environments(BrowserConfig(sandbox="never", screenshots=False)) as environments,
        environments.open(simulation=False) as environment,
    ):
        for name in SUITE.ids():
            task = SUITE.task(f"{name}?seed=1")
            seen = await environment.reset(task)
            assert not (await environment.evaluate(Outcome(actions=()))).success, name
            for action in by_hand(task):
                seen = await do(environment, seen, action)
            score = await environment.evaluate(Outcome(actions=()))
            assert score.success, (name, score.reason)
