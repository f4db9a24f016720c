"""Nothing that a page does reaches a server that the task does not allow, not even by a connection without a byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import egress_connections, egress_requests
from .attack import Attack, Campaign, Result, carry_out_all, environments, marked
from .hostile import Attacker, attacker

pytestmark = pytest.mark.asyncio(loop_scope="module")
ATTACKS = egress_requests.ATTACKS + egress_connections.ATTACKS


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made:
        yield made


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, site: Attacker) -> Campaign[Result]:
    """Carry out the attacks in live environments of one kind."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Result]:
        async with environments(kind) as factory:
            return await carry_out_all(tuple(each for each in ATTACKS if each.name in names), site, factory, simulation=False)

    return Campaign(request, all_of)


@pytest.mark.parametrize(("kind", "attack"), marked(ATTACKS, ("process",)))
async def test_nothing_reaches_a_server_that_the_task_does_not_allow(campaign: Campaign[Result], kind: str, attack: Attack) -> None:
    result = await campaign.result(kind, attack)
    assert result.opened, result.failure
    assert result.arrived == []
