"""Walks the reference and the wrong action sequences of the site tasks: what they name by role and name is found in each observation.

An answer is compared with a constant of the task file. So the pages of a reference must say it too (`says`), or why it is right where no
page says it (`because`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from exact.action import Action
from exact.benchmarks.sites.suite import SiteSuite
from exact.benchmarks.webarena.evaluate import evaluate
from exact.benchmarks.webarena.format import Answers
from exact.benchmarks.webarena.text import OR
from exact.environments.base import Environment, EnvironmentFactory
from exact.observation import Observation
from exact.task import Outcome, Score

REFERENCE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("reference.json").read_text("utf-8"))


PATIENCE = 5
"""How often a page that has not yet what a step names is waited for."""


def named(seen: Observation, step: Sequence[Any]) -> bool:
    """Return whether the target of a step is on the page."""
    if step[0] in ("goto", "stop"):
        return True
    return len([each for each in seen.elements if (each.role, each.name) == (step[1], step[2])]) > step[-1]


def action(environment: Environment, seen: Observation, step: Sequence[Any]) -> Action:
    """`["goto", path]`, `["stop", answer]`, `["click", role, name, n]`, `["fill" or "select", role, name, text, n]`."""
    verb, *rest = step
    if verb in ("goto", "stop"):
        return environment.actions.action(verb, *rest)
    role, name, *texts, number = rest
    found = [each for each in seen.elements if each.role == role and each.name == name]
    assert len(found) > number, f"no {role} {name!r} number {number} at {seen.url}:\n{seen.text}"
    return environment.actions.action(verb, found[number].id, *texts)


def said(seen: Observation) -> str:
    """Return the text of a page in lower case: names and values in order, and each element's text with its parent's words."""
    words = (text for each in seen.elements for text in (each.name, each.value) if text)
    return " ".join(text for text, _ in groupby(" ".join(phrase.split()).lower() for phrase in words))


def facts(wanted: Answers) -> tuple[tuple[str, ...], ...]:
    """Return the facts that a right answer states; each has its spellings."""
    whole = [(wanted.exact_match,)] if wanted.exact_match is not None else []
    return (*whole, *(tuple(each.split(OR)) for each in wanted.must_include or ()), *([wanted.one_of] if wanted.one_of else []))


def stands(fact: str, text: str) -> bool:
    """Return whether a text holds a fact as separate words and numbers: `4` is not in `4.2`."""
    return re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(fact.lower())}(?!\w)(?![.,]\d)", text.lower()) is not None


def unsaid(wanted: Answers, says: Sequence[str], pages: Sequence[str], because: str = "") -> str:
    """Why pages do not show that a right answer is right; empty where they do. `says`: what must stand on one of them, and the answer in
    it, unless `because` says why no page has the answer itself."""
    for each in says:
        if not any(each.lower() in page for page in pages):
            return f"no page says {each!r}"
    for ways in facts(wanted):
        if not because and not any(stands(way, each) for way in ways for each in says):
            return f"nothing that the pages are to say has the answer {' or '.join(map(repr, ways))}"
    return "" if says else "nothing is named that the pages are to say"


class Walk(NamedTuple):
    """A sequence that was walked."""

    score: Score
    pages: tuple[str, ...] = ()
    """The pages seen, as `said` returns them."""


async def walk(environment: Environment, site: SiteSuite, id: str, steps: Sequence[Sequence[Any]]) -> Walk:
    """Return the score of a sequence. A sequence that only answers needs no environment."""
    checks = site.checks(id.partition("/")[2])
    if len(steps) == 1 and site.files[id.partition("/")[2]].eval.eval_types == ("string_match",):
        nowhere: Any = None
        return Walk(await evaluate(checks, nowhere, Outcome(actions=(), answer=steps[0][1])))
    seen, actions, answer, pages = await environment.reset(site.task(id)), list[str](), None, list[str]()
    for step in steps:
        for _ in range(PATIENCE):
            if named(seen, step):
                break
            later = await environment.step(environment.actions.action("wait"))
            assert later.observation is not None
            seen = later.observation
        taken = action(environment, seen, step)
        transition = await environment.step(taken)
        actions.append(taken.key)
        if transition.observation is None:
            answer = str(taken.args[0])
            break
        seen = transition.observation
        pages.append(said(seen))
    return Walk(await environment.evaluate(Outcome(actions=tuple(actions), answer=answer)), tuple(pages))


async def scores(
    environments: EnvironmentFactory, site: SiteSuite, ids: Sequence[str], kinds: Sequence[str] = ("right", "wrong")
) -> dict[str, str]:
    """Return the wrong scores by task and kind."""
    wrong: dict[str, str] = {}
    async with environments.open(simulation=False) as environment:
        for id in ids:
            for kind in kinds:
                score, pages = await walk(environment, site, id, REFERENCE[id][kind])
                if score.success != (kind == "right"):
                    wrong[f"{id} {kind}"] = score.reason or "scored 1"
                elif kind == "right" and (reason := _unsaid(site, id, pages)):
                    wrong[f"{id} {kind}"] = reason
    return wrong


def _unsaid(site: SiteSuite, id: str, pages: Sequence[str]) -> str:
    wanted, reference = site.files[id.partition("/")[2]].eval.reference_answers, REFERENCE[id]
    return unsaid(wanted, reference.get("says", ()), pages, reference.get("because", "")) if wanted else ""
