"""Task files in WebArena's form for a site of one's own: its storage state and its reset are used, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exact.benchmarks.own.files import read
from exact.benchmarks.webarena.suite import WebArena
from exact.cli.task_files import are_task_files, read_task_files
from exact.environments.sites.site import Hook, declared_outside
from exact.errors import UsageError

STATE = {"cookies": [{"name": "session", "value": "s", "domain": "wiki.test", "path": "/", "expires": -1}], "origins": []}


@pytest.fixture(autouse=True)
def wiki(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI", "http://wiki.test")
    monkeypatch.delenv("WIKI_RESET", raising=False)


def written(folder: Path, **fields: Any) -> Path:
    plain = {"task_id": 3, "sites": ["wiki"], "require_login": False, "storage_state": None, "geolocation": None, "require_reset": False}
    judged = {"eval_types": ["url_match"], "reference_url": "__WIKI__/done", "reference_answers": None, "program_html": None}
    item = {**plain, "start_url": "__WIKI__/page |AND| __WIKI__/other", "intent": "Edit it.", "eval": judged, **fields}
    (folder / "tasks.json").write_text(json.dumps([item]))
    return folder / "tasks.json"


def saved(folder: Path, state: object = STATE) -> Path:
    (folder / ".auth").mkdir()
    (folder / ".auth" / "wiki_state.json").write_text(json.dumps(state))
    return folder / ".auth" / "wiki_state.json"


def test_a_file_is_read_as_a_list_of_ones_own_tasks(tmp_path: Path) -> None:
    (task,) = read(written(tmp_path))
    assert (task.id, task.instruction, task.start) == ("own/3?seed=0", "Edit it.", "http://wiki.test/page")
    assert task.metadata == {"tabs": "http://wiki.test/other"}


def test_the_command_takes_the_file_by_its_name(tmp_path: Path) -> None:
    assert [task.id for task in read_task_files([str(written(tmp_path))])] == ["own/3?seed=0"]
    assert are_task_files([str(tmp_path / "tasks.json"), f"{tmp_path / 'tasks.json'}#3"])


def test_its_storage_state_is_the_log_in_of_the_environments(tmp_path: Path) -> None:
    state = saved(tmp_path)
    (task,) = read(written(tmp_path, storage_state="./.auth/wiki_state.json"))
    assert json.loads(str(task.metadata["browser"])) == {"login": {"state": str(state)}}


@pytest.mark.parametrize("name", ["./.auth/wiki_state.json", "me.json"])
def test_a_storage_state_that_is_missing_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"task 3: `storage_state`: there is no .*{Path(name).name}: make it with `exact login"):
        read(written(tmp_path, storage_state=name))
    with pytest.raises(UsageError, match=r"task 3: `storage_state`: there is no "):
        WebArena(path=tmp_path / "tasks.json").task("webarena/3")


@pytest.mark.parametrize(
    "state",
    [{"cookies": [], "origins": []}, {"cookies": [{**STATE["cookies"][0], "expires": 1.0}], "origins": []}],  # type: ignore[dict-item]
)
def test_a_storage_state_without_a_valid_log_in_is_refused(tmp_path: Path, state: object) -> None:
    saved(tmp_path, state)
    with pytest.raises(UsageError, match=r"holds no log-in that is still valid: renew it with `exact login"):
        read(written(tmp_path, storage_state="./.auth/wiki_state.json"))


def test_a_reset_is_the_hook_that_its_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, require_reset=True)
    for refused in (lambda: read(file), lambda: WebArena(path=file).task("webarena/3")):
        with pytest.raises(UsageError, match=r"task 3: `require_reset`: nothing resets wiki: export (WA_)?WIKI_RESET"):
            refused()
    monkeypatch.setenv("WIKI_RESET", "wikictl reset --all")
    (task,) = read(file)
    outside = declared_outside(task)
    assert outside is not None and outside.site is not None
    assert outside.site.reset.command == Hook(command=("wikictl", "reset", "--all")).command
    assert WebArena(path=file).task("webarena/3").start == "http://wiki.test/page"
