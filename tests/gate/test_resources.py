"""A page that uses up a resource costs its own environment seconds: it is observed, or fails with a type. The neighbours go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exact.environments.browser.page import timeouts
from exact.task import Task
from tests.safety.attack import environments, require_sandbox, sampled

from .attack import Attack, put
from .attacks_resources import ATTACKS, KINDS
from .neighbour import QUIET, suffer
from .sites import Sites, sites

PAGE = 8.0
"""Time limit of a page in seconds: more than the single delay that a neighbour may have."""
PLACES = [
    pytest.param(kind, each, id=f"{kind}-{each.name}")
    for kind, attacks in (("process", ATTACKS), ("sandbox", sampled(ATTACKS, 40)))
    for each in attacks
]
"""All pages in the plain browser, and one in gVisor: all of them there too if EXACT_ALL_ATTACKS is set."""
MOST = 20.0
"""Most seconds of the step that makes a page heavy, on a busy machine."""


@pytest.fixture(scope="module")
def made() -> Iterator[Sites]:
    with sites() as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeouts, "PAGE_TIMEOUT", PAGE)
        yield running


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("kind", "attack"), PLACES)
async def test_a_page_that_uses_up_a_resource_costs_its_own_environment_seconds(
    made: Sites, executable: str, kind: str, attack: Attack
) -> None:
    if kind == "sandbox":
        require_sandbox()
    async with environments(kind) as factory, factory.open(simulation=True) as beside:
        seen = await beside.reset(Task(id="gate/quiet", instruction="Look around.", start=put(QUIET, made)))
        came = await suffer(attack, made, factory, beside, seen)
        if "came late" in came.harm:  # what a page does comes again, and what the machine does beside it does not
            came = await suffer(attack, made, factory, beside, seen)
    assert came.acted or came.refused
    assert came.harm == ""
    assert came.seconds < MOST


def test_there_are_two_pages_of_each_kind() -> None:
    assert [each.name.partition("_")[0] for each in ATTACKS] == [kind for kind in KINDS for _ in range(2)]
