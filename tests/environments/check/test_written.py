"""Actions that a user writes for a check name elements as log-in scripts do."""

from __future__ import annotations

import pytest

from exact.environments.check import written_actions
from exact.environments.toy.factory import ToyFactory, chain
from exact.errors import UsageError
from exact.observation import Element, Observation

SEEN = Observation(text="", fingerprint="", elements=(Element(id="go", role="link", name="on"),))


async def test_only_actions_that_fit_the_state_are_proposed() -> None:
    environments = ToyFactory(chain(3))
    propose = await written_actions(environments, ['go "on"', 'stop "done"'])
    async with environments.open(simulation=True) as environment:
        assert [action.key for action in propose(SEEN, environment.actions)] == ['go "on"', 'stop "done"']


async def test_a_text_that_is_no_action_is_named() -> None:
    with pytest.raises(UsageError, match="'jump' is no action of this environment"):
        await written_actions(ToyFactory(chain(3)), ["jump"])
