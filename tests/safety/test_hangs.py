"""A page that hangs costs its own environment bounded time: a typed failure or an observation, and the neighbour works on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from exact.environments.base import Environment, EnvironmentFactory
from exact.environments.browser.page import timeouts
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.environments.browser.pages import find

from .attack import Attack, Campaign, environments, marked, plain, prepare, sampled
from .hang_attacks import ATTACKS, WHOLE
from .hostile import Answer, Attacker, attacker

pytestmark = pytest.mark.asyncio(loop_scope="module")
CAP = 45.0
"""Most seconds of opening a page, one click, and closing it, on a busy machine. The time limit of a page is PAGE seconds here."""
PAGE = 5.0
ALL = ATTACKS + tuple(plain(name, "") for name in WHOLE)


@dataclass
class Came:
    """How long an attack took, and how the environment beside it failed; empty if it did not."""

    seconds: float
    beside: str = ""


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeouts, "PAGE_TIMEOUT", PAGE)
        made.own.answers["/quiet"] = Answer(b"<title>Quiet</title><button>Quiet</button>")
        yield made


async def visit(factory: EnvironmentFactory, start: str, simulation: bool = True) -> None:
    """Open a page, click Go where there is such a button, and close it. Raises EnvironmentFailure."""
    async with factory.open(simulation=simulation) as environment:
        seen = await environment.reset(Task(id="hostile/hang", instruction="Look around.", start=start))
        for name in ("Go", "Quiet"):
            if found := next((each for each in seen.elements if each.role == "button" and each.name == name), None):
                try:
                    await environment.step(environment.actions.parse(f"click [{found.id}]"))
                except ActionError:
                    continue


async def suffer(attack: Attack, site: Attacker, factory: EnvironmentFactory, beside: Environment, quiet: Observation) -> Came:
    """Carry out an attack while another environment is at a quiet page. Then that one is used, and a new one is opened."""
    start, _ = prepare(attack, site)
    if attack.name in WHOLE:
        site.own.answers[f"/{attack.name}/"] = WHOLE[attack.name]
    began = time.monotonic()
    with suppress(EnvironmentFailure):  # a failure that has a type is an answer
        await visit(factory, start)
    seconds = time.monotonic() - began
    try:
        await beside.step(beside.actions.parse(f"click [{find(quiet, 'Quiet').id}]"))
        await visit(factory, f"{site.start}/quiet")
    except EnvironmentFailure as error:
        return Came(seconds, str(error))
    return Came(seconds)


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, site: Attacker) -> Campaign[Came]:
    """Carry out the attacks one after the other. A browser that broke is replaced."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Came]:
        found = dict[str, Came]()
        left = [each for each in ALL if each.name in names]
        while left:
            async with environments(kind) as factory, factory.open(simulation=True) as beside:
                quiet = await beside.reset(Task(id="hostile/quiet", instruction="Look around.", start=f"{site.start}/quiet"))
                while left:
                    attack = left.pop(0)
                    found[attack.name] = await suffer(attack, site, factory, beside, quiet)
                    if found[attack.name].beside:
                        break
        return found

    return Campaign(request, all_of)


@pytest.mark.parametrize(("kind", "attack"), marked(sampled(ALL, 5), ("process",)) + marked(sampled(ALL, 30), ("sandbox",)))
async def test_a_page_hangs_no_longer_than_its_cap_and_only_itself(campaign: Campaign[Came], kind: str, attack: Attack) -> None:
    came = await campaign.result(kind, attack)
    assert came.beside == ""
    assert came.seconds < CAP
