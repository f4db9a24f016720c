"""Several policies for one search."""

from __future__ import annotations

from exact.agents.agent import build_agent
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.policy.prior import RandomPolicy
from exact.config import parse


def nothing(role: str) -> object:
    raise AssertionError(f"no model is needed for {role}")


def test_further_policies_are_arms_beside_the_first() -> None:
    agent = build_agent(parse({"policy": {"kind": "lexical"}, "arms": [{"kind": "random"}]}), nothing)  # type: ignore[arg-type]
    assert [type(policy) for policy in agent.policies] == [LexicalPolicy, RandomPolicy]
    assert agent.proposer(1) is agent.policies[1]


def test_without_arms_there_is_one() -> None:
    agent = build_agent(parse({}), nothing)  # type: ignore[arg-type]
    assert agent.proposer(0) is agent.policy
