"""A configuration is read strictly: what is wrong is named with its key, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.config import Config, Limits, ModelConfig, ModelsConfig, PriceConfig, SearchConfig, dump, load, load_recorded, parse
from exact.errors import UsageError

SHIPPED = sorted(path for path in (Path(__file__).parents[1] / "shells" / "configs").glob("*.yaml") if path.name != "providers.yaml")


def told(wrong: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as error:
        parse(wrong)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"search": {"iteratons": 3}}, "'search.iteratons': did you mean 'search.iterations'?"),
        ({"serch": {}}, "'serch': did you mean 'search'?"),
        ({"models": {"policy": {"model": "m", "price": {"inptu": 1}}}}, "did you mean 'models.policy.price.input'?"),
        ({"models": {"polcy": {}}}, "did you mean 'models.policy'?"),
        ({1: 2}, "unknown configuration key '1'"),
    ],
)
def test_an_unknown_key_names_the_nearest_with_its_path(wrong: dict[str, Any], says: str) -> None:
    assert says in told(wrong)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            {"search": {"iteration": 3}},
            "'search.iteration' has keys of its own, such as search.iteration.money: or did you mean 'search.iterations'?",
        ),
        ({"browser": 3}, "'browser' has keys of its own, such as browser.headed"),
    ],
)
def test_a_value_for_a_section_names_its_keys_and_the_nearest_value(wrong: dict[str, Any], says: str) -> None:
    assert says in told(wrong)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hush@host/db",
        "postgres://me:hu/sh@host/db",
        "postgresql://me:hu?sh@host/db",
        "postgresql://me:@hush@host/db",
        "postgresql://me@host/db?sslmode=require&password=hush",
        "postgresql://host/db?p%61ssword=hush",
    ],
)
def test_a_memorys_address_holds_no_password(address: str) -> None:
    says = told({"reflection": {"memory": address}})
    assert "PGPASSWORD" in says and "hush" not in says


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@host:5432,other:5433/db?passfile=/home/me/pass",
        "postgresql://host:5432/db?user=me@server",
        "postgresql://me@[::1]:5432/db",
        "lessons:v1@home.sqlite",
    ],
)
def test_a_memorys_address_without_a_password_is_taken(address: str) -> None:
    assert parse({"reflection": {"memory": address}}).reflection.memory == address


@pytest.mark.parametrize(
    "section, key, value",
    [
        ("search", "iterations", "many"),
        ("search", "iterations", 1.5),
        ("search", "iterations", True),
        ("search", "final", "mots"),
        ("browser", "allow_origins", "http://a"),
        ("limits", "money", "free"),
    ],
)
def test_a_value_of_the_wrong_type_names_its_key(section: str, key: str, value: object) -> None:
    assert f"{section}.{key}" in told({section: {key: value}})


@pytest.mark.parametrize(
    "section, key, value",
    [
        ("search", "iterations", 0),
        ("search", "k", 0),
        ("search", "depth", 0),
        ("search", "c", -1.0),
        ("search", "c", float("nan")),
        ("search", "retries", -1),
        ("policy", "samples", 0),
        ("value", "samples", 0),
        ("reflection", "k", -1),
        ("limits", "money", -1.0),
        ("limits", "money", float("nan")),
        ("limits", "actions", -1),
        ("limits", "seconds", -1.0),
        ("browser", "width", 0),
    ],
)
def test_a_value_out_of_its_range_names_its_key(section: str, key: str, value: object) -> None:
    assert f"{section}.{key}" in told({section: {key: value}})


@pytest.mark.parametrize(
    "data, says",
    [
        ({"value": {"kind": "logprobs"}}, "unknown value 'logprobs' in configuration key value.kind: did you mean 'logprob'?"),
        ({"search": {"final": "zzz"}}, "unknown value 'zzz' in configuration key search.final: valid: "),
        ({"models": {"policy": {"model": "m", "api": "chats"}}}, "unknown value 'chats' in configuration key models.policy.api: "),
    ],
)
def test_an_unknown_word_names_the_valid_ones(data: dict[str, Any], says: str) -> None:
    assert says in told(data)


def test_a_section_that_is_no_mapping_is_named() -> None:
    assert "search" in told({"search": 3})


def test_overrides_are_set_below_sections_that_are_not_there_yet() -> None:
    config = load(None, ["search.c=1", "models.policy.model=gpt-4o", "models.policy.price={input: 1, output: 2.5}", "limits.calls=null"])
    assert config.search.c == 1.0 and config.limits.calls is None
    assert config.models.policy == ModelConfig(model="gpt-4o", price=PriceConfig(input=1, output=2.5))


def test_an_override_wins_over_the_file_and_the_last_one_over_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("search: {k: 2, depth: 3}\n")
    config = load(tmp_path / "a.yaml", ["search.k=4", "search.k=5"])
    assert (config.search.k, config.search.depth) == (5, 3)


@pytest.mark.parametrize(
    "override, says",
    [
        ("search.c", "write --set key=value"),
        ("search.c.d=1", "search.c"),
        ("search.iteratons=1", "did you mean 'search.iterations'?"),
        ("search.c=[", "search.c"),
        ("=1", "unknown configuration key ''"),
        ("name.x=1", "name"),
    ],
)
def test_a_wrong_override_is_one_line_that_names_it(override: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        load(None, ["search.c=1", "name=a", override])
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"search: [", b"a: b: c", b"\xff\xfe\x00", b"- 1", b"3", b"search: {k: \x00}", b"!!python/object:x {}"]
)
def test_a_file_that_cannot_be_read_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(UsageError) as error:
        load(tmp_path / "a.yaml")
    assert "a.yaml" in str(error.value) and "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UsageError, match="cannot read configuration"):
            load(path)


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    assert load(tmp_path / "a.yaml") == Config() == load(None)


text = st.text(st.characters(exclude_categories=["Cs"]))
whole = st.integers(1, 10**9)
cost = st.floats(0, 1e12)
configs = st.builds(
    Config,
    name=text,
    search=st.builds(SearchConfig, iterations=whole, c=st.floats(0, 1e6), algorithm=st.sampled_from(["react", "greedy", "mcts"])),
    limits=st.builds(Limits, money=st.none() | cost, seconds=st.none() | cost, calls=st.none() | whole),
    models=st.builds(
        ModelsConfig,
        policy=st.none() | st.builds(ModelConfig, model=text, price=st.none() | st.builds(PriceConfig, input=cost, output=cost)),
    ),
)


@given(configs)
def test_a_dumped_configuration_loads_as_the_same(config: Config) -> None:
    import yaml

    assert parse(yaml.safe_load(dump(config))) == config


def test_a_dump_names_every_key() -> None:
    import yaml

    written = yaml.safe_load(dump(Config()))
    assert set(written) == {field.name for field in msgspec.structs.fields(Config)}
    assert set(written["search"]) == {field.name for field in msgspec.structs.fields(SearchConfig)}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_configuration_loads_and_caps_money_calls_and_actions(path: Path) -> None:
    config = load(path)
    assert config.name == path.stem
    assert None not in (config.limits.money, config.limits.calls, config.limits.actions)
    assert 1 <= (config.limits.actions or 0) <= 15


def test_shipped_configurations_exist() -> None:
    assert {"rmcts_builtin", "react_builtin", "rmcts_gpt-4o", "react_gpt-4o"} <= {path.stem for path in SHIPPED}


def test_the_built_in_defaults_do_not_bear_the_name_of_a_shipped_configuration() -> None:
    assert load(None).name == "default"
    assert "default" not in {path.stem for path in SHIPPED}


def test_the_configuration_of_a_run_is_read_once_and_again_when_its_file_has_changed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: one\n")
    first = load_recorded(tmp_path)
    assert first.name == "one" and load_recorded(tmp_path) is first
    (tmp_path / "config.yaml").write_text("name: two\n")
    assert load_recorded(tmp_path).name == "two"
