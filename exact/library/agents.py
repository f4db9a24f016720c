"""Agents as arguments of the library: by the name of a shipped configuration, by file, by configuration, or as objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from exact.agents.agent import Agent
from exact.config import Config, load
from exact.errors import UsageError
from exact.models.base import ChatModel

AnyAgent = Agent | Config | Path | str | None
"""An Agent with one's own parts, a configuration, the path of its file, or the name of a shipped one. None: the built-in agent."""

Build = Callable[[Config, Callable[[str], ChatModel]], Agent]


def configured(agent: AnyAgent, config: Config | None = None) -> tuple[Config, Build | None]:
    """Return the configuration of an agent, and the function that builds it; None where the configuration says it all.

    `config` configures the search around an Agent. Raises UsageError.
    """
    match agent:
        case Agent():
            return _named(agent, config or Config(name="own")), lambda *_: agent
        case _ if config is not None:
            raise UsageError("config is for an agent that is an Agent object: give its settings in the configuration that names the agent")
        case None:
            return load("rmcts_builtin"), None
        case Config():
            return agent, None
        case str() | Path():
            return load(agent), None
        case _:
            raise UsageError(f"agent is of type {type(agent).__name__}: give an Agent, a Config, a file, or the name of a configuration")


def with_seed(config: Config, seed: int | None) -> Config:
    """Return the configuration with another seed, if one is given."""
    return config if seed is None else msgspec.structs.replace(config, seed=seed)


def _named(agent: Agent, config: Config) -> Config:
    """Return a configuration whose policy and value function have the names of an agent's own, for results and reports."""
    policy = msgspec.structs.replace(config.policy, kind=_name_of(agent.policy))
    value = "reward" if agent.uses_reward else _name_of(agent.value)
    return msgspec.structs.replace(config, policy=policy, value=msgspec.structs.replace(config.value, kind=value))


def _name_of(part: object) -> str:
    return f"{type(part).__module__}:{type(part).__qualname__}"
