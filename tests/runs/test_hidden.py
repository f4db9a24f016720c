"""How an attempt is judged stands in some tasks: environments need it, agents are not shown it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from exact.action import ActionSpace
from exact.benchmarks.desktop.suite import DesktopSuite
from exact.benchmarks.osworld import parse
from exact.benchmarks.own.files import read
from exact.context import Context, Proposal
from exact.environments.adapters.script_browser import task_of
from exact.environments.toy.agents import ToyPolicy
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.observation import Observation
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.benchmarks.osworld.test_format import item
from tests.benchmarks.webarena.conftest import item as webarena_item
from tests.runs.toys import config, toy_agent


def own(folder: Path) -> Task:
    rules = "{eval_types: [string_match], reference_answers: {exact_match: xyzzy}}"
    (folder / "tasks.yaml").write_text(f"- {{id: a, goal: Do it., url: 'http://shop.test/', geolocation: 1 2, evaluate: {rules}}}")
    return read(folder / "tasks.yaml")[0]


MADE: dict[str, tuple[Callable[[Path], Task], str]] = {
    "own": (own, "xyzzy"),
    "osworld": (lambda folder: parse(item(), "x.json").task("chrome"), "compare_docx_files"),
    "desktop": (lambda folder: DesktopSuite().task("desktop/delete-line"), "checks"),
    "webarena in a guest": (lambda folder: task_of(webarena_item()), "reference_answers"),
}


@pytest.mark.parametrize("kind", MADE)
async def test_an_agent_is_not_shown_how_it_is_judged(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, secret = MADE[kind]
    task, shown, given = make(tmp_path), list[Context](), list[Task]()
    propose, reset = ToyPolicy.propose, ToyEnvironment.reset

    async def looks(policy: ToyPolicy, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        shown.append(context)
        return await propose(policy, context, actions, k)

    async def resets(environment: ToyEnvironment, task: Task) -> Observation:
        given.append(task)
        return await reset(environment, task)

    monkeypatch.setattr(ToyPolicy, "propose", looks)
    monkeypatch.setattr(ToyEnvironment, "reset", resets)
    environments, settings = ToyFactory(chain(2)), config()
    run = create(tmp_path / "run", (task,), settings)
    await Runner(
        folder=run,
        config=settings,
        open_environments=lambda task: nullcontext(environments),
        build_agent=toy_agent(environments.graph),
    ).run()
    assert shown and not any(secret in msgspec.json.encode(context).decode() for context in shown)
    assert all(secret in str(each.private) for each in given) and given, "the environment, which judges, has all of it"
    seen = shown[0].task
    assert not seen.private and (seen.id, seen.start, seen.metadata.get("geolocation")) == (
        task.id,
        task.start,
        task.metadata.get("geolocation"),
    )
