"""While an agent searches, nothing that a page does writes to the task's own sites: neither at the start nor by what the agent tries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .attack import Attack, Campaign, Result, campaign_of, marked, sampled
from .hostile import Attacker, attacker
from .later_attacks import WRITES
from .write_attacks import ATTACKS as FIRST

pytestmark = pytest.mark.asyncio(loop_scope="module")
ATTACKS = FIRST + WRITES


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made:
        yield made


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, site: Attacker) -> Campaign[Result]:
    """Carry out the attacks in environments of one kind that search."""
    return campaign_of(request, ATTACKS, site, simulation=True)


@pytest.mark.parametrize(("kind", "attack"), marked(ATTACKS, ("process",)) + marked(sampled(ATTACKS, 10), ("sandbox",)))
async def test_nothing_is_written_while_searching(campaign: Campaign[Result], kind: str, attack: Attack) -> None:
    result = await campaign.result(kind, attack)
    assert result.opened, result.failure
    assert (result.own, result.other) == ([], [])
