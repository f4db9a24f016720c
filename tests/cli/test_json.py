"""`--json`: every command has it, and prints JSON alone."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pytest_httpserver import HTTPServer

from exact.cli.main import cli, main
from tests.cli.test_memory import reflection

WITHOUT = {"memory export"}
"""It writes JSON lines."""


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from leaves(found, f"{name} {each}".strip())


def test_every_command_has_it() -> None:
    found = dict(leaves(cli))
    without = {name for name, command in found.items() if not any("--json" in each.opts for each in command.params)}
    assert without == WITHOUT and len(found) > 30


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    assert main([*arguments, "--json"]) in (0, None)
    return json.loads(capsys.readouterr().out)


def test_memories_are_imported_and_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import msgspec

    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(msgspec.json.encode(reflection("a", "Click the button.")) + b"\n")
    one, other = str(tmp_path / "one.sqlite"), str(tmp_path / "other.sqlite")
    assert printed(capsys, "memory", "import", one, str(lines)) == {"read": 1, "new": 1, "quarantined": 0}
    assert printed(capsys, "memory", "import", one, str(lines)) == {"read": 1, "new": 0, "quarantined": 0}
    assert printed(capsys, "memory", "merge", other, one) == {"added": 1, "merged": 0}


def test_prompts_are_shown_and_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "list", "prompts", "policy")
    assert isinstance(shown, dict) and shown["name"] == "policy" and "{" in shown["template"]
    rendered = printed(capsys, "list", "prompts", "policy", "--example")
    assert isinstance(rendered, dict) and rendered["system"] and rendered["user"]
    assert main(["list", "prompts", "policy", "--example", "--json", "--out", str(tmp_path / "policy.json")]) in (0, None)
    assert json.loads((tmp_path / "policy.json").read_text()) == rendered


def test_a_log_in_names_its_file_and_speaks_to_the_user_beside_it(
    tmp_path: Path, httpserver: HTTPServer, executable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/").respond_with_data("Welcome", content_type="text/html", headers={"Set-Cookie": "a=b"})
    path = tmp_path / "state.json"
    assert main(["login", httpserver.url_for("/"), "--headless", "--proof", "Welcome", "--out", str(path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"state": str(path), "partner_origins": []} and "Log in in the window" in said.err


def test_what_a_strange_run_names_is_a_list_and_is_not_trusted_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import exact
    from exact.runs.runner import create
    from exact.signature import is_signed

    config = exact.Config.parse({"policy": {"kind": "evil.py:Policy"}})
    run = create(tmp_path / "run", (exact.Task(id="own/a", instruction="b"),), config, benchmark=False).path
    (run / "signature").write_text("0" * 64)
    assert printed(capsys, "trust", str(run)) == [{"folder": "run", "key": "policy.kind", "value": "evil.py:Policy"}]
    assert not is_signed(run)
    assert printed(capsys, "trust", str(run), "--yes") and is_signed(run)
