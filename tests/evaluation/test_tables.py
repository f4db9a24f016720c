"""What tables, curves and pages say of results, and what they must not hide."""

import math
from pathlib import Path

import msgspec
import pytest

from exact.cli.main import main
from exact.config import parse
from exact.errors import UsageError
from exact.evaluation import summary as comparing
from exact.evaluation.folder import Result
from exact.evaluation.output import curves, render_page, success_curve, write_outputs
from exact.evaluation.plan import BenchSession, Plan, at_equal_budgets, budget_of, checked_names
from exact.evaluation.summary import Side, compare, open_side, summarise, versus
from exact.evaluation.table import advised, published, published_on, render_markdown
from exact.task import Task
from tests.evaluation.toys import run, settings, toy_bench

TASKS = tuple(Task(id=f"miniwob/{name}?seed={seed}", instruction="", seed=seed) for name in "ab" for seed in (0, 1))


def result(agent: str, index: int, score: float | None, **more: object) -> Result:
    status = "scored" if score is not None else "failed"
    return Result(**{"task": TASKS[index].id, "seed": 0, "agent": agent, "status": status, "score": score, "live_score": score, **more})  # type: ignore[arg-type]


def plan(*agents: str) -> Plan:
    return Plan(suite="miniwob/@browsergym", agents=agents, tasks=TASKS, budget={"actions": 15.0})


def test_a_failure_of_the_infrastructure_is_in_no_share() -> None:
    found = summarise("a", [result("a", 0, 1.0), result("a", 1, None, attempts=2), result("a", 2, 1.0)])
    assert (found.success.mean, found.scored, found.failed, found.reruns) == (1.0, 2, 1, 1)


def test_the_agents_own_evaluation_is_in_no_share() -> None:
    found = summarise("a", [result("a", 0, 0.0), result("a", 1, None, status="judged", value=0.9)])
    assert (found.success.mean, found.judged) == (0.0, 1)


def test_a_gain_is_taken_on_what_both_have_a_score_for() -> None:
    found = versus([result("a", 0, 1.0), result("a", 1, 1.0)], [result("b", 0, 0.0), result("b", 1, None), result("b", 2, 1.0)])
    assert (found.wins, found.losses, found.ties, found.unpaired, found.gain.mean) == (1, 0, 0, 2, 1.0)


def test_a_cost_that_is_not_known_is_not_a_number_and_never_solved_at_it() -> None:
    lines = [result("a", 0, 1.0, cost=None), result("a", 1, 1.0, cost=0.5)]
    assert math.isnan(summarise("a", lines).costs["cost"])
    assert "unknown" in render_markdown(plan("a"), lines)
    assert "0.5" not in success_curve(plan("a"), [lines[0]], "cost")


def test_an_oracle_is_called_one_everywhere() -> None:
    lines = [result("best", 0, 1.0, oracle=True, transitions=3), result("react", 0, 0.0)]
    text = render_markdown(plan("react", "best"), lines)
    named = [line for line in text.splitlines() if line.startswith("| best")]
    assert len(named) == 3 and all("ORACLE" in line for line in named)
    assert "best (ORACLE)" in success_curve(plan("react", "best"), lines, "transitions")
    assert "oracle: saw the score" in render_page(plan("react", "best"), lines, "")
    assert 'Gain over best <span class="oracle">' in render_page(plan("best", "react"), lines, "")


def test_an_agent_that_the_suite_trained_is_called_specialised() -> None:
    lines = [result("react", 0, 1.0, policy="learned"), result("other", 0, 0.0, policy="lexical")]
    told = "Specialised: the model of react (policy `learned`)"
    assert told in render_markdown(plan("react", "other"), lines) and told in render_page(plan("react", "other"), lines, "")
    assert told not in render_markdown(plan("other"), lines[1:])
    elsewhere = msgspec.structs.replace(plan("react", "other"), suite="sites")
    assert told not in render_markdown(elsewhere, lines)


def test_an_oracle_that_no_environment_reported_to_is_called_void() -> None:
    void = [result("best", 0, 1.0, oracle=True, informed=0), result("best", 1, None, oracle=True)]
    told = [result("best", 0, 1.0, oracle=True, informed=0), result("best", 1, 1.0, oracle=True, informed=2)]
    unknown = [result("best", 0, 1.0, oracle=True)]
    for lines, word in ((void, "VOID"), (told, "saw the score"), (unknown, "saw the score")):
        assert word in render_markdown(plan("best"), lines)
    assert "oracle, void" in render_page(plan("best"), void, "") and "oracle: saw" in render_page(plan("best"), told, "")
    assert "best (ORACLE, VOID)" in success_curve(plan("best"), void, "transitions")


def test_an_oracle_is_called_one_in_every_line_and_table_of_a_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(path: Path) -> Side:
        oracle = path.name == "best"
        found = [result(path.name, i, score, oracle=oracle) for i, score in enumerate([1.0, float(oracle), None if oracle else 1.0])]
        return Side(path.name, found, parse({}), {task.id: task for task in TASKS})

    monkeypatch.setattr(comparing, "open_side", told)
    for sides in (["best", "react"], ["react", "best"]):
        assert main(["compare", *sides]) == 0
        named = [line for line in capsys.readouterr().out.splitlines() if "best" in line]
        assert len(named) == 2 + (sides[0] == "best") + 1 and all("best (ORACLE" in line for line in named)


def test_both_readings_of_a_raw_reward_are_named() -> None:
    from exact.benchmarks.miniwob.suite import REWARDS

    found = summarise("a", [result("a", 0, 1.0, raw=0.5), result("a", 2, 1.0, raw=1.0)], REWARDS)
    assert {name: each.mean for name, each in found.rewards.items()} == {"browsergym (raw > 0)": 1.0, "binary (raw = 1)": 0.5}


def test_an_attempt_that_did_not_end_counts_0_in_both_readings_as_in_success() -> None:
    from exact.benchmarks.miniwob.suite import REWARDS

    lines = [result("a", 0, 1.0, raw=0.5), result("a", 1, 1.0, raw=1.0), result("a", 2, 0.0), result("a", 3, None)]
    found = summarise("a", lines, REWARDS)
    assert found.rewards["browsergym (raw > 0)"] == found.success and found.success.mean == 0.5
    assert found.rewards["binary (raw = 1)"].mean == 0.25
    assert {each.mean for each in summarise("a", lines[2:3], REWARDS).rewards.values()} == {0.0}, "none of them has ended"
    assert summarise("a", lines[3:], REWARDS).rewards == {}, "none has a score"


def test_published_results_have_a_source_and_are_marked() -> None:
    assert {each.suite for each in published()} == {"miniwob", "webarena", "visualwebarena"}
    assert all(each.url.startswith("https://") and each.source and 0 < each.success < 1 for each in published())
    tasks, lines = named_tasks("miniwob", 125), [result("a", 0, 1.0, transitions=4)]
    whole = msgspec.structs.replace(plan("a"), tasks=tasks)
    assert "not re-run" in render_markdown(whole, lines) and "not re-run" in success_curve(whole, lines, "transitions")


def named_tasks(suite: str, count: int) -> tuple[Task, ...]:
    return tuple(Task(id=f"{suite}/{number}?seed={seed}", instruction="", seed=seed) for number in range(count) for seed in (0, 1))


@pytest.mark.parametrize(
    ("suite", "count", "split", "drawn"),
    [
        ("miniwob", 125, "125 tasks x 5 seeds, 10 steps", 4),
        ("miniwob", 1, "125 tasks x 5 seeds, 10 steps", 0),
        ("visualwebarena", 910, "910 tasks", 5),
        ("visualwebarena", 234, "classifieds, 234 tasks", 4),
        ("visualwebarena", 479, "910 tasks", 0),
    ],
)
def test_a_part_of_a_suite_is_drawn_beside_what_was_published_on_that_part_alone(suite: str, count: int, split: str, drawn: int) -> None:
    asked = msgspec.structs.replace(plan("a"), suite=suite, tasks=named_tasks(suite, count))
    svg = success_curve(asked, [result("a", 0, 1.0, transitions=4)], "transitions")
    assert svg.count("not re-run") == svg.count(f"{split}, not re-run") == drawn
    assert split in render_markdown(asked, []) and split in render_page(asked, [], ""), "tables keep all, with what they are of"


def test_published_results_state_their_number_of_tasks() -> None:
    assert all(f"{each.tasks} tasks" in each.split for each in published())


def test_replays_that_led_elsewhere_are_counted_where_there_are_any() -> None:
    lines = [result("a", i, 1.0, replay=verdict) for i, verdict in enumerate(["same", "drifted", "refused", "drifted"])]
    text, html = render_markdown(plan("a"), lines), render_page(plan("a"), lines, "")
    assert "| replays not the same |" in text and "| 3 (drifted 2, refused 1) |" in text
    assert "Replays not the same" in html and "3 (drifted 2, refused 1)" in html
    assert "not the same" not in render_markdown(plan("a"), lines[:1]) + render_page(plan("a"), lines[:1], "")


def test_a_page_shows_what_a_table_does() -> None:
    lines = [result("a", 0, 0.5), result("a", 1, None, status="judged", value=0.9)]
    remembering = msgspec.structs.replace(plan("a"), same_task=True)
    html = render_page(remembering, lines, "")
    assert ">Score</th>" in html and f'<td class="n">{summarise("a", lines).score}</td>' in html
    assert ">Only self-evaluated</th>" in html and '<td class="n rare">1</td></tr>' in html
    assert "reflections from other seeds of the same task" in html
    whole = render_page(plan("a"), [result("a", 0, 1.0)], "")
    assert ">Score</th>" not in whole and "lessons" not in whole


def test_each_session_records_its_commit_and_machine() -> None:
    first = {"exact": "1", "commit": "abc"}
    later = (
        BenchSession(versions={"exact": "1", "commit": "def"}, begun="tomorrow", agents=("b",)),
        BenchSession(versions={"exact": "1", "commit": "def"}, begun="the day after"),
        BenchSession(versions={"exact": "1"}, begun="at last"),
    )
    asked = msgspec.structs.replace(plan("a"), versions=first, begun="today", later=later)
    for text in (render_markdown(asked, []), render_page(asked, [], "")):
        assert "commit abc" in text and "today" in text
        assert "Resumed tomorrow, with b added: commit def." in text
        assert "Resumed the day after: unchanged." in text and "Resumed at last: commit none." in text


def test_a_session_by_changed_code_is_never_taken_for_one_by_the_same() -> None:
    plain, changed = (BenchSession(versions={"exact": "1", "commit": f"abc{end}"}) for end in ("", "+changes"))
    assert plain.since(plain) == {}
    assert changed.since(plain) == {"commit": ("abc", "abc+changes")}
    assert changed.since(changed) == {"commit": ("abc+changes", "abc+changes")}, "nobody knows which changes"
    assert plain.since(changed) == {"commit": ("abc+changes", "abc")}
    asked = msgspec.structs.replace(plan("a"), versions=changed.versions, later=(changed,))
    for text in (render_markdown(asked, []), render_page(asked, [], "")):
        assert "Resumed: commit abc+changes." in text and "unchanged" not in text


async def test_a_benchmark_resumed_records_by_what_and_says_what_is_other(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=1)
    plain = msgspec.json.decode((folder.path / "bench.json").read_bytes())
    del plain["later"]
    (folder.path / "bench.json").write_bytes(msgspec.json.encode(plain))
    assert folder.plan.sessions == (BenchSession(),), "a file from before still reads"
    assert folder.add_session(BenchSession(versions={"commit": "abc"})) == {"commit": ("none", "abc")}
    assert folder.add_session(BenchSession(versions={"commit": "abc"})) == {}
    await run(folder)
    before = folder.plan
    assert folder.add_session(BenchSession(versions={"commit": "def"})) == {} and folder.plan == before, "nothing was left to be made"
    assert folder.add_session(BenchSession(versions={"commit": "def"}), {"mcts": settings("mcts")}) == {"commit": ("abc", "def")}
    assert folder.plan.agents == ("react", "mcts") and [each.agents for each in folder.plan.later] == [(), (), ("mcts",)]
    assert folder.agent("mcts")[0].manifest.versions == {"commit": "def"} and folder.agent("react")[0].manifest.versions == {}


@pytest.mark.parametrize("suite", ["miniwob", "miniwob/click-*", "miniwob seeds 0..4", "miniwob?seed=3", "miniwob/a miniwob/b"])
def test_published_results_are_found_for_any_spelling_of_a_suite(suite: str) -> None:
    assert {each.suite for each in published_on(suite)} == {"miniwob"}
    assert not published_on(f"trac {suite}"), "its share of success is of both"


def test_attempts_without_cost_do_not_stretch_the_axis() -> None:
    drawn = curves({"free": [(0.0, 0.5), (20.0, 1.0)], "dear": [(300.0, 1.0)]}, x="calls", title="")
    assert [f">{tick}</text>" in drawn for tick in ("1e-09", "1", "10", "100", "1000", "10000")] == [False, False, True, True, True, False]
    assert "</svg>" in curves({"free": [(0.0, 1.0)]}, x="calls", title=""), "all of them may be free"


def test_an_unfinished_benchmark_says_how_much_is_missing() -> None:
    lines = [result("a", 0, 1.0)]
    assert "3 of 4 attempts are left to run" in render_markdown(plan("a"), lines)
    assert "not run" in render_page(plan("a"), lines, "")


def test_text_from_a_site_does_not_become_a_page() -> None:
    html = render_page(plan("a"), [result("a", 0, None, reason='"><script>alert(1)</script>')], "")
    assert "<script" not in html


def test_a_cause_of_a_failure_is_whole_and_has_its_advice() -> None:
    reason = "the server answered with an error of its own. " * 20
    html = render_page(plan("a"), [result("a", 0, None, reason=reason), result("a", 1, None, reason="it wrote", resumable=False)], "")
    assert reason.strip() in html and "with the folder of this run tries again" in html and "Resuming cannot help" in html


def test_one_task_has_no_curve() -> None:
    lines, alone = [result("a", 0, 1.0), result("a", 1, 0.0)], msgspec.structs.replace(plan("a"), tasks=TASKS[:2])
    assert "<figure" in render_page(plan("a"), lines, "<svg></svg>") and "<figure" not in render_page(alone, lines, "<svg></svg>")


def test_every_cell_leads_to_its_report_and_shows_what_was_asked_and_answered() -> None:
    hostile = '"><script>alert(1)</script>'
    lines = [result("a", 0, 1.0, answer=hostile), result("a", 1, None, reason=hostile, began=False), result("a", 2, 0.0, answer="")]
    links = {("a", TASKS[0].id): "agents/a/tasks/x y/report.html", ("a", TASKS[1].id): "agents/a/tasks/z/report.html"}
    texts = {TASKS[0].id: f"Find 日本 {hostile}", TASKS[1].id: "Buy tea."}
    html = render_page(plan("a"), lines, "", reports=links, instructions=texts)
    assert 'href="agents/a/tasks/x%20y/report.html"' in html and ">Did not begin</span>" in html and html.count("report.html") == 2
    assert "Find 日本" in html and "Buy tea." in html and "(empty)" in html and "<script>" not in html


async def test_tables_and_curves_are_written_and_a_comparison_counts_wins_and_losses(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), settings("mcts", iterations=30), seeds=4)
    await run(folder)
    names = {path.name for path in write_outputs(folder)}
    assert {"table.md", "index.html", "curve_transitions.svg"} <= names
    found = compare(open_side(folder.agent_path("mcts")), open_side(folder.agent_path("react")))
    again = compare(open_side(folder.agent_path("react")), open_side(folder.agent_path("mcts")))
    assert (found.versus.wins, found.versus.losses) == (again.versus.losses, again.versus.wins)
    assert sum(each.wins for each in found.tasks) == found.versus.wins
    with pytest.raises(UsageError, match=r"is a benchmark.*name a run of it"):
        open_side(folder.path)


async def test_runs_that_are_no_fair_comparison_are_said_to_be_none(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    await run(folder)
    one, other = (open_side(folder.agent_path(name)) for name in ("mcts", "react"))
    assert not [told for told in compare(one, other).warnings if "differ" in told or "not the same" in told]
    judges = parse({"limits": {"actions": 3}, "models": {"parts": {"evaluator": {"model": "gpt-4o"}}}})
    asked = {id: msgspec.structs.replace(task, private={"evaluate": "other"}) for id, task in other.tasks.items()}
    warnings = " | ".join(compare(one, other._replace(config=judges, tasks=asked)).warnings)
    assert "limits.actions differs (mcts 4, react 3): the budgets were not equal" in warnings
    assert "models.parts.evaluator differs (mcts none, react gpt-4o): the evaluators asked different models" in warnings
    assert f"{len(asked)} tasks differ in their instruction or evaluator" in warnings


def test_unequal_budgets_are_refused_with_the_way_out() -> None:
    one, other = parse({"name": "one", "limits": {"actions": 15}}), parse({"name": "other", "limits": {"actions": 30}})
    with pytest.raises(UsageError, match=r"limits.actions differs \(one 15, other 30\).*--budget actions=N"):
        at_equal_budgets([one, other], {})
    configs, budget = at_equal_budgets([one, other], budget_of(["actions=10", "money=0.5"]))
    assert [config.limits.actions for config in configs] == [10, 10] and budget == {"money": 0.5, "actions": 10.0}
    assert at_equal_budgets([one, other], {}, own=True)[1] == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("action=3", "did you mean 'actions'"),
        ("actions=x", "write an amount"),
        ("actions=-1", "at least 0"),
        ("actions=2.7", "actions are counted, so write a whole number, such as actions=3"),
        ("calls=0.5", "calls are counted, so write a whole number, such as calls=1"),
        ("tokens=nan", "at least 0"),
    ],
)
def test_a_budget_that_does_not_read_says_why(words: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        budget_of([words])


def test_money_and_seconds_may_be_capped_at_fractions_and_what_is_counted_at_whole_numbers() -> None:
    found = budget_of(["money=0.5", "seconds=2.5", "actions=3", "calls=1e3", "tokens=5.0"])
    limits = at_equal_budgets([parse({})], found)[0][0].limits
    assert (limits.money, limits.seconds, limits.actions, limits.calls, limits.tokens) == (0.5, 2.5, 3, 1000, 5)


@pytest.mark.parametrize("names", [["a", "a"], ["a/b"], [""], [".."]])
def test_agents_need_names_of_their_own_that_folders_can_have(names: list[str]) -> None:
    with pytest.raises(UsageError):
        checked_names(names)


def some(agent: str, solved: str, tokens: int, **more: object) -> list[Result]:
    """Return results of ten tasks: a digit each, 1 for success."""
    names = [f"miniwob/{name}?seed=0" for name in "abcdefghij"]
    return [
        msgspec.structs.replace(result(agent, 0, float(digit), tokens=tokens, **more), task=name)
        for digit, name in zip(solved, names, strict=True)
    ]


@pytest.mark.parametrize(
    ("base", "other", "words"),
    [
        ("0000000000", "1111111100", ("mcts solves 80 more of 100 attempts", "4.0 times the tokens, 3,750 tokens for each", "use mcts")),
        ("1111111100", "0000000000", ("mcts solves 80 fewer of 100 attempts", "use react")),
        ("1100000000", "1010100000", ("no difference is shown", "use react, or run more: some", "tasks would show")),
        ("1100000000", "1100000000", ("no difference is shown", "mcts solves as many of 100 attempts [0, 0]", "use react")),
    ],
)
def test_advice_says_what_search_brings_for_how_much_and_what_to_use(base: str, other: str, words: tuple[str, ...]) -> None:
    lines = [*some("react", base, 1000), *some("mcts", other, 4000)]
    both = msgspec.structs.replace(plan("react", "mcts"), tasks=tuple(Task(id=each.task, instruction="") for each in lines[:10]))
    (told,) = advised(both, lines)
    assert all(word in told for word in words), told
    assert told in render_markdown(both, lines) and told[1:] in render_page(both, lines, "")


def test_advice_names_no_oracle_and_judges_nothing_by_one_task_or_an_unknown_cost() -> None:
    assert advised(plan("react", "best"), [result("react", 0, 0.0), result("best", 0, 1.0, oracle=True)]) == []
    assert advised(plan("react", "mcts"), [result("react", 0, 0.0), result("mcts", 0, 1.0)]) == [
        "mcts against react: 1 task cannot tell: run at least ten"
    ]
    assert advised(plan("react", "mcts"), [result("react", 0, 0.0)]) == []
    (told,) = advised(plan("react", "mcts"), [*some("react", "0" * 10, 9), *some("mcts", "1" * 10, None)])  # type: ignore[arg-type]
    assert "an unknown number of tokens" in told


def test_a_chart_has_a_title_that_it_can_hold() -> None:
    long = msgspec.structs.replace(plan("react"), suite=" ".join(["miniwob/click-checkboxes"] * 9))
    assert f"{long.suite[:79]}…</text>" in success_curve(long, [], "calls")
