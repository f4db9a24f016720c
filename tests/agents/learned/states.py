"""Features of small pages."""

from __future__ import annotations

from exact.agents.builtin.judge.situation import read_situation
from exact.agents.learned.agent import wide_candidates
from exact.agents.learned.features import StateFeatures, read_features
from exact.environments.browser.act.grammar import PAGE_ACTIONS
from tests.agents.builtin.pages import FORM, context


async def features(instruction: str) -> StateFeatures:
    """Return the features of the page FORM."""
    given = context(instruction, FORM)
    situation = read_situation(given, ())
    return read_features(given, situation, wide_candidates(situation, PAGE_ACTIONS), 0.4)
