"""`exact show`: a search in text."""

import json
from pathlib import Path

import pytest

from exact.cli.main import main
from exact.cli.show import _evaluation
from exact.context import Argument, Evaluation
from tests.report.journals import shop_run


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["show", str(shop_run(folder / "run").path), *args]) == 0
    return capsys.readouterr().out


def test_show_prints_figures_and_the_principal_variation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(tmp_path, capsys)
    assert said.startswith("shop/tea?seed=1\n") and "evaluations" in said and "visit entropy" in said and "arrivals: " in said
    first = said.partition("principal variation:\n")[2].splitlines()[0]
    assert "N " in first and "-> node" in first


def test_show_prints_one_state_with_all_its_actions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(tmp_path, capsys, "--node", "0")
    facts = json.loads(shown(tmp_path / "again", capsys, "--json"))
    assert "node 0, depth 0" in said and "fingerprint" in said
    assert facts["stats"]["states"] > 3 and facts["principal_variation"][0]["action"] not in said, "an element is named as in the report"


def test_show_draws_the_tree_as_deep_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near, far = (shown(tmp_path / depth, capsys, "--tree", depth).partition("state 0  V ")[2] for depth in ("1", "3"))
    assert 'click link "' in near and "click [4]" not in near, "an element is named as in the report"
    assert near.count("── ") < far.count("── "), "three actions deep there is more to see"
    below = shown(tmp_path / "below", capsys, "--node", "1", "--tree", "1")
    assert "state 1  V " in below and "state 0  V " not in below


def test_show_as_json_has_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(shown(tmp_path, capsys, "--json"))
    known = {"task", "node", "stats", "health", "travel", "principal_variation", "warnings", "trained_with_reward"}
    assert set(facts) == known


def test_show_says_after_which_time_a_task_was_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop_run(tmp_path / "run")
    plan = json.loads((run.path / "run.json").read_text())
    plan["tasks"][0]["private"]["settle_seconds"] = 5.0
    (run.path / "run.json").write_text(json.dumps(plan))
    assert main(["show", str(run.path)]) == 0
    assert "once they have settled, after 5.0 s at the earliest" in capsys.readouterr().out


def test_a_node_that_is_not_there_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(shop_run(tmp_path / "run").path), "--node", "9999"]) == 2
    assert "no node 9999" in capsys.readouterr().err


def test_a_torn_journal_is_shown_as_far_as_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop_run(tmp_path / "run")
    journal = next(run.path.glob("tasks/*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes()[:-20])
    assert main(["show", str(run.path)]) == 0
    assert "torn" in capsys.readouterr().out


def test_show_prints_what_was_said_in_a_debate() -> None:
    found = Evaluation(
        value=0.6, rationale="half done", samples=(0.5, 0.7), within=0.1, order_effect=-0.2,
        arguments=(Argument(side="for", text="It is\nopen."), Argument(side="against", text="No size.", round=1)),
        judges=("value.judge, for first: 0.50, so", "value.judge.1, against first: 0.70, no"),
    )  # fmt: skip
    assert list(_evaluation(found)) == [
        "  value 0.60: half done",
        "  2 samples, within 0.10, between 0.00, order effect -0.20",
        "    for, round 1: It is open.",
        "    against, round 2: No size.",
        "    value.judge, for first: 0.50, so",
        "    value.judge.1, against first: 0.70, no",
    ]
