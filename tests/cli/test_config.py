import json
from pathlib import Path

import pytest
import yaml

from exact.cli.main import main
from exact.config import load

ROOT = Path(__file__).parents[2]
FILE = ROOT / "shells" / "configs" / "react_gpt-4o.yaml"


def test_a_configuration_is_shown_with_every_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "show", str(FILE), "--set", "search.k=3"]) == 0
    shown = tmp_path / "shown.yaml"
    shown.write_text(capsys.readouterr().out)
    assert load(shown) == load(FILE, ["search.k=3"])
    assert yaml.safe_load(shown.read_text())["search"]["depth"] == load(FILE).search.depth


def test_json_output_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", str(FILE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"]["policy"]["model"] == "gpt-4o"


def test_an_unknown_key_is_wrong_usage_that_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", str(FILE), "--set", "serch.k=3"]) == 2
    assert "did you mean 'search'?" in capsys.readouterr().err


def test_a_missing_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "nowhere.yaml"]) == 2
    assert "cannot read configuration nowhere.yaml" in capsys.readouterr().err


def test_the_algorithms_that_can_be_named_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "algorithms"]) == 0
    listed = capsys.readouterr().out.split()
    assert {"mcts", "gumbel", "abmcts", "best_of_n", "flat_halving"} <= set(listed) and listed[0] == "react"
