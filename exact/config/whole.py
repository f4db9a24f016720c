"""The configuration of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exact.config.agents import PolicyConfig, ReflectionConfig, ValueConfig
from exact.config.aliases import Strict
from exact.config.environments import BrowserConfig, SandboxConfig
from exact.config.models import ModelsConfig
from exact.config.search import Limits, SearchConfig


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
    prompts: str = ""
    """Folder of prompt templates that override the package's by name. Empty: none."""

    @property
    def own_parts(self) -> tuple[str, ...]:
        """Names of the policies, value functions, algorithm, models, suites and memory, of which some may be the user's own code."""
        values = [self.value]
        for value in values:
            values += value.members
        models = [self.models.policy, self.models.value, self.models.reflection, *self.models.parts.values()]
        return (
            self.search.algorithm, *(each.kind for each in (self.policy, *self.arms)), *(each.kind for each in values),
            *(each.provider for each in models if each is not None), *self.suites,
            self.reflection.memory if _names_code(self.reflection.memory) else "",
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path | str | None, overrides: Iterable[str] = ()) -> Config:
        """Return the configuration in a YAML file, or the shipped one of a name, with `key.path=value` overrides applied.

        Raises UsageError.
        """
        from exact.config.reading import load

        return load(path, overrides)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Config:
        """Return the configuration that plain data holds. Raises UsageError with the key that is wrong."""
        from exact.config.reading import parse

        return parse(data)
