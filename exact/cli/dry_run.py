"""`--dry-run`: the calls, files and costs of a run or a benchmark at worst."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.agents.roles import roles
from exact.benchmarks.open import DECLARED, check_environments
from exact.config import Config
from exact.errors import UsageError
from exact.models.open import model_for
from exact.models.providers import providers, serving
from exact.plugins import is_plugin
from exact.runs.references import named
from exact.runs.runner import check_models
from exact.runs.secrets import conceal
from exact.task import Task
from exact.text import counted

if TYPE_CHECKING:
    from exact.evaluation.plan import Plan


LABEL = len("environment steps")
"""Columns of the labels at the left."""
_MOST_NAMED = 50
"""Most rows of things outside that tasks name."""
_BEGIN = "Dry run: nothing was called or written."


def describe(tasks: tuple[Task, ...], config: Config, out: Path, *, benchmark: bool) -> str:
    """Return the plan of a run in aligned lines. The last line gives the reason if the run would be refused.

    `benchmark`: whether the tasks are those of a suite.
    """
    return f"{_BEGIN} At worst:\n{_rows(tasks, config, out, benchmark=benchmark, here=True)}"


def describe_bench(plan: Plan, configs: Sequence[Config], out: Path, money: float | None, *, here: bool) -> str:
    """Return the plan of each agent of a benchmark, and the most that all attempts may cost together.

    `money`: cap in US dollars, or None. `here`: whether attempts run on this machine, whose environments are checked then.
    """
    parts = [_rows(plan.tasks, config, out / "agents" / config.name, benchmark=not plan.own, here=here) for config in configs]
    limits = [config.limits.money if roles(config) else 0.0 for config in configs]
    sums = [money] if money is not None else []
    sums += [] if None in limits else [len(plan.tasks) * sum(each or 0.0 for each in limits)]
    most = f"at most ${min(sums):g} in all" if sums else "no cap on the money (add --money DOLLARS)"
    return f"{_BEGIN} {counted(len(plan.pairs), 'attempt')}, {most}. At worst:\n" + "\n\n".join(parts)


def _rows(tasks: tuple[Task, ...], config: Config, out: Path, *, benchmark: bool, here: bool) -> str:
    limits, n = config.limits, len(tasks)
    names = [task.id for task in tasks[:5]] + ([f"... and {n - 5} more"] if n > 5 else [])
    models = [_called(config, role) for role in roles(config)]
    rows = [
        ("tasks", f"{n}: " + ", ".join(names)),
        ("agent", f"{config.name}: {config.search.algorithm}, policy {config.policy.kind}, value {config.value.kind}"),
        ("calls", "; ".join(models) if models else "no model: the built-in agent is not a language model"),
        ("origins", ", ".join(config.browser.allow_origins) or "only those of the tasks"),
        ("writes", f"{out}"),
        *_tools(config),
        *_browser(config),
        ("money", _cap(limits.money, n, "$")),
        ("model calls", _cap(limits.calls, n) if models else "0"),
        ("actions", _cap(limits.actions, n) + ", each in the live environment"),
        ("environment steps", _cap(limits.transitions, n)),
        ("time", _cap(limits.seconds, n, unit=" s")),
    ]
    concealed, _ = conceal(tasks, Config(), {})  # a terminal, or the log of a job, shows no password that stands in a site file
    if benchmark:  # the private part of a suite's task is its set-up and its evaluator, which no user wrote
        shown = [{key: value for key, value in task.private.items() if key in DECLARED} for task in concealed]
        concealed = tuple(msgspec.structs.replace(task, private=each) for task, each in zip(concealed, shown, strict=True))
    found = named(Config(), concealed)
    rows += [("uses", str(each)) for each in found[:_MOST_NAMED]]
    rows += [("uses", f"and {len(found) - _MOST_NAMED:,} more: see the file of tasks")] if len(found) > _MOST_NAMED else []
    try:
        check_models(config)
        if here:
            check_environments(tasks, config, benchmark=benchmark)
    except UsageError as error:
        rows.append(("refused", f"this run would not start: {error}"))
    return "\n".join(f"  {name:{LABEL}} {text}" for name, text in rows)


def _tools(config: Config) -> list[tuple[str, str]]:
    """Return the user's tools with their effects, and the servers whose tools are further ones."""
    from exact.config.environments import MCP, TOOL_GROUP
    from exact.environments.tools.tool import function_tool
    from exact.plugins import attribute

    functions = [function_tool(attribute("tools", each.kind, TOOL_GROUP)) for each in config.tools if each.kind != MCP]
    shown = [f"{each.name} ({each.settings.effect}s)" for each in functions]
    shown += [f"MCP server {' '.join(each.command) or each.url}" for each in config.tools if each.kind == MCP]
    return [("tools", ", ".join(shown))] if shown else []


def served_tools_shown(config: Config) -> str:
    """Start the MCP servers of a configuration, and return what they offer and what they say of it, for `--dry-run`. Nothing is called.

    Raises UsageError, EnvironmentFailure.
    """
    from exact.cli.signals import run_async
    from exact.config.environments import MCP
    from exact.environments.tools.server import served_tools

    async def listed() -> list[str]:
        lines = list[str]()
        for server in servers:
            async with served_tools(server) as tools:
                lines += (f"  {each.name} {each.settings.effect}s{f': {each.hint}' if each.hint else ''}" for each in tools)
        return lines

    servers = [each for each in config.tools if each.kind == MCP]
    lines = run_async(listed()) if servers else []
    head = ["Tools of MCP servers, which were started to name them. A search may call those that you name in `reads`:"] if lines else []
    return "\n".join((*head, *lines))


def _browser(config: Config) -> list[tuple[str, str]]:
    """Return the notes on the user's own browser or profile."""
    from exact.environments.browser.launch.connect import NO_WALL

    if config.browser.cdp_url:
        return [("browser", "a running one, which is not closed; search sends no writes"), ("wall", NO_WALL)]
    if config.browser.profile:
        return [("browser", f"logged in as {config.browser.profile}, from a copy that is deleted; search sends no writes")]
    return []


def _called(config: Config, role: str) -> str:
    """Return the model of a role and the addresses that serve it."""
    model = model_for(config.models, role)
    if is_plugin(model.provider):
        return f"{role}: {model.model} by {model.provider}"
    try:
        provider = serving(model, providers(config.models.providers))
    except UsageError:
        return f"{role}: {model.model} at an address that is not configured yet"
    return f"{role}: {model.model} at {', '.join(each.base_url for each in provider.all_endpoints)}"


def _cap(limit: float | None, tasks: int, sign: str = "", unit: str = "") -> str:
    return "no cap" if limit is None else f"{sign}{limit * tasks:g}{unit} ({sign}{limit:g}{unit} a task)"
