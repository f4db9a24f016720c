"""What a terminal says of one attempt: its answer, the evaluator's reason, and why it failed."""

from __future__ import annotations

import pytest

from exact.cli.outcome import ANSWER_LINES, details, outcome
from exact.runs.journal.store import ResultLine


def line(status: str = "scored", **fields: object) -> ResultLine:
    return ResultLine(**({"task": "shop/a", "seed": 0, "agent": "x", "status": status} | fields))  # type: ignore[arg-type]


def said(**fields: object) -> list[str]:
    return list(details(line(**fields), report="report.html"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("42", "42"),
        ("日本 – naïve 🍵", "日本 – naïve 🍵"),
        ("<b>bold</b> & more", "<b>bold</b> & more"),
        ("", "(empty)"),
        ("  \n ", "(empty)"),
    ],
)
def test_an_answer_is_shown_as_it_is(answer: str, shown: str) -> None:
    assert said(answer=answer, score=0.0) == [f"    answer: {shown}"]


def test_an_empty_answer_that_solved_the_task_is_no_line() -> None:
    assert said(answer="", score=1.0) == []


def test_no_answer_is_no_line() -> None:
    assert said(answer=None, score=1.0) == []


def test_control_characters_of_an_answer_do_not_reach_the_terminal() -> None:
    (text,) = said(answer="\x1b[31mred\x1b[0m \u202eevil\x07", score=1.0)
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text and "red" in text


def test_a_long_answer_is_cut_and_says_where_the_rest_is() -> None:
    found = said(answer="\n".join(f"line {n}" for n in range(40)), score=0.0)
    assert found[0] == "    answer: line 0" and found[1] == "            line 1" and len(found) == ANSWER_LINES + 1
    assert found[-1].strip() == "(36 more lines; all of it: report.html)"
    wide = said(answer="x" * 5_000, score=0.0)
    assert len(wide) == 2 and len(wide[0]) < 200 and wide[1].strip() == "(cut here; all of it: report.html)"


def test_the_evaluators_reason_takes_two_lines_at_most() -> None:
    found = said(score=0.0, score_reason="one\ntwo\nthree\nfour")
    assert [text.strip() for text in found] == ["evaluator: one", "two", "(2 more lines; all of it: report.html)"]
    assert said(score=1.0, score_reason="all right") == []


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"score": 0.0, "reason": "the task's limit of 10 actions is reached"}, ["    ended: the task's limit of 10 actions is reached"]),
        ({"score": 0.0, "reason": "the agent stopped", "score_reason": "the cart is empty"}, ["    evaluator: the cart is empty"]),
        (
            {"score": 0.0, "reason": "the agent's answers cannot be parsed: no line", "score_reason": "episode not finished"},
            ["    evaluator: episode not finished", "    ended: the agent's answers cannot be parsed: no line"],
        ),
        ({"score": 1.0, "reason": "the agent stopped"}, []),
    ],
)
def test_a_lost_score_says_why(fields: dict[str, object], shown: list[str]) -> None:
    assert said(**fields) == shown


def test_a_failure_after_the_answer_shows_both() -> None:
    found = said(status="failed", answer="42", reason="the judge's model did not answer: is its server running?")
    assert [text.strip() for text in found] == ["answer: 42", "the judge's model did not answer: is its server running?"]


def test_a_constant_value_is_no_estimate() -> None:
    assert said(status="judged", value=0.5, value_function="constant", answer=None) == ["    No evaluator has checked it."]


def test_an_end_that_nobody_checks_is_neutral_and_the_agents_own_estimate_second() -> None:
    assert said(status="judged", value=0.014, answer="five", reason="the agent stopped") == [
        "    answer: five",
        "    No evaluator has checked it. The agent's own estimate is 0.01.",
        "    the agent stopped",
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"score": 0.5}, "score 0.5"),
        ({"status": "judged", "value": 0.42, "answer": "five"}, "says that it is done"),
        ({"status": "judged", "value": 0.42, "reason": "the episode ended"}, "ended"),
        ({"status": "judged", "value": 0.42, "reason": "the task's budget of 15 actions is used up"}, "not finished"),
        ({"status": "failed"}, "failed"),
        ({"status": "failed", "began": False}, "did not begin"),
    ],
)
def test_an_outcome_is_a_word_or_two(fields: dict[str, object], words: str) -> None:
    assert outcome(line(**fields)) == words  # type: ignore[arg-type]
