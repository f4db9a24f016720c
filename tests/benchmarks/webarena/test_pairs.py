"""Our comparison of answers and the published one agree on generated pairs, save for named differences."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from exact.benchmarks.webarena.evaluate import evaluate
from exact.benchmarks.webarena.text import Split, tokens, word_tokenize
from exact.task import Outcome
from tests.benchmarks.webarena.cases import Case
from tests.benchmarks.webarena.conftest import checks, standing
from tests.benchmarks.webarena.pairs import pairs
from tests.benchmarks.webarena.recorded import VENV, live, trained_sentences

NAMED = {"", "alternatives", "a digit in a number of its value"}
"""Reasons of differences."""


async def ours(case: Case, split: Split = tokens) -> float:
    made = checks(case["eval"], case["dialect"], split=split)
    return (await evaluate(made, standing(""), Outcome(actions=(), answer=case["answer"]))).value


def difference(case: Case, theirs: Any, mine: float) -> str:
    """Return the reason for which two scores differ; empty where they do not."""
    (reference,) = case["eval"]["reference_answers"].get("must_include", [""])
    if theirs == mine:
        return ""
    if case["dialect"] == "webarena" and " |OR| " in reference:
        return "alternatives"
    if case["dialect"] == "webarena" and len(reference) == 1 and reference.isdigit() and mine == 1.0:
        return "a digit in a number of its value"
    return f"unknown: {case}, theirs {theirs}, ours {mine}"


async def test_fourteen_thousand_pairs_differ_in_named_ways_only():
    cases = pairs(14_000, seed=3)
    theirs = await live(cases, "none")
    reasons = Counter([difference(case, one, await ours(case)) for case, one in zip(cases, theirs, strict=True)])
    assert set(reasons) <= NAMED, reasons
    assert Counter(theirs)[1.0] > 3000 and Counter(theirs)[0.0] > 3000 and reasons[""] > 13_000


@pytest.fixture
def nltk_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let nltk be imported from the peers' virtual environment, with its trained sentences. Return the folder of these."""
    folder = trained_sentences()
    monkeypatch.setattr(sys, "path", [*sys.path, *map(str, VENV.glob("lib/python*/site-packages"))])
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    return folder


@pytest.mark.filterwarnings("ignore")
async def test_trained_sentences_make_19_further_differences_and_none_where_nltk_splits(nltk_data: Path, pytestconfig: pytest.Config):
    """A sixth of the pairs, or all of them with --parity-live."""
    whole = pytestconfig.getoption("parity_live")
    cases, split = pairs(14_000, seed=3)[: 14_000 if whole else 2_500], word_tokenize()
    theirs = await live(cases, "none", sentences=nltk_data)
    strict = [difference(case, one, await ours(case, split)) for case, one in zip(cases, theirs, strict=True)]
    assert set(strict) <= NAMED, Counter(strict)
    ruled = [(case, one, await ours(case)) for case, one in zip(cases, theirs, strict=True)]
    further = [(case, one, mine) for case, one, mine in ruled if difference(case, one, mine) not in NAMED]
    found = Counter((mine, one) for _, one, mine in further)
    assert found == {(1.0, 0.0): 9, (0.0, 1.0): 10} if whole else 0 < found.total() < 10
    assert all("." in case["answer"] for case, *_ in further), "they differ in where a sentence ends"
