"""The configuration of a run."""

from __future__ import annotations

from exact.config.agents import PolicyConfig, ReflectionConfig, ValueConfig
from exact.config.environments import BrowserConfig, SandboxConfig
from exact.config.models import ModelsConfig
from exact.config.search import Limits, SearchConfig
from exact.config.strict import Strict


class Config(Strict, frozen=True, kw_only=True):
    """A run's configuration."""

    name: str = "default"
    """In tables and in the names of run folders. Where a configuration gives none its agent is called `default`: what it leaves out are the
    defaults of this package, not those of a shipped file such as shells/configs/rmcts_builtin.yaml."""
    seed: int = 0
    search: SearchConfig = SearchConfig()
    policy: PolicyConfig = PolicyConfig()
    arms: tuple[PolicyConfig, ...] = ()
    """Further policies beside `policy`, which a search chooses among: for abmcts with `search.options.policies`."""
    value: ValueConfig = ValueConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    models: ModelsConfig = ModelsConfig()
    limits: Limits = Limits()
    browser: BrowserConfig = BrowserConfig()
    sandbox: SandboxConfig = SandboxConfig()
    """Of the services that tasks declare; whether there is a sandbox says `browser.sandbox`."""
    prompts: str = ""
    """Folder of prompt templates that take the place of the package's, one by one."""
