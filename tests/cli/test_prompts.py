import json

import pytest

from exact.cli.main import main


def test_the_list_names_each_prompt_with_its_version_and_hash(capsys):
    assert main(["prompts", "list"]) == 0
    plain = capsys.readouterr().out
    assert "policy@" in plain and "value@" in plain
    assert main(["prompts", "list", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"policy", "value", "reflection"}


def test_a_shown_prompt_is_the_file_and_can_replace_itself(capsys, tmp_path):
    assert main(["prompts", "show", "value"]) == 0
    (tmp_path / "value.j2").write_text(capsys.readouterr().out.replace("You judge", "You are to judge"))
    assert main(["prompts", "render", "value", "--example", "--folder", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "You are to judge" in out and "⟦goal" in out and "Choose" not in out


def test_rendering_needs_an_example_and_may_go_to_a_file(capsys, tmp_path):
    assert main(["prompts", "render", "policy"]) == 2 and "--example" in capsys.readouterr().err
    assert main(["prompts", "render", "policy", "--example", "-o", str(tmp_path / "p.txt")]) == 0
    assert "=== user" in (tmp_path / "p.txt").read_text()


@pytest.mark.parametrize("arguments", [["show", "polcy"], ["render", "polcy", "--example"]])
def test_an_unknown_prompt_is_named_with_the_nearest(capsys, arguments):
    assert main(["prompts", *arguments]) == 2
    assert "did you mean 'policy'" in capsys.readouterr().err


def test_providers_are_listed(capsys):
    assert main(["config", "providers"]) == 0
    out = capsys.readouterr().out
    assert "anthropic" in out and "OPENAI_API_KEY" in out
    assert main(["config", "providers", "--json"]) == 0 and "gemini" in json.loads(capsys.readouterr().out)
