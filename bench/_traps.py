"""Houses with traps, described in words: the environments of bench/memory_gain.py, and a built-in agent for them.

A house is a row of rooms. In each room one of four objects leads on, and the others lead to a bad end. In half of the kinds of rooms the
policy's favourite object is a trap: the four rooms behind it have the highest values, and then the episode ends. In the other half the
favourite leads on, so that a memory which only weakens the policy's preference loses there what it gains elsewhere. The kind of a room
shows only in its description and in the names of its objects, in other words each time. All names come from one small pool, so an object
that is a trap in one room leads on in another. The same holds behind a trap. A share of the rooms is of kinds that recur in other houses;
the other rooms have kinds of their own, which no reflection covers.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import msgspec

from exact.action import ActionSpace
from exact.agents.builtin.judge.recall import reflection_adjustment
from exact.agents.builtin.policy import TEMPERATURE
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.graph import uniform

ROOMS, KINDS = 4, 8
THINGS = (
    "pull the brass bell", "lift the red curtain", "turn the iron wheel", "open the oak door", "read the old letter", "climb the ladder",
    "push the stone", "light the lamp", "ring at the gate", "take the narrow stairs", "move the mirror", "unlock the chest",
    "follow the carpet", "wind up the clock", "crawl through the hatch", "knock at the wall",
)  # fmt: skip
EXTRAS = ("dust", "cobwebs", "candles", "chairs", "windows", "vases", "portraits", "draughts", "prints", "tables", "books", "silence")


BEHIND = 4
"""Rooms behind a trap."""


class Kind(NamedTuple):
    """Appearance of a room, and the effects of its objects."""

    marks: tuple[str, ...]
    """Words of its description."""
    things: tuple[str, ...]
    """The favourite, two others, and the way on where the favourite is a trap."""
    trapped: bool
    """Whether the favourite is a trap; else it leads on."""
    further: tuple[str, ...]
    """Object that leads on in each of the rooms behind it."""


def kind_of(*about: object) -> Kind:
    """Return the kind of room that belongs to a key."""
    rng = random.Random(repr(about))
    marks = tuple("".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4))) for _ in range(4))
    return Kind(marks, tuple(rng.sample(THINGS, 4)), rng.random() < 0.5, tuple(rng.sample(THINGS, BEHIND)))


def house(recurrence: float, number: int, seed: int) -> ToyGraph:
    """Return the house of a number. A share `recurrence`, in [0, 1], of its rooms is of kinds that other houses have too."""
    rng = random.Random(f"{seed} {number}")
    recurring = round(recurrence * ROOMS)
    kinds = [kind_of(seed, "recurring", each) for each in rng.sample(range(KINDS), recurring)]
    kinds += [kind_of(seed, "own", number, room) for room in range(ROOMS - recurring)]
    rng.shuffle(kinds)
    states = {"out": ToyState(reward=1.0), "lost": ToyState(reward=0.0)}
    for room, kind in enumerate(kinds):
        states |= _room(room, kind, rng)
    instruction = (
        f"Find the way out of the {rng.choice(['old', 'dark', 'empty', 'strange'])} house on {rng.choice(['the hill', 'the shore'])}."
    )
    return ToyGraph(name="house", instruction=instruction, start="room 0", states=states)


def _room(room: int, kind: Kind, rng: random.Random) -> dict[str, ToyState]:
    favourite, *ends, other = kind.things
    on = "out" if room == ROOMS - 1 else f"room {room + 1}"
    edges = {
        favourite: ToyEdge(to=f"trap {room}" if kind.trapped else on, prior=6.0),
        other: ToyEdge(to=on if kind.trapped else "lost", prior=1.5),
        **{end: ToyEdge(to="lost", prior=1.5) for end in ends},
    }
    order = rng.sample(sorted(edges), len(edges))
    marks = rng.sample(kind.marks, 3)
    extras = rng.sample(EXTRAS, 3)
    text = f"A {marks[0]} room with {extras[0]}, a {marks[1]} floor, {extras[1]} and {marks[2]} {extras[2]}"
    behind = [f"trap {room}", *(f"trap {room}, {n}" for n in range(1, BEHIND))]
    return {
        f"room {room}": ToyState(text=text, edges={name: edges[name] for name in order}, looks=0.4 + 0.1 * room),
        **{
            name: ToyState(text=" ".join(rng.sample(kind.marks, 3)), edges={kind.further[n]: ToyEdge(to=to)}, looks=0.85)
            for n, (name, to) in enumerate(zip(behind, [*behind[1:], "lost"], strict=True))
        },
    }


class RemindedPolicy:
    """A house's policy, with what the built-in agent makes of reflections: a change of an action's score before the softmax."""

    def __init__(self, environment: ToyGraph) -> None:
        self._inner = ToyPolicy(environment)

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        found = await self._inner.propose(context, actions, k)
        weights = [
            each.prior
            * math.exp(reflection_adjustment(context, "policy", each.action, context.observation, context.history)[0] / TEMPERATURE)
            for each in found
        ]
        total = sum(weights)
        return tuple(msgspec.structs.replace(each, prior=weight / total) for each, weight in zip(found, weights, strict=True))


class RemindedValue:
    """A house's looks, with what the built-in agent makes of reflections; of how an attempt ended it is wrong as often as it is told to be.

    That is the verdict asked for once more after the end, which makes lessons; the search is told of ends rightly.
    """

    def __init__(self, environment: ToyGraph, *, errs: float, seed: int) -> None:
        self._inner, self._errs, self._seed = ToyValue(environment), errs, seed

    async def evaluate(self, context: Context) -> Evaluation:
        evaluation = await self._inner.evaluate(context)
        value = evaluation.value
        if context.terminated:
            path = [step.action.key for step in context.history]
            if context.confirms and uniform(self._seed, context.task.id, path) < self._errs:
                value = 1 - value
            value = 0.05 + 0.9 * value
        if context.history:
            last = context.history[-1]
            value += reflection_adjustment(context, "value", last.action, last.observation, context.history[:-1])[0]
        value = min(max(value, 0.01), 0.99)
        return msgspec.structs.replace(evaluation, value=value, samples=(value,))
