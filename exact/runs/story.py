"""What a state's path tells: to agents as a context, to a restore as waypoints, to a reflector as surprises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exact.context import Context, Taken
from exact.environments.base import Effect, Transition
from exact.environments.restore import Waypoint
from exact.reflection.base import Surprise
from exact.reflection.lesson import action_label
from exact.runs.fold import Moment, State
from exact.runs.store import Blobs
from exact.search.tree import Edge, Node
from exact.task import Task


def seen_in(transition: Transition, blobs: Blobs) -> dict[str, Any]:
    """The fields of an event that say what a step led to, its observation stored."""
    seen: dict[str, Any] = {"terminated": transition.terminated, "effects": transition.effects}
    if transition.observation is not None:
        blob, screenshot = blobs.put_observation(transition.observation)
        seen |= {"fingerprint": transition.observation.fingerprint, "observation": blob, "screenshot": screenshot}
    return seen


def wrote(blobs: Blobs, node: Node, edge: int, effects: Sequence[Effect]) -> str:
    """The label of an action that wrote, or would have if it had not been held back; empty for one that did not."""
    if not any(effect.is_write or effect.is_held for effect in effects):
        return ""
    return action_label(node.edges[edge].action, blobs.get_observation(node.observation))


def waypoints(node: Node) -> list[Waypoint]:
    """From the task's start to a node."""
    found: list[Waypoint] = []
    here: Node | None = node
    while here is not None:
        found.append(Waypoint(here.edge.action if here.edge else None, here.fingerprint))
        here = here.parent
    return found[::-1]


def context(state: State, blobs: Blobs, task: Task, node: Node, moment: Moment) -> Context:
    """What a policy or a value function may look at in a node. Of a terminated or held one: what lies before it."""
    history = _history(state, blobs, node)
    unseen = node.leaf and bool(history)
    observation = history[-1].observation if unseen else blobs.get_observation(node.observation, node.screenshot)
    left = moment.actions_left
    return Context(
        task=task,
        instruction=state.instruction,
        observation=observation,
        history=history,
        terminated=unseen,
        tried=tuple(
            Taken(observation=observation, action=e.action, rationale=e.rationale, error=e.closed)
            for e in (node.edges[i] for i in moment.tried)
        ),
        steps_left=None if left is None else max(0, left - (node.depth - moment.root_depth)),
        node=node.id,
        seed=state.tree.seed,
    )


def _history(state: State, blobs: Blobs, node: Node) -> tuple[Taken, ...]:
    taken = []
    while node.parent is not None:
        edge, node = node.parent.edges[node.via], node.parent
        seen = blobs.get_observation(node.observation, node.screenshot)
        taken.append(Taken(observation=seen, action=edge.action, rationale=edge.rationale))
        taken.extend(_refusals(state, blobs, node))
    return tuple(taken[::-1])


def _refusals(state: State, blobs: Blobs, node: Node) -> list[Taken]:
    """Committed actions that the real world refused in this state, newest first."""
    if node.id not in state.refused:
        return []
    seen = blobs.get_observation(node.observation, node.screenshot)
    return [Taken(observation=seen, action=node.edges[s.edge].action, error=s.refused) for s in reversed(state.refused[node.id])]


def surprises(state: State, blobs: Blobs) -> list[Surprise]:
    """One record for each committed step whose expectation and outcome were both judged, in order."""
    found = []
    decisions = [decided for decided, step in zip(state.decisions, state.committed, strict=False) if not step.refused]
    for decided, before, after in zip(decisions, state.path, state.path[1:], strict=False):
        node, came = state.tree.nodes[before], state.tree.nodes[after]
        expected, real = decided.decision.value, came.mean
        if came.id == state.path[-1] and state.judged:
            real = state.judged.evaluation.value
        if expected is None or real is None or node.value is None:
            continue
        edge = node.edges[decided.decision.edges[0]]
        other = _best_other(node, edge)
        found.append(
            Surprise(
                step=Taken(observation=blobs.get_observation(node.observation), action=edge.action, rationale=edge.rationale),
                after=blobs.get_observation(came.observation) if came.observation else None,
                expected=expected,
                real=real,
                value_before=node.value,
                alternative=other.action.key if other else "",
                alternative_value=other.value if other else None,
                node=node.id,
            )
        )
    return found


def _best_other(node: Node, chosen: Edge) -> Edge | None:
    others = [edge for edge in node.edges if edge is not chosen and edge.value is not None]
    return max(others, key=lambda edge: edge.value or 0.0, default=None)
