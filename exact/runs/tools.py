"""The tools of a run's attempts: what they must not learn, and what they returned in an earlier process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.environments.tools.environment import RESULT, ResultKey, SecretCheck, result_key, tools_factory
from exact.environments.tools.open import AnyTool, check_tools
from exact.environments.tools.tool import Tool, ToolSettings
from exact.errors import UsageError
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import placeholder

_Step: TypeAlias = ev.Acted | ev.Committed | ev.RolledStep


def with_tools(
    environments: EnvironmentFactory, tools: Sequence[Tool], config: Config, state: AttemptState, scrubber: Scrubber
) -> EnvironmentFactory:
    """Return environments whose agent has tools beside their own actions.

    Args:
        environments: The environments.
        tools: The tools; none leaves the environments as they are.
        config: Configuration of the run.
        state: State of the attempt, whose journal holds what tools have returned.
        scrubber: Finds the secrets that no tool gets.

    Raises UsageError for an agent that steps back by itself, which no tool can.
    """
    if tools and config.search.algorithm == "explorer":
        raise UsageError("search.algorithm explorer takes its steps back, which no tool can: choose another one, or leave out tools")
    results = dict(_results(state)) if tools else {}
    return tools_factory(environments, tools, secrets=secret_check(scrubber), confirms=config.browser.confirm != "never", results=results)


def check_run_tools(config: Config, given: Sequence[AnyTool] = ()) -> None:
    """Raise UsageError for tools that cannot be used, or that the policy of a run never calls. Nothing is started.

    `given`: functions among those that the configuration names, which are used as they are.
    """
    check_tools(config.tools, given)
    if config.tools and config.policy.kind in ("learned", "lexical", "random"):
        raise UsageError(f"policy.kind {config.policy.kind} calls no tools: choose a model, such as --model gpt-4o, or leave out tools")


def secret_check(scrubber: Scrubber) -> SecretCheck:
    """Return the check by which no secret that a scrubber knows, and no placeholder, gets to a tool."""

    def find(text: str) -> str:
        marked = text.partition("<secret:")[2].partition(">")[0]
        found = scrubber.find(text)
        return placeholder(marked) if marked else found[0].shown if found else ""

    return SecretCheck(find, scrubber.text)


def with_recorded_tools(environments: EnvironmentFactory, state: AttemptState) -> EnvironmentFactory:
    """Return environments in which the committed steps of an attempt can be taken again: tools return what they returned, uncalled."""
    names = {step.action.partition(" ")[0] for step in state.live.carried_out if RESULT in step.info}
    settings = ToolSettings(effect="write")
    tools = [Tool(name=name, help="", schema={}, call=_uncalled, canonical=str, settings=settings) for name in sorted(names)]
    return tools_factory(environments, tools, results=dict(_results(state)))


async def _uncalled(text: str) -> object:
    raise AssertionError("a recorded tool is not called")


def _results(state: AttemptState) -> Iterator[tuple[ResultKey, str]]:
    """Yield what tools have returned, by the state in which they were called and the call."""
    nodes = state.search.tree.nodes
    for (node, _), acted in state.search.acted.items():
        yield from _result(nodes[node].fingerprint, acted)
    for (node, _, _), steps in state.search.rolled.items():
        before = nodes[node].fingerprint
        for step in steps:
            yield from _result(before, step)
            before = step.fingerprint or before
    for root, committed in zip(state.live.path, state.live.carried_out, strict=False):
        yield from _result(nodes[root].fingerprint, committed)


def _result(fingerprint: str, step: _Step) -> Iterator[tuple[ResultKey, str]]:
    if RESULT in step.info:
        yield result_key(fingerprint, step.action), step.info[RESULT]
