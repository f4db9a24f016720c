"""Evaluations in a run's journals: those on the committed paths, with the benchmark's score as their outcome.

Outcomes of states that were searched and not committed.

A fresh environment is brought to the state, the policy finishes the task, and the benchmark scores it. Committed states were chosen for
their value, so they say little about how well a value function separates states. States drawn at random do.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Container, Iterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

import msgspec

from exact.agents.base import Policy, propose
from exact.agents.roles import value_roles
from exact.calibration.measure import Prediction
from exact.config import Config, ValueConfig, load_recorded
from exact.context import Context, Taken
from exact.environments.base import Environment, EnvironmentFactory, evaluate_outcome
from exact.errors import ActionError, UsageError
from exact.models.open import model_for
from exact.observation import same_state
from exact.runs.attempt.observations import agent_context, waypoints
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import RunFolder
from exact.search.tree import Node
from exact.task import Outcome, Task


class Source(NamedTuple):
    """One run and its attempts."""

    folder: RunFolder
    config: Config
    judge: str
    """Name of the value function. See `value_function_name`."""
    attempts: tuple[tuple[Task, AttemptState], ...]


def open_source(folder: RunFolder) -> Source:
    """Read a run and all its started attempts. Raises UsageError or JournalError."""
    config = load_recorded(folder.path)
    paths = ((task, folder.task_folder(task) / "journal.jsonl") for task in folder.manifest.tasks)
    return Source(
        folder,
        config,
        value_function_name(config),
        tuple((task, fold(config, read_journal(path))) for task, path in paths if path.exists()),
    )


def value_function_name(config: Config) -> str:
    """Return a value function's name: its kind, its models, and the meaning of its numbers if that is not the default.

    Value functions of one name use one scale, so that their evaluations may be pooled.
    """
    models = dict.fromkeys(model_for(config.models, role).model for role in value_roles(config.value))
    return " ".join([config.value.kind, *models, *dict.fromkeys(_scales(config.value))])


def _scales(settings: ValueConfig) -> Iterator[str]:
    """Yield the settings that change the meaning of a value."""
    if settings.grades != ValueConfig().grades:
        yield f"grades {settings.grades}"
    for member in settings.members:
        yield from _scales(member)
    if settings.calibration:
        yield f"calibrated by {settings.calibration}"


def committed(source: Source) -> list[Prediction]:
    """Return a prediction for every evaluated state on the committed path of every scored attempt.

    The sample is biased: it contains only chosen states.
    """
    return list(_committed(source))


def evaluated_nodes(source: Source) -> list[tuple[Task, AttemptState, Node]]:
    """Return all evaluated states except the starts, in order. Raises UsageError if there is none."""
    found = [
        (task, state, node)
        for task, state in source.attempts
        for node in state.search.tree.nodes
        if node.parent is not None and node.evaluation is not None and not (node.unseen or node.evaluation.unjudged)
    ]
    if not found:
        raise UsageError(f"{source.folder.path} holds no evaluated state: was it searched with a value function?")
    return found


def _committed(source: Source) -> Iterator[Prediction]:
    for task, state in source.attempts:
        if state.live.scored is None:
            continue
        for id in state.live.path:
            node = state.search.tree.nodes[id]
            if node.evaluation is not None:
                yield Prediction(task.id, id, node.evaluation.value, state.live.scored.score.success)


STEPS = 15
"""Maximum number of the policy's actions in a run without a cap on actions."""


class LabelledState(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluated state and the outcome of the policy from there."""

    task: str
    node: int
    value: float
    success: bool
    steps: int
    """Number of actions that the policy took."""
    reason: str = ""
    """Reason for a missing outcome: the state was not reached again. Such a label counts for nothing. Empty if the outcome is known."""

    def prediction(self) -> Prediction:
        """Return the state's value with its outcome."""
        return Prediction(self.task, self.node, self.value, self.success)


async def label(
    source: Source,
    count: int,
    *,
    environments: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]],
    policy: Policy,
    seed: int = 0,
    known: Container[tuple[str, int]] = (),
) -> AsyncIterator[LabelledState]:
    """Yield the outcomes of `count` evaluated states drawn without replacement, or of all if there are fewer.

    Requires environments whose reset undoes every side effect: the policy acts for real. known: task and node of states that are not drawn.
    Raises UsageError or EnvironmentFailure.
    """
    nodes = [drawn for drawn in evaluated_nodes(source) if (drawn[0].id, drawn[2].id) not in known]
    for task, state, node in random.Random(seed).sample(nodes, min(count, len(nodes))):
        async with environments(task) as opened, opened.open(simulation=False) as environment:
            if not environment.capabilities.isolated or not environment.capabilities.evaluates:
                raise UsageError(
                    f"{task.id}: labels need an environment whose reset undoes every side effect and a benchmark that scores it"
                )
            yield await _outcome(source, task, state, node, environment, policy)


async def _outcome(source: Source, task: Task, state: AttemptState, node: Node, environment: Environment, policy: Policy) -> LabelledState:
    """Return the label of one state."""
    assert node.evaluation is not None
    found = LabelledState(task=task.id, node=node.id, value=node.evaluation.value, success=False, steps=0)
    if reason := await _arrive(environment, task, node):
        return msgspec.structs.replace(found, reason=reason)
    actions = [str(point.action) for point in waypoints(node) if point.action is not None]
    if not node.terminated:
        limit = source.config.limits.actions
        left = max(0, (limit or STEPS) - len(actions))
        start = agent_context(state, source.folder.blobs, task, node, state.search.moment(-1, node))
        start = msgspec.structs.replace(start, steps_left=left if limit else None)
        actions += await _finish(environment, start, policy, left)
    score = await evaluate_outcome(environment, task, Outcome(actions=tuple(actions), answer=_answer(environment, actions)))
    return msgspec.structs.replace(found, success=score.success, steps=len(actions) - node.depth)


async def _arrive(environment: Environment, task: Task, node: Node) -> str:
    """Reset the environment and replay the path to a state. Return the reason if another state was reached; empty on arrival."""
    start, *path = waypoints(node)
    if not same_state((await environment.reset(task)).fingerprint, start.fingerprint):
        return "reset led to another state"
    for point in path:
        assert point.action is not None
        try:
            came = (await environment.step(point.action)).observation
        except ActionError as error:
            return f"{point.action} was refused: {error}"
        if not same_state(came.fingerprint if came else "", point.fingerprint):
            return f"{point.action} led to another state"
    return ""


async def _finish(environment: Environment, seen: Context, policy: Policy, cap: int) -> list[str]:
    """Take the policy's first proposal until the episode ends, nothing is proposed or the cap is reached. Return the actions."""
    done = list[str]()
    while len(done) < cap:
        proposals = await propose(policy, seen, environment.actions, 1)
        if not proposals:
            break
        action = proposals[0].action
        taken = Taken(observation=seen.observation, action=action, rationale=proposals[0].rationale)
        try:
            came = await environment.step(action)
        except ActionError as error:
            if len(seen.tried) >= 2:
                break
            seen = msgspec.structs.replace(seen, tried=(*seen.tried, msgspec.structs.replace(taken, error=str(error))))
            continue
        done.append(str(action))
        if came.terminated or came.observation is None:
            break
        left = None if seen.steps_left is None else seen.steps_left - 1
        seen = msgspec.structs.replace(seen, observation=came.observation, history=(*seen.history, taken), tried=(), steps_left=left)
    return done


def _answer(environment: Environment, actions: list[str]) -> str | None:
    """Return the text of a final `stop`."""
    last = environment.actions.parse(actions[-1]) if actions else None
    return " ".join(map(str, last.args)) if last is not None and last.name == "stop" else None
