"""A policy and a value function for toy worlds whose right answers are known, with as much noise as a test wants.

Noise is a function of (seed, state, what it is about), never of a stream: the order of calls does not matter.
"""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist

from exact.action import Action, ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy_worlds import ToyState, ToyWorld
from exact.errors import UsageError
from exact.observation import Observation


class ToyPolicy:
    """Proposes what the state's links are, with the world's own priors."""

    def __init__(self, world: ToyWorld, *, noise: float = 0.0, seed: int = 0) -> None:
        """`noise`: standard deviation of what is added to the logarithm of each weight, at least 0."""
        self._world, self._noise, self._seed = world, noise, seed

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """At most k actions of the state, likeliest first; links, and `stop` with each answer that counts there."""
        name, state = _state(self._world, context.observation)
        refused = {taken.action.key for taken in context.tried}
        weights = [(actions.action("go", link), edge.prior) for link, edge in state.edges.items()]
        weights += [(actions.action("stop", answer), 1.0) for answer in state.answers]
        noisy = [(action, weight * self._factor(name, action)) for action, weight in weights if action.key not in refused]
        best = sorted(noisy, key=lambda pair: -pair[1])[:k]
        total = sum(weight for _, weight in best)
        return tuple(Proposal(action=action, prior=weight / total, rationale="a link of this state") for action, weight in best)

    def _factor(self, state: str, action: Action) -> float:
        return math.exp(self._noise * gaussian(self._seed, state, action.key))


class ToyValue:
    """Values a state as it looks, or as it is."""

    def __init__(self, world: ToyWorld, *, noise: float = 0.0, seed: int = 0, oracle: bool = False) -> None:
        """`noise`: standard deviation of what is added, before clipping to [0, 1]. `oracle`: the best reward within reach instead."""
        self._world, self._noise, self._seed = world, noise, seed
        self._values = best_rewards(world) if oracle else {name: _looks(state) for name, state in world.states.items()}

    async def evaluate(self, context: Context) -> Evaluation:
        """The value of the state; of a terminated node, that of what its last action led to."""
        name, state = _state(self._world, context.observation)
        value = self._values[name]
        if context.terminated:
            action = context.history[-1].action
            argument = str(action.args[0])
            if action.name == "stop":
                name, value = f"{name}: {action}", state.answers.get(argument, 0.0)
            else:
                name = state.edges[argument].to
                value = self._values[name]
        noisy = min(1.0, max(0.0, value + self._noise * gaussian(self._seed, name, "value")))
        return Evaluation(value=noisy, rationale=f"{name} looks like {noisy:.2f}", samples=(noisy,))


def best_rewards(world: ToyWorld) -> dict[str, float]:
    """The best reward that can be reached from each state, in [0, 1], without a limit on steps."""
    best = {name: max([state.reward or 0.0, *state.answers.values()]) for name, state in world.states.items()}
    changed = True
    while changed:
        changed = False
        for name, state in world.states.items():
            reach = max([best[name], *(best[edge.to] for edge in state.edges.values())]) if state.reward is None else best[name]
            changed |= reach != best[name]
            best[name] = reach
    return best


def gaussian(seed: int, *about: str) -> float:
    """A draw from the standard normal distribution that depends on its arguments only."""
    digest = hashlib.blake2b("\n".join((str(seed), *about)).encode(), digest_size=8).digest()
    return NormalDist().inv_cdf(((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52)


def _looks(state: ToyState) -> float:
    if state.looks is not None:
        return state.looks
    return 0.5 if state.reward is None else state.reward


def _state(world: ToyWorld, observation: Observation) -> tuple[str, ToyState]:
    prefix = f"toy://{world.name}/"
    name = observation.url.removeprefix(prefix)
    if not observation.url.startswith(prefix) or name not in world.states:
        raise UsageError(f"{observation.url!r} is no state of the toy world {world.name!r}: give agent and environment the same world")
    return name, world.states[name]
