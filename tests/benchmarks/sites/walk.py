"""Walks the reference and the wrong action sequences of the site tasks: what they name by role and name is found in each observation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exact.action import Action
from exact.benchmarks.sites import Site
from exact.benchmarks.webarena.evaluate import evaluate
from exact.environments.base import Environment, Worlds
from exact.observation import Observation
from exact.task import Outcome, Score

REFERENCE: dict[str, dict[str, list[list[Any]]]] = json.loads(Path(__file__).with_name("reference.json").read_text("utf-8"))


PATIENCE = 5
"""How often a page that has not yet what a step names is waited for."""


def named(seen: Observation, step: Sequence[Any]) -> bool:
    """Whether what a step names is there."""
    if step[0] in ("goto", "stop"):
        return True
    return len([each for each in seen.elements if (each.role, each.name) == (step[1], step[2])]) > step[-1]


def action(world: Environment, seen: Observation, step: Sequence[Any]) -> Action:
    """`["goto", path]`, `["stop", answer]`, `["click", role, name, n]`, `["fill" or "select", role, name, text, n]`."""
    verb, *rest = step
    if verb in ("goto", "stop"):
        return world.actions.action(verb, *rest)
    role, name, *texts, number = rest
    found = [each for each in seen.elements if each.role == role and each.name == name]
    assert len(found) > number, f"no {role} {name!r} number {number} at {seen.url}:\n{seen.text}"
    return world.actions.action(verb, found[number].id, *texts)


async def walk(world: Environment, site: Site, id: str, steps: Sequence[Sequence[Any]]) -> Score:
    """The score of a sequence. A mere answer to a question is looked at without a world."""
    checks = site.checks(id.partition("/")[2])
    if len(steps) == 1 and site.files[id.partition("/")[2]].eval.eval_types == ("string_match",):
        nowhere: Any = None
        return await evaluate(checks, nowhere, Outcome(actions=(), answer=steps[0][1]))
    seen, actions, answer = await world.reset(site.task(id)), list[str](), None
    for step in steps:
        for _ in range(PATIENCE):
            if named(seen, step):
                break
            later = await world.step(world.actions.action("wait"))
            assert later.observation is not None
            seen = later.observation
        taken = action(world, seen, step)
        transition = await world.step(taken)
        actions.append(taken.key)
        if transition.observation is None:
            answer = str(taken.args[0])
            break
        seen = transition.observation
    return await world.evaluate(Outcome(actions=tuple(actions), answer=answer))


async def scores(worlds: Worlds, site: Site, ids: Sequence[str], kinds: Sequence[str] = ("right", "wrong")) -> dict[str, str]:
    """What is not as it should be: by task and kind, the verdict."""
    wrong: dict[str, str] = {}
    async with worlds.open(speculative=False) as world:
        for id in ids:
            for kind in kinds:
                score = await walk(world, site, id, REFERENCE[id][kind])
                if score.success != (kind == "right"):
                    wrong[f"{id} {kind}"] = score.reason or "scored 1"
    return wrong
