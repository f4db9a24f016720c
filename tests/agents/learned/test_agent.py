"""The learned policy and value function."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import exact
from exact.agents.agent import build_agent
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.builtin.value import LexicalValue
from exact.agents.learned.agent import LearnedAgent, LearnedPolicy, LearnedValue
from exact.agents.learned.network import Network, save, untrained
from exact.config import parse
from exact.context import Context, Taken
from exact.errors import UsageError
from tests.agents.builtin.pages import ACTIONS, FORM, context, page

ASKED = "Select Ann, Cy and click Submit."


def changed(**parts: float) -> Network:
    """Return an untrained model in which whole parts have one value."""
    network = untrained()
    return Network({name: np.full_like(part, parts[name]) if name in parts else part for name, part in network.parameters.items()})


async def test_before_training_it_ranks_as_the_lexical_agent_does() -> None:
    given = context(ASKED, FORM)
    lexical = await LexicalPolicy().propose(given, ACTIONS, 3)
    learned = await LearnedPolicy(LearnedAgent(untrained())).propose(given, ACTIONS, 3)
    assert [each.action for each in learned] == [each.action for each in lexical]
    assert [each.prior for each in learned] == pytest.approx([each.prior for each in lexical], abs=1e-3)


async def test_before_training_it_values_as_the_lexical_agent_does() -> None:
    ended = context(ASKED, FORM, (FORM, "click [4]"), terminated=True)
    for given in (context(ASKED, FORM), ended):
        lexical = (await LexicalValue().evaluate(given)).value
        assert (await LearnedValue(LearnedAgent(untrained())).evaluate(given)).value == pytest.approx(lexical, abs=0.01)


async def test_equal_states_give_equal_proposals() -> None:
    given, network = context(ASKED, FORM), changed(policy=0.3)
    one, other = [await LearnedPolicy(LearnedAgent(network)).propose(given, ACTIONS, 5) for _ in range(2)]
    assert one == other
    assert sum(each.prior for each in one) == pytest.approx(1.0)


async def test_a_refused_action_is_not_proposed_again() -> None:
    policy = LearnedPolicy(LearnedAgent(untrained()))
    first = (await policy.propose(context(ASKED, FORM), ACTIONS, 1))[0].action
    tried = (Taken(observation=FORM, action=first, error="covered"),)
    again = await policy.propose(msgspec.structs.replace(context(ASKED, FORM), tried=tried), ACTIONS, 5)
    assert first not in [each.action for each in again]


async def test_tasks_that_are_set_from_outside_are_left_to_the_lexical_agent() -> None:
    given = context("Find the harbour.", page(("link", "Harbour"), ("link", "News")), application=True)
    network = changed(policy=5.0, value=5.0)
    assert await LearnedPolicy(LearnedAgent(network)).propose(given, ACTIONS, 3) == await LexicalPolicy().propose(given, ACTIONS, 3)
    assert await LearnedValue(LearnedAgent(network)).evaluate(given) == await LexicalValue().evaluate(given)


async def test_what_is_no_page_of_a_browser_is_left_to_the_lexical_agent() -> None:
    nowhere = msgspec.structs.replace(FORM, url="")
    network = changed(policy=5.0, value=5.0)
    for given in (context(ASKED, nowhere), context(ASKED, nowhere, (nowhere, "click [4]"), terminated=True)):
        assert await LearnedPolicy(LearnedAgent(network)).propose(given, ACTIONS, 3) == await LexicalPolicy().propose(given, ACTIONS, 3)
        assert await LearnedValue(LearnedAgent(network)).evaluate(given) == await LexicalValue().evaluate(given)


async def test_an_unseen_state_is_left_to_the_lexical_agent() -> None:
    given: Context = context(ASKED, FORM, (FORM, "click [4]"), unseen=True)
    assert await LearnedValue(LearnedAgent(changed(value=5.0))).evaluate(given) == await LexicalValue().evaluate(given)


async def test_a_page_without_candidates_has_no_proposal_of_an_element() -> None:
    found = await LearnedPolicy(LearnedAgent(untrained())).propose(context("Click OK.", page()), ACTIONS, 5)
    assert all(not each.action.elements for each in found)


async def test_a_configuration_names_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    save(untrained(), path)
    options = {"weights": str(path)}
    config = parse({"policy": {"kind": "learned", "options": options}, "value": {"kind": "learned", "options": options}})
    agent = build_agent(config, lambda role: pytest.fail("no model is asked"))
    assert (await agent.policy.propose(context(ASKED, FORM), ACTIONS, 1))[0].action.key == "click [1]"


@pytest.mark.parametrize("part", ["policy", "value"])
async def test_weights_that_do_not_load_are_told_before_a_folder_is_made(part: str, tmp_path: Path) -> None:
    config = parse({part: {"kind": "learned", "options": {"weights": str(tmp_path / "nothing.npz")}}})
    with pytest.raises(UsageError, match=r"nothing\.npz do not load"):
        await exact.solve("miniwob/click-test", agent=config, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError, match="has no option 'file'"):
        build_agent(parse({"policy": {"kind": "learned", "options": {"file": "x"}}}), lambda role: pytest.fail("no model is asked"))
