"""Choose the MiniWoB++ tasks of bench/first_light.py by a rule that uses no agent.

The rule is applied to every task of BrowserGym's list whose name's SHA-256 begins with an odd hex digit (the built-in agent was tuned on
the even ones only), with seeds 900 to 902, on which no agent runs. From the start of an episode each element that takes a click is clicked
once, each in a fresh episode, at most 10 elements, evenly spread.

  ends        more than half of the clicks end the episode: a wrong step cannot be undone
  information fewer clicks end it, and on most seeds some click shows words that were not visible before
  form        fewer clicks end it, and the page has a field or a box to set before something is submitted
  other       the rest; also tasks whose state differs after two equal resets, which cannot be explored by replay

Tasks are taken from each of the first three in turn, in the order of their hash, until there are 40.

    python bench/strata.py --json bench/strata.json      (about ten minutes)
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re

import _common

from exact.action import ActionSpace
from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.suite import BROWSERGYM
from exact.config import BrowserConfig
from exact.environments.base import Environment, EnvironmentFactory
from exact.observation import Observation

SEEDS = range(900, 903)
CLICKS = 10
TASKS = 40
FIELDS = {"textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton", "switch"}


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def words(observation: Observation) -> set[str]:
    return {
        word
        for element in observation.elements
        if element.visible
        for word in re.findall(r"\w+", f"{element.name} {element.value or ''}".lower())
    }


async def probe(environments: EnvironmentFactory, suite: MiniWob, name: str) -> dict[str, object]:
    """Return the effects of clicks at a task's start, over the seeds."""
    clicks = ends = showing = forms = unstable = 0
    async with environments.open(simulation=True) as environment:
        for seed in SEEDS:
            task = suite.task(f"miniwob/{name}?seed={seed}")
            start = await environment.reset(task)
            unstable += (await environment.reset(task)).fingerprint != start.fingerprint
            forms += any(element.role in FIELDS or element.value is not None for element in start.elements)
            shown = False
            for id in [element.id for element in start.elements][:: -(-len(start.elements) // CLICKS) or 1]:
                after = await click(environment, suite, task.id, environment.actions, id)
                clicks += 1
                ends += after is None
                shown |= after is not None and bool(words(after) - words(start))
            showing += shown
    return {"clicks": clicks, "ends": ends, "showing": showing, "forms": forms, "unstable": unstable}


async def click(environment: Environment, suite: MiniWob, id: str, actions: ActionSpace, element: str) -> Observation | None:
    """Return the state after one click at the start; None where it ended the episode."""
    from exact.errors import ActionError

    start = await environment.reset(suite.task(id))
    try:
        return (await environment.step(actions.action("click", element))).observation
    except ActionError:
        return start


def stratum(seen: dict[str, object]) -> str:
    """Return the stratum of a task, by the rule above."""
    clicks, ends, showing, forms, unstable = (int(str(seen[key])) for key in ("clicks", "ends", "showing", "forms", "unstable"))
    most = len(SEEDS) // 2 + 1
    if unstable or not clicks:
        return "other"
    if ends > clicks / 2:
        return "ends"
    if showing >= most:
        return "information"
    return "form" if forms >= most else "other"


async def main() -> None:
    options = _common.parser(__doc__ or "").parse_args()
    suite, noise, seen = MiniWob(), _common.Noise(), {}
    names = sorted((name for name in BROWSERGYM if int(digest(name)[0], 16) % 2), key=digest)
    async with suite.environments(BrowserConfig(screenshots=False)) as environments:
        for name in names[:6] if options.quick else names:
            noise.probe()
            seen[name] = await probe(environments, suite, name)
            print(f"{name:34} {stratum(seen[name]):12} {seen[name]}", flush=True)
    strata = {
        kind: [name for name in names if name in seen and stratum(seen[name]) == kind] for kind in ("ends", "information", "form", "other")
    }
    in_turn = [name for row in itertools.zip_longest(strata["ends"], strata["information"], strata["form"]) for name in row if name]
    chosen = {kind: [name for name in strata[kind] if name in in_turn[:TASKS]] for kind in ("ends", "information", "form")}
    _common.table(["stratum", "tasks", "chosen"], [[kind, str(len(strata[kind])), str(len(chosen.get(kind, [])))] for kind in strata])
    figures = [_common.Figure(f"tasks_{kind}", len(chosen[kind])) for kind in chosen]
    _common.finish(
        options, figures, noise, _common.versions("miniwob", "exact-agent"), {"chosen": chosen, "strata": strata, "probes": seen}
    )


if __name__ == "__main__":
    asyncio.run(main())
