"""Nothing that a page does reaches a server that the task does not allow, not even by a connection without a byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import egress_connections, egress_requests, later_attacks
from .attack import Attack, Campaign, Result, campaign_of, marked, sampled
from .hostile import Attacker, attacker

pytestmark = pytest.mark.asyncio(loop_scope="module")
ATTACKS = egress_requests.ATTACKS + egress_connections.ATTACKS + later_attacks.EGRESS


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made:
        yield made


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, site: Attacker) -> Campaign[Result]:
    """Carry out the attacks in live environments of one kind."""
    return campaign_of(request, ATTACKS, site, simulation=False)


@pytest.mark.parametrize(("kind", "attack"), marked(ATTACKS, ("process",)) + marked(sampled(ATTACKS, 14), ("sandbox",)))
async def test_nothing_reaches_a_server_that_the_task_does_not_allow(campaign: Campaign[Result], kind: str, attack: Attack) -> None:
    result = await campaign.result(kind, attack)
    assert result.opened, result.failure
    assert result.arrived == []
