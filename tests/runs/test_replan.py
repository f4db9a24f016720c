"""A budget in calls becomes iterations: Gumbel plans each phase anew by what an iteration has cost."""

from __future__ import annotations

from pathlib import Path

from exact.environments.toy.factory import ToyFactory, bandit
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from tests.runs.toys import config, toy_runner


async def test_a_cap_on_evaluations_shortens_the_phases_and_the_journal_folds(tmp_path: Path) -> None:
    found = {}
    for cap in (None, 8):
        settings = config(search={"algorithm": "gumbel", "iterations": 30, "k": 5, "limits": {"evaluations": cap}})
        folder = tmp_path / str(cap)
        await toy_runner(folder, ToyFactory(bandit(5, seed=3)), settings).run()
        [journal] = folder.glob("tasks/*/journal.jsonl")
        events = list(read_journal(journal))
        fold(settings, events)
        found[cap] = next(event for event in events if isinstance(event, ev.Decided))
    assert sum(a.visits for a in found[8].decision.alternatives) < 8
    assert all(a.visits for a in found[8].decision.alternatives if a.prior >= 0.2), "every action that is considered gets its share"
