"""The path to a state, as context for agents and as waypoints for a restore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exact.context import Context, Taken
from exact.environments.base import SideEffect, Transition, reported_info
from exact.environments.restore.waypoint import Waypoint
from exact.reflection.record import action_kind
from exact.runs.journal.search_state import AskMoment
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.search.tree import Node, is_refused
from exact.task import Task


def observed_fields(transition: Transition, blobs: Blobs) -> dict[str, Any]:
    """Store the observation of a step. Return the fields of an event that describe where the step led.

    The fingerprint is empty where the step ended the episode without an observation.
    """
    seen, came = transition.observation, {"terminated": transition.terminated, "effects": transition.effects, "info": transition.info}
    blob, screenshot = ("", "") if seen is None else blobs.put_observation(seen)
    return {**came, "fingerprint": seen.fingerprint if seen else "", "observation": blob, "screenshot": screenshot}


def wrote(blobs: Blobs, node: Node, edge: int, effects: Sequence[SideEffect]) -> str:
    """Return the label of an action that wrote, or that would have if it had not been blocked; empty for another."""
    if not any((effect.is_write and not effect.late) or effect.is_blocked for effect in effects):
        return ""
    return action_kind(node.edges[edge].action, blobs.get_observation(node.observation))


def ancestry(node: Node) -> list[Node]:
    """Return the states from the task's start to a node, both included."""
    found, here = list[Node](), node
    while True:
        found.append(here)
        if here.parent is None:
            return found[::-1]
        here = here.parent


def waypoints(node: Node) -> list[Waypoint]:
    """Return the waypoints from the task's start to a node."""
    return [Waypoint(here.edge.action if here.edge else None, "" if here.terminated else here.fingerprint) for here in ancestry(node)]


def agent_context(state: AttemptState, blobs: Blobs, task: Task, node: Node, moment: AskMoment, selection: int = -1) -> Context:
    """Return what a policy or a value function is shown at a node.

    A terminated or unseen node shows the observation before it. What the environment gave with an end is the context's `end`.
    """
    history = _history(state, blobs, node)
    observation = history[-1].observation if node.leaf and history else blobs.get_observation(node.observation, node.screenshot)
    left = moment.actions_left
    return Context(
        task=task.shown,
        instruction=state.live.instruction,
        observation=observation,
        history=history,
        terminated=node.terminated and bool(history),
        end=blobs.get_observation(node.observation, node.screenshot) if node.terminated and history and node.observation else None,
        unseen=node.unseen and not node.terminated and bool(history),
        tried=tuple(
            Taken(
                observation=observation,
                action=e.action,
                rationale=e.rationale,
                error=e.closed.removeprefix("action: ") if is_refused(e) else "",
                note=e.closed,
            )
            for e in (node.edges[i] for i in moment.tried)
        ),
        earlier=state.live.opened.earlier if state.live.opened else (),
        steps_left=None if left is None else max(0, left - (node.depth - moment.root_depth)),
        node=node.id,
        seed=state.search.tree.seed,
        selection=selection,
    )


def _history(state: AttemptState, blobs: Blobs, node: Node) -> tuple[Taken, ...]:
    taken = []
    while node.parent is not None:
        edge, came, node = node.parent.edges[node.via], state.search.effects.get(node.id), node.parent
        seen = blobs.get_observation(node.observation, node.screenshot)
        taken.append(Taken(observation=seen, action=edge.action, rationale=edge.rationale, note=reported_info(came.info) if came else ""))
        taken.extend(_refusals(state, blobs, node))
    return tuple(taken[::-1])


def _refusals(state: AttemptState, blobs: Blobs, node: Node) -> list[Taken]:
    """Return the committed actions that the live environment refused in this state, newest first."""
    if node.id not in state.live.refused:
        return []
    seen = blobs.get_observation(node.observation, node.screenshot)
    return [Taken(observation=seen, action=node.edges[s.edge].action, error=s.refused) for s in reversed(state.live.refused[node.id])]
