"""What tables, curves and pages say of results, and what they must not hide."""

import math
from pathlib import Path

import msgspec
import pytest

from exact.config import parse
from exact.errors import UsageError
from exact.evaluation.compare import compare, side
from exact.evaluation.folder import Result
from exact.evaluation.output import curve, write_outputs
from exact.evaluation.page import page
from exact.evaluation.plan import Plan, at_equal_budgets, budget_of, named
from exact.evaluation.plot import curves
from exact.evaluation.published import published, published_on
from exact.evaluation.summary import row, versus
from exact.evaluation.table import markdown
from exact.task import Task
from tests.evaluation.toys import run, settings, toy_bench

TASKS = tuple(Task(id=f"miniwob/{name}?seed={seed}", instruction="", seed=seed) for name in "ab" for seed in (0, 1))


def result(agent: str, index: int, score: float | None, **more: object) -> Result:
    status = "scored" if score is not None else "failed"
    return Result(**{"task": TASKS[index].id, "seed": 0, "agent": agent, "status": status, "score": score, "live_score": score, **more})  # type: ignore[arg-type]


def plan(*agents: str) -> Plan:
    return Plan(suite="miniwob/@browsergym", agents=agents, tasks=TASKS, budget={"actions": 15.0})


def test_a_failure_of_the_infrastructure_is_in_no_share() -> None:
    found = row("a", [result("a", 0, 1.0), result("a", 1, None, attempts=2), result("a", 2, 1.0)])
    assert (found.success.mean, found.scored, found.failed, found.reruns) == (1.0, 2, 1, 1)


def test_a_verdict_of_the_agents_own_is_in_no_share() -> None:
    found = row("a", [result("a", 0, 0.0), result("a", 1, None, status="judged", value=0.9)])
    assert (found.success.mean, found.judged) == (0.0, 1)


def test_a_gain_is_taken_on_what_both_have_a_score_for() -> None:
    found = versus([result("a", 0, 1.0), result("a", 1, 1.0)], [result("b", 0, 0.0), result("b", 1, None), result("b", 2, 1.0)])
    assert (found.wins, found.losses, found.ties, found.unpaired, found.gain.mean) == (1, 0, 0, 2, 1.0)


def test_a_cost_that_is_not_known_is_not_a_number_and_never_solved_at_it() -> None:
    lines = [result("a", 0, 1.0, cost=None), result("a", 1, 1.0, cost=0.5)]
    assert math.isnan(row("a", lines).costs["cost"])
    assert "unknown" in markdown(plan("a"), lines)
    assert "0.5" not in curve(plan("a"), [lines[0]], "cost")


def test_an_oracle_is_called_one_wherever_it_stands() -> None:
    lines = [result("best", 0, 1.0, oracle=True, transitions=3), result("react", 0, 0.0)]
    text = markdown(plan("react", "best"), lines)
    named = [line for line in text.splitlines() if line.startswith("| best")]
    assert len(named) == 3 and all("ORACLE" in line for line in named)
    assert "best (ORACLE)" in curve(plan("react", "best"), lines, "transitions")
    assert "oracle: told the verdict" in page(plan("react", "best"), lines, "")


def test_both_readings_of_a_raw_reward_are_named() -> None:
    from exact.benchmarks.miniwob.rewards import REWARDS

    found = row("a", [result("a", 0, 1.0, raw=0.5), result("a", 2, 1.0, raw=1.0)], REWARDS)
    assert {name: each.mean for name, each in found.rewards.items()} == {"browsergym (raw > 0)": 1.0, "binary (raw = 1)": 0.5}


def test_what_is_published_has_a_source_and_is_told_apart() -> None:
    assert {each.suite for each in published()} == {"miniwob", "webarena", "visualwebarena"}
    assert all(each.url.startswith("https://") and each.source and 0 < each.success < 1 for each in published())
    lines = [result("a", 0, 1.0, transitions=4)]
    assert "not re-run" in markdown(plan("a"), lines) and "not re-run" in curve(plan("a"), lines, "transitions")


@pytest.mark.parametrize("suite", ["miniwob", "miniwob/click-*", "miniwob seeds 0..4", "miniwob?seed=3", "miniwob/a miniwob/b"])
def test_what_is_published_is_found_however_a_suite_was_asked_for(suite: str) -> None:
    assert {each.suite for each in published_on(suite)} == {"miniwob"}
    assert not published_on(f"trac {suite}"), "its share of success is of both"


def test_what_was_solved_at_no_cost_does_not_stretch_the_axis() -> None:
    drawn = curves({"free": [(0.0, 0.5), (20.0, 1.0)], "dear": [(300.0, 1.0)]}, x="calls", title="")
    assert [f">{tick}</text>" in drawn for tick in ("1e-09", "1", "10", "100", "1000", "10000")] == [False, False, True, True, True, False]
    assert "</svg>" in curves({"free": [(0.0, 1.0)]}, x="calls", title=""), "all of them may be free"


def test_an_unfinished_benchmark_says_how_much_is_missing() -> None:
    lines = [result("a", 0, 1.0)]
    assert "3 of 4 attempts are still to be made" in markdown(plan("a"), lines)
    assert "not made" in page(plan("a"), lines, "")


def test_text_from_a_site_does_not_become_a_page() -> None:
    html = page(plan("a"), [result("a", 0, None, reason='"><script>alert(1)</script>')], "")
    assert "<script" not in html


async def test_tables_and_curves_are_written_and_a_comparison_counts_wins_and_losses(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), settings("mcts", iterations=30), seeds=4)
    await run(folder)
    names = {path.name for path in write_outputs(folder)}
    assert {"table.md", "index.html", "curve_transitions.svg"} <= names
    found = compare(side(folder.agent_path("mcts")), side(folder.agent_path("react")))
    again = compare(side(folder.agent_path("react")), side(folder.agent_path("mcts")))
    assert (found.versus.wins, found.versus.losses) == (again.versus.losses, again.versus.wins)
    assert sum(each.wins for each in found.tasks) == found.versus.wins
    with pytest.raises(UsageError, match=r"is a benchmark.*name a run of it"):
        side(folder.path)


async def test_runs_that_are_no_fair_comparison_are_said_to_be_none(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    await run(folder)
    one, other = (side(folder.agent_path(name)) for name in ("mcts", "react"))
    assert not [told for told in compare(one, other).warnings if "differ" in told or "not the same" in told]
    judges = parse({"limits": {"actions": 3}, "models": {"parts": {"evaluator": {"model": "gpt-4o"}}}})
    asked = {id: msgspec.structs.replace(task, private={"evaluate": "other"}) for id, task in other.tasks.items()}
    warnings = " | ".join(compare(one, other._replace(config=judges, tasks=asked)).warnings)
    assert "limits.actions differs (mcts 4, react 3): the budgets were not equal" in warnings
    assert "models.parts.evaluator differs (mcts none, react gpt-4o): verdicts were asked of different models" in warnings
    assert f"{len(asked)} tasks are not the same in both" in warnings


def test_unequal_budgets_are_refused_with_the_way_out() -> None:
    one, other = parse({"name": "one", "limits": {"actions": 15}}), parse({"name": "other", "limits": {"actions": 30}})
    with pytest.raises(UsageError, match=r"limits.actions differs \(one 15, other 30\).*--budget actions=N"):
        at_equal_budgets([one, other], {})
    configs, budget = at_equal_budgets([one, other], budget_of(["actions=10", "money=0.5"]))
    assert [config.limits.actions for config in configs] == [10, 10] and budget == {"money": 0.5, "actions": 10.0}
    assert at_equal_budgets([one, other], {}, own=True)[1] == {}


@pytest.mark.parametrize(
    ("words", "told"), [("action=3", "did you mean 'actions'"), ("actions=x", "write an amount"), ("actions=-1", "at least 0")]
)
def test_a_budget_that_does_not_read_says_why(words: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        budget_of([words])


@pytest.mark.parametrize("names", [["a", "a"], ["a/b"], [""], [".."]])
def test_agents_need_names_of_their_own_that_folders_can_have(names: list[str]) -> None:
    with pytest.raises(UsageError):
        named(names)
