"""Configuration of a run: one YAML file, read strictly.

Every key has a type and a default; an unknown key is an error that names the nearest valid one. `--set search.c=1` overrides one.
"""

from exact.config.agents import PolicyConfig, ReflectionConfig, ValueConfig, ViewConfig
from exact.config.aliases import AtLeastOne, Strict
from exact.config.environments import (
    BrowserConfig,
    CertificateConfig,
    GeolocationConfig,
    LoginConfig,
    Mount,
    ProxyConfig,
    RecordingConfig,
    SandboxConfig,
    ToolConfig,
)
from exact.config.models import CacheConfig, ModelConfig, ModelsConfig, PriceConfig
from exact.config.reading import Config, RecordedConfig, check_continues, dump, load, load_recorded, parse, shipped
from exact.config.search import Limits, ScopeLimits, SearchConfig

__all__ = [
    "AtLeastOne",
    "BrowserConfig",
    "CacheConfig",
    "CertificateConfig",
    "Config",
    "Limits",
    "LoginConfig",
    "ModelConfig",
    "ModelsConfig",
    "Mount",
    "GeolocationConfig",
    "PolicyConfig",
    "PriceConfig",
    "ProxyConfig",
    "RecordedConfig",
    "ReflectionConfig",
    "SandboxConfig",
    "ScopeLimits",
    "SearchConfig",
    "Strict",
    "RecordingConfig",
    "ToolConfig",
    "ValueConfig",
    "ViewConfig",
    "check_continues",
    "dump",
    "load",
    "load_recorded",
    "parse",
    "shipped",
]
