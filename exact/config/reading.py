"""Reading and writing of configurations as YAML and plain data.

The configuration of a run.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from exact.config.agents import PolicyConfig, ReflectionConfig, ValueConfig, ViewConfig
from exact.config.aliases import Strict, current, replacement, without_removed
from exact.config.environments import BrowserConfig, SandboxConfig, ToolConfig
from exact.config.models import ModelsConfig
from exact.config.ranges import refusal
from exact.config.search import Limits, SearchConfig
from exact.errors import UsageError, unknown
from exact.plugins import distrust, is_plugin, trust
from exact.signature import is_signed
from exact.untrusted import parse_yaml, read_bounded

_MOST_BYTES = 4 << 20
"""Bytes of the largest configuration."""


def load(path: Path | str | None, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration in a YAML file that a user wrote, with `key.path=value` overrides applied.

    `path` may also be the name of a shipped configuration, such as `rmcts_gpt-4o`. Keys of earlier versions are read, and reported on
    stderr. Settings of a run folder's file that were removed since are left out, as `load_recorded` does. Raises UsageError.
    """
    file, removed = None if path is None else _found(Path(path)), dict[str, Any]()
    data = {} if file is None else _yaml(file)
    if file is not None and (file.parent / "run.json").exists():
        data, removed = without_removed(data)
    config = _parsed(_overridden(current(data), overrides), removed)
    trust(config.own_parts)
    return config


def shipped() -> dict[str, Path]:
    """Return the files of the configurations that come with this package, by name."""
    package = Path(__file__).parents[1]
    folders = (package / "configs", package.parent / "shells" / "configs")  # in an installed package, and in a clone
    files = [file for folder in folders for file in sorted(folder.glob("*_*.yaml"))]
    return {file.stem: file for file in reversed(files)}


def _found(path: Path) -> Path:
    """Return the file that a path or a name stands for. Raises UsageError for a name that no shipped configuration has."""
    if path.exists() or path.suffix or len(path.parts) != 1:
        return path
    if path.name not in (known := shipped()):
        raise unknown("configuration", path.name, known, way_out="(or name a YAML file)")
    return known[path.name]


def load_recorded(folder: Path) -> Config:
    """Return the configuration of a run folder. Old names are read silently, and removed keys left out. Raises UsageError."""
    path = folder / "config.yaml"
    config = _recorded(path, _text(path))
    if named := [name for name in config.own_parts if is_plugin(name)]:
        (trust if is_signed(folder) else distrust)(named)
    return config


@functools.lru_cache(maxsize=64)
def _recorded(path: Path, text: str) -> Config:
    """Return the configuration in the text of a run's file. A benchmark opens the folder of an agent for each of its attempts."""
    data, removed = without_removed(_plain(path, text))
    return _parsed(current(data, announce=False, recorded=True), removed)


def parse(data: Mapping[str, Any], overrides: Iterable[str] = (), *, announce: bool = True) -> Config:
    """Return a configuration from plain data, with `key.path=value` overrides applied.

    `announce`: whether keys of earlier versions are reported on stderr. Raises UsageError with the key that is wrong.
    """
    config = _parsed(_overridden(current(data, announce=announce), overrides))
    trust(config.own_parts)
    return config


def _overridden(data: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    for override in overrides:
        key, found, value = override.partition("=")
        if not found:
            raise UsageError(f"--set {override}: write --set key=value")
        _set(data, key, _yaml_value(override, value))
    return data


def _parsed(data: dict[str, Any], removed: Mapping[str, Any] = MappingProxyType({})) -> Config:
    """Return the configuration in data under today's names. Raises UsageError."""
    _check_keys(data, Config, "")
    try:
        config = _with_judge(msgspec.convert(data, Config), data)
    except msgspec.ValidationError as error:
        raise UsageError(f"configuration: {refusal(error, data, Config)}") from error
    if not removed:
        return config
    return RecordedConfig(**{name: getattr(config, name) for name in config.__struct_fields__}, removed=dict(removed))


def _with_judge(config: Config, data: Mapping[str, Any]) -> Config:
    """Use a cascade of language models as value function if a language model proposes and no value function is named."""
    value = data.get("value") or {}
    if config.policy.kind != "llm" or config.search.algorithm in ("react", "explorer") or (isinstance(value, Mapping) and "kind" in value):
        return config
    return msgspec.structs.replace(config, value=msgspec.structs.replace(config.value, kind="cascade"))


def dump(config: Config) -> str:
    """Return the configuration as YAML, with every key."""
    import yaml

    data = msgspec.to_builtins(config)
    data.pop("removed", None)
    return str(yaml.safe_dump(data, sort_keys=False))


def _yaml(path: Path) -> dict[str, Any]:
    return _plain(path, _text(path))


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _MOST_BYTES).decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot read configuration {path}: {error.strerror}: name a YAML file, or a shipped configuration such as rmcts_builtin"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not YAML: {error}") from error


def _plain(path: Path, text: str) -> dict[str, Any]:
    data: Any = parse_yaml(text, str(path)) or {}
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping: write `section: {{key: value}}`")
    return data


def _yaml_value(override: str, value: str) -> object:
    return parse_yaml(value, f"--set {override}: the value")


def _set(data: dict[str, Any], path: str, value: object) -> None:
    """Put a value below nested sections, under today's names."""
    names = path.split(".")
    below: Any = value
    for name in reversed(names):
        below = {name: below}
    below = current(below)
    if names[0] != "view" and (len(names) == 1 or len(below) > 1) and "view" in below:  # a section had a view of its own
        data["view"] = {**(data.get("view") or {}), **below.pop("view")}
    for _ in names[:-1]:
        ((name, below),) = below.items()
        nested = data.get(name) or {}
        if not isinstance(nested, dict):
            raise UsageError(f"--set {path}: {name} has no keys below it")
        data[name] = nested
        data = nested
    data.update(below)


def _check_keys(data: object, section: type[msgspec.Struct], where: str) -> None:
    if not isinstance(data, Mapping):
        return
    types = {field.name: field.type for field in msgspec.structs.fields(section)}
    for key, value in data.items():
        if key not in types:
            raise unknown("configuration key", f"{where}{key}", [where + name for name in types])
        if isinstance(types[key], type) and issubclass(types[key], msgspec.Struct) and not isinstance(value, Mapping):
            raise _section(f"{where}{key}", types[key], [where + name for name in types if name != key])
        if isinstance(value, str) and (choices := _choices(types[key])) and value not in choices:
            raise unknown("value", value, choices, where=f"configuration key {where}{key}")
        for kind in getattr(types[key], "__args__", (types[key],)):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                if get_origin(types[key]) is dict and isinstance(value, Mapping):
                    for name, part in value.items():
                        _check_keys(part, kind, f"{where}{key}.{name}.")
                else:
                    _check_keys(value, kind, f"{where}{key}.")


def _choices(kind: Any) -> set[str]:
    """Return the words that a key takes; empty if it takes other texts too, or none."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if not all(get_origin(part) is Literal or part in (NoneType, bool, int, float) for part in parts):
        return set()
    return {word for part in parts if get_origin(part) is Literal for word in get_args(part) if isinstance(word, str)}


def _section(key: str, section: type[msgspec.Struct], beside: list[str]) -> UsageError:
    """Return the error for a value in place of a section. `beside` holds the keys that may have been meant."""
    near = difflib.get_close_matches(key, beside, n=1, cutoff=0.9)
    hint = f": or did you mean {near[0]!r}?" if near else ""
    return UsageError(f"configuration key {key!r} has keys of its own, such as {key}.{msgspec.structs.fields(section)[0].name}{hint}")


def _names_code(memory: str) -> bool:
    from exact.plugins import is_attribute

    return is_attribute(memory)


class Config(Strict, frozen=True, kw_only=True):
    """Configuration of a run."""

    name: str = "default"
    """Name of the agent in tables and run folders. Keys that a configuration leaves out have the defaults of this package, not those of a
    shipped one such as rmcts_builtin."""
    seed: int = 0
    """Seed of all random choices."""
    search: SearchConfig = SearchConfig()
    view: ViewConfig = ViewConfig()
    policy: PolicyConfig = PolicyConfig()
    arms: tuple[PolicyConfig, ...] = ()
    """Further policies that a search chooses among, beside `policy`: for abmcts with `search.options.policies`."""
    value: ValueConfig = ValueConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    models: ModelsConfig = ModelsConfig()
    suites: tuple[str, ...] = ()
    """Your own benchmarks, each as `module:attribute` or `file.py:attribute`: a callable without arguments that returns a Suite."""
    limits: Limits = Limits()
    browser: BrowserConfig = BrowserConfig()
    sandbox: SandboxConfig = SandboxConfig()
    """Sandboxes of the services that tasks declare. `browser.sandbox` decides whether there is one."""
    tools: tuple[ToolConfig, ...] = ()
    """Actions beside those of the environments: your own functions, and the tools of MCP servers."""
    prompts: str = ""
    """Folder of prompt templates that override the package's by name. `v0.1`: the prompts of that release. Empty: none."""

    @property
    def own_parts(self) -> tuple[str, ...]:
        """Names of the policies, value functions, algorithm, models, suites, tools and memory, of which some may be the user's own code."""
        values = [self.value]
        for value in values:
            values += value.members
        models = [self.models.policy, self.models.value, self.models.reflection, *self.models.parts.values()]
        return (
            self.search.algorithm, *(each.kind for each in (self.policy, *self.arms)), *(each.kind for each in values),
            *(each.provider for each in models if each is not None), *self.suites,
            *(each.kind for each in self.tools), self.reflection.memory if _names_code(self.reflection.memory) else "",
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path | str | None, overrides: Iterable[str] = ()) -> Config:
        """Return the configuration in a YAML file, or the shipped one of a name, with `key.path=value` overrides applied.

        Raises UsageError.
        """
        return load(path, overrides)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Config:
        """Return the configuration that plain data holds. Raises UsageError with the key that is wrong."""
        return parse(data)


class RecordedConfig(Config, frozen=True, kw_only=True):
    """Configuration of a run with settings that were removed since. It opens and reports, and no search continues it."""

    removed: dict[str, Any] = {}
    """Settings that no search follows any more, by their path."""


def check_continues(config: Config) -> None:
    """Raise UsageError if a search by this configuration would follow other rules than the run that it comes from."""
    if isinstance(config, RecordedConfig):
        told = [f"{path} {value} ({replacement(path, value)})" for path, value in config.removed.items()]
        raise UsageError(f"the run has settings that were removed: {'; '.join(told)}: no search continues it: start a new run")
