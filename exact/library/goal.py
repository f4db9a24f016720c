"""A goal in words: the agent for a model and an effort, and what its attempt takes at worst."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from exact.config import Config, load, parse
from exact.errors import UsageError, unknown
from exact.models.open import Models
from exact.models.providers import providers, serving
from exact.text import counted

Effort = Literal["low", "medium", "high"]
"""low: no search, the model's first answer is taken. medium: search if the model is not sure, or may write. high: search at each step."""
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
UNSHOWN = "not established: no comparison with an instruct model has shown that it solves more than the model alone"
"""Words for the gain of search with a model of the user's."""

_SURE = 0.8
"""Share of the samples that name one action, from which `medium` acts without a search."""
_SERVED = "local"
"""Name of the model of a server until the server has told its own."""
_SMALL = 0.3
"""Sampling temperature of a model on this machine, which is a small one as a rule."""
_WITHOUT_SEARCH: dict[str, Any] = {
    "search": {"algorithm": "react", "k": 1},
    "policy": {"kind": "llm", "samples": 1},
    "value": {"kind": "constant"},
    "reflection": {"kind": "none"},
    "limits": {"money": 1, "calls": 60, "tokens": 400_000, "actions": 20, "transitions": 100, "seconds": 3600},
}
_WITH_SEARCH: dict[str, Any] = {
    "search": {"algorithm": "mcts", "iterations": 10, "k": 4, "depth": 4},
    "policy": {"kind": "llm", "samples": 4},
    "value": {"kind": "cascade", "samples": 2},
    "reflection": {"kind": "none"},
    "limits": {"money": 5, "calls": 1200, "tokens": 6_000_000, "actions": 20, "transitions": 1500, "seconds": 14_400},
}


class WorstCase(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt takes at worst. None: no cap."""

    calls: int | None
    """Model calls."""
    tokens: int | None
    """Tokens in and out."""
    money: float | None
    """US dollars. None also if the price of the model is unknown."""
    actions: int | None
    """Committed actions."""
    seconds: float | None
    """Wall-clock seconds."""
    search: str = ""
    """What search was shown to bring for such a model; empty if nothing is searched."""

    def __str__(self) -> str:
        caps = [
            "no cap on calls" if self.calls is None else counted(self.calls, "call"),
            "no cap on tokens" if self.tokens is None else f"{self.tokens:,} tokens",
            "unknown money" if self.money is None else f"${self.money:g}",
            "no cap on actions" if self.actions is None else counted(self.actions, "action"),
            "no cap on time" if self.seconds is None else f"{self.seconds:g} s",
        ]
        return f"at most {', '.join(caps)}{f'. Gain of search: {self.search}' if self.search else ''}"


def agent_for(model: str = "", effort: Effort | None = None, *, money: float | None = None, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration of an agent for a goal.

    Args:
        model: Name of a model at OpenAI, `provider/name` with a provider of `exact list providers`, or the address of a server of Chat
            Completions, such as `http://localhost:8080/v1`. Empty: the built-in agent, which needs no model.
        effort: See `Effort`. None: `low` for a model, since search is not shown to bring more; `high` for the built-in agent.
        money: Cap in US dollars on one attempt. None: 1 without search and 5 with it, if the price is known.
        overrides: Further keys, as `--set` takes them: `search.iterations=32`.

    Raises UsageError.
    """
    if effort not in (None, *EFFORTS):
        raise UsageError(f"effort {effort!r}: write {', '.join(EFFORTS)}")
    if not model:
        return load("react_builtin" if effort == "low" else "rmcts_builtin", overrides)
    chosen = effort or "low"
    data: dict[str, Any] = {"name": f"goal_{chosen}", **deepcopy(_WITHOUT_SEARCH if chosen == "low" else _WITH_SEARCH)}
    if chosen == "medium":
        data["search"]["think"] = _SURE
    data["models"] = {"policy": model_settings(model)}
    if money is not None:
        data["limits"]["money"] = money
    config = parse(data, overrides)
    if money is None and Models(config.models, keys=False).chat("policy").price is None:
        config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, money=None))
    return config


def model_settings(model: str) -> dict[str, Any]:
    """Return the section `models.policy` for a name, `provider/name` or the address of a server. Raises UsageError."""
    if "://" in model:
        host = urlsplit(model).hostname or ""
        if not model.startswith(("http://", "https://")) or not host:
            raise UsageError(f"model {model!r} is no address: write http://localhost:8080/v1, a name, or provider/name")
        own = {"price": {"input": 0, "output": 0}, "temperature": _SMALL} if _is_own(host) else {}
        return {"model": _SERVED, "base_url": model, "timeout": 600, **own}
    provider, slash, name = model.partition("/")
    if not slash:
        return {"model": model}
    if provider not in (known := providers()):  # never sent to another one by guess
        raise unknown("provider", provider, known, way_out=f"(a name with a slash needs its provider before it: vllm/{model})")
    if not name:
        raise UsageError(f"model {model!r} names no model: write {provider}/NAME")
    return {"model": name, "provider": provider}


async def as_served(config: Config) -> Config:
    """Return the configuration with the name and the context of the model that a server at a bare address has.

    A prompt takes at most half of the context. A server that tells nothing is asked for a model of the name `local`.
    """
    from exact.models.endpoint import server_facts
    from exact.models.openai import OpenAIModel

    policy = config.models.policy
    if policy is None or policy.model != _SERVED or not policy.base_url:
        return config
    asked = OpenAIModel(policy, provider=serving(policy))
    try:
        facts = await server_facts(asked.endpoints[0], own=True)
    finally:
        await asked.close()
    if facts.models and _SERVED not in facts.models:
        named = msgspec.structs.replace(policy, model=facts.models[0])
        config = msgspec.structs.replace(config, models=msgspec.structs.replace(config.models, policy=named))
    if facts.context:
        most = min(config.view.observation_tokens, facts.context // 2)
        config = msgspec.structs.replace(config, view=msgspec.structs.replace(config.view, observation_tokens=most))
    return config


def estimate(model: str = "", *, effort: Effort | None = None, money: float | None = None) -> WorstCase:
    """Return what one attempt at a goal takes at worst, without a call. The arguments are those of `solve`. Raises UsageError."""
    return estimated(agent_for(model, effort, money=money))


def estimated(config: Config) -> WorstCase:
    """Return what one attempt by a configuration takes at worst."""
    limits = config.limits
    searches = config.search.algorithm not in ("react", "greedy", "explorer")
    return WorstCase(
        calls=limits.calls if config.models.policy else 0,
        tokens=limits.tokens if config.models.policy else 0,
        money=limits.money if config.models.policy else 0.0,
        actions=limits.actions,
        seconds=limits.seconds,
        search=UNSHOWN if searches and config.models.policy else "",
    )


def _is_own(host: str) -> bool:
    """Return whether a host is this machine, whose models cost nothing a token."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
