"""`exact show`: a search in text."""

import json
from pathlib import Path

import pytest

from exact.cli.main import main
from tests.report.journals import shop_run


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["show", str(shop_run(folder / "run").path), *args]) == 0
    return capsys.readouterr().out


def test_show_prints_figures_and_the_principal_variation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(tmp_path, capsys)
    assert said.startswith("shop/tea?seed=1\n") and "judgements" in said and "visit entropy" in said and "worlds came" in said
    first = said.partition("principal variation:\n")[2].splitlines()[0]
    assert "N " in first and "-> node" in first


def test_show_prints_one_state_with_all_its_actions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(tmp_path, capsys, "--node", "0")
    facts = json.loads(shown(tmp_path / "again", capsys, "--json"))
    assert "node 0, depth 0" in said and "fingerprint" in said
    assert facts["stats"]["states"] > 3 and facts["principal_variation"][0]["action"] in said


def test_show_as_json_has_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(shown(tmp_path, capsys, "--json"))
    assert set(facts) == {"task", "node", "stats", "health", "travel", "principal_variation", "warnings"}


def test_a_node_that_is_not_there_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(shop_run(tmp_path / "run").path), "--node", "9999"]) == 2
    assert "there is no node 9999" in capsys.readouterr().err


def test_a_torn_journal_is_shown_as_far_as_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop_run(tmp_path / "run")
    journal = next(run.path.glob("tasks/*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes()[:-20])
    assert main(["show", str(run.path)]) == 0
    assert "torn" in capsys.readouterr().out
