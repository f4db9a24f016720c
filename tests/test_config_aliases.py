"""Configurations of earlier versions are read under today's names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from exact.config import (
    Config,
    GeolocationConfig,
    RecordedConfig,
    RecordingConfig,
    aliases,
    check_continues,
    dump,
    load,
    load_recorded,
    parse,
)
from exact.environments.browser.launch.options import browser_config_of
from exact.errors import UsageError
from exact.task import Task

OLD = """
name: old
search: {enact: promote, worlds: 4, contest: 1, doubt: 0.1, judgements: 2}
browser: {tape: {path: traffic.jsonl}, place: {latitude: 1, longitude: 2}}
"""
"""Every key that has another name now."""


@pytest.fixture(autouse=True)
def unreported() -> Iterator[None]:
    """Forget which renamed keys were reported."""
    aliases._report.cache_clear()
    yield
    aliases._report.cache_clear()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(OLD)
    return tmp_path / "config.yaml"


def check(config: Config) -> None:
    search = config.search
    assert (search.commit_by, search.environments, search.reevaluations, search.disagreement_bonus, search.evaluations) == (
        "fork",
        4,
        1,
        0.1,
        2,
    )
    assert config.browser.recording == RecordingConfig(path="traffic.jsonl")
    assert config.browser.geolocation == GeolocationConfig(latitude=1, longitude=2)


def test_a_users_file_reads_and_each_renamed_key_is_reported_once(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(load(old))
    check(load(old))
    lines = capsys.readouterr().err.splitlines()
    assert "exact: search.enact is now search.commit_by (promote is now fork)" in lines
    assert "exact: browser.tape is now browser.recording" in lines
    assert len(lines) == len(aliases.KEYS)


def test_a_renamed_value_of_a_key_that_keeps_its_name_is_reported_too(capsys: pytest.CaptureFixture[str]) -> None:
    old = "builtin"
    members = [{"kind": old}, {"kind": "ensemble", "members": [{"kind": old}, {"kind": "constant"}]}]
    config = parse({"policy": {"kind": old}, "arms": [{"kind": old}], "value": {"kind": "cascade", "members": members}})
    kinds = [config.policy.kind, config.arms[0].kind, config.value.members[0].kind, config.value.members[1].members[0].kind]
    assert kinds == ["lexical"] * 4
    assert "exact: policy.kind builtin is now lexical" in capsys.readouterr().err.splitlines()


def test_the_reflector_keeps_its_name() -> None:
    assert parse({"reflection": {"kind": "builtin"}}).reflection.kind == "builtin"


def test_a_recorded_run_reads_silently(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(load_recorded(old.parent))
    assert capsys.readouterr().err == ""


def test_the_value_that_keeps_the_live_environment_is_read() -> None:
    assert parse({"search": {"enact": "enact"}}).search.commit_by == "replay"


@pytest.mark.parametrize("override", ["search.enact=promote", "search={enact: promote}", "search.commit_by=fork"])
def test_an_override_wins_over_the_file_under_either_name(override: str, tmp_path: Path) -> None:
    for written in ("search: {enact: enact}", "search: {commit_by: replay}"):
        (tmp_path / "a.yaml").write_text(written)
        assert load(tmp_path / "a.yaml", [override]).search.commit_by == "fork"


def test_an_override_reaches_below_a_renamed_section() -> None:
    assert load(None, ["browser.tape.path=a.jsonl", "browser.recording.mode=replay"]).browser.recording == RecordingConfig(
        path="a.jsonl", mode="replay"
    )


def test_both_names_of_one_key_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'search\.enact' is now 'search\.commit_by', and both are given"):
        parse({"search": {"enact": "enact", "commit_by": "fork"}})


def test_a_wrong_value_of_a_renamed_key_names_the_new_key() -> None:
    with pytest.raises(UsageError, match=r"search\.commit_by"):
        parse({"search": {"enact": "perhaps"}})


def test_a_removed_key_says_the_new_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aliases, "REMOVED", {"search.gone": "set search.k"})
    with pytest.raises(UsageError, match=r"configuration key 'search\.gone' was removed: set search\.k"):
        parse({"search": {"gone": 1}})


@pytest.mark.parametrize("path", aliases.NEUTRAL)
def test_each_removed_key_is_refused_in_a_users_file_with_its_replacement(path: str) -> None:
    *sections, key = path.split(".")
    data: Any = {key: aliases.NEUTRAL[path]}
    for section in reversed(sections):
        data = {section: [data] if section in ("arms", "members") else data}
    with pytest.raises(UsageError, match=f"'{path}' was removed: {re.escape(aliases.REMOVED[path])}"):
        parse(data)


def test_a_removed_value_is_refused_with_its_replacement() -> None:
    with pytest.raises(UsageError, match=r"value 'mixed' of configuration key 'search\.backup' was removed: set search\.backup"):
        parse({"search": {"backup": "mixed"}})


def test_a_recorded_run_keeps_the_removed_settings_that_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("search: {c: 2, c_schedule: linear, c_last: null, backup: mixed}")
    config = load_recorded(tmp_path)
    assert isinstance(config, RecordedConfig) and config.removed == {"search.c_schedule": "linear", "search.backup": "mixed"}
    assert (config.search.c, config.search.backup) == (2.0, "mean")
    with pytest.raises(UsageError, match=r"search\.c_schedule linear \(set search\.c, which is constant\).*no search continues it"):
        check_continues(config)
    assert parse(yaml.safe_load(dump(config))).search == config.search, "it is written without them"


def test_a_recorded_run_with_the_neutral_values_of_removed_keys_is_as_any_other(tmp_path: Path) -> None:
    search = {path.removeprefix("search."): value for path, value in aliases.NEUTRAL.items() if path.startswith("search.")}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"search": search}))
    config = load_recorded(tmp_path)
    assert type(config) is Config and config == Config()
    check_continues(config)


def test_views_of_policy_and_value_function_are_one_section_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {"images": True, "history": 3}
    config = parse({"policy": {"kind": "llm", **shown}, "value": {"kind": "debate", **shown}, "models": {"policy": {"model": "m"}}})
    assert (config.view.images, config.view.history, config.view.marks) == (True, 3, False)
    lines = capsys.readouterr().err.splitlines()
    assert "exact: policy.history is now view.history" in lines and "exact: value.history is now view.history" in lines


@pytest.mark.parametrize(
    "other", [{"value": {"history": 4}}, {"view": {"history": 3}}, {"arms": [{"history": 2}]}, {"value": {"members": [{"history": 2}]}}]
)
def test_two_values_of_one_view_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"history' is now 'view\.history', which has another value too: keep 'view\.history'"):
        parse({"policy": {"history": 3}, **other})


@pytest.mark.parametrize("override", ["policy.images=true", "view.images=true", "policy={images: true}", "view={images: true}"])
def test_an_override_sets_a_key_of_the_view_under_either_name(override: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("value: {images: false, history: 2}")
    view = load(tmp_path / "a.yaml", [override]).view
    assert view.images and view.history == (5 if override.startswith("view={") else 2)


def test_a_recorded_view_is_that_of_the_parts_that_ask_a_model(tmp_path: Path) -> None:
    parts = {"policy": {"kind": "lexical", "history": 5}, "value": {"kind": "llm", "history": 2}, "reflection": {"kind": "builtin"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(parts))
    config = load_recorded(tmp_path)
    assert config.view.history == 2 and not isinstance(config, RecordedConfig)


def test_a_recorded_run_with_two_views_is_not_continued(tmp_path: Path) -> None:
    members = [{"kind": "llm", "images": True}, {"kind": "debate", "images": False}]
    parts = {
        "policy": {"kind": "llm", "images": True},
        "value": {"kind": "cascade", "members": members},
        "models": {"policy": {"model": "m"}},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(parts))
    config = load_recorded(tmp_path)
    assert isinstance(config, RecordedConfig) and config.removed == {"value.members.images": False} and config.view.images
    with pytest.raises(UsageError, match=r"value\.members\.images False \(set view\.images, which is one for all\)"):
        check_continues(config)


def test_a_tasks_own_browser_keys_are_read_under_their_old_names(capsys: pytest.CaptureFixture[str]) -> None:
    task = Task(id="t", instruction="", metadata={"browser": '{"place": {"latitude": 1, "longitude": 2}}'})
    assert browser_config_of(Config().browser, task).geolocation == GeolocationConfig(latitude=1, longitude=2)
    assert capsys.readouterr().err == ""


def test_every_new_name_is_a_key_and_no_old_name_is() -> None:
    written = set(dotted(Config()))
    assert {new for new in aliases.KEYS.values() if not new.startswith("arms.")} <= written
    assert not written & set(aliases.KEYS)


def dotted(config: Config) -> Iterator[str]:
    """Yield the paths of all keys of a configuration that have a name of their own."""
    import yaml

    for section, keys in yaml.safe_load(dump(config)).items():
        yield from (f"{section}.{key}" for key in keys) if isinstance(keys, dict) else [section]
