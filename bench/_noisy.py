"""Decision trees of known answer as games for ask and tell, and whole episodes at a fixed number of evaluations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exact.action import Action
from exact.context import Evaluation, Proposal
from exact.environments.toy.agents import Noise, NoisyJudge, NoisyPolicy
from exact.environments.toy.decision import DecisionTree
from exact.search.base import Algorithm, Compared, Done, Failure, Need, Proposed, Result, Rolled, Selection, Stepped, Valued
from exact.search.tree import Node, SearchError, Tree

BRANCHING, DEPTH, RATE, POLICY, JUDGE = 4, 5, 0.01, 0.5, 0.3
"""Four actions, five steps; 1 percent of the ends succeed, and one more. Deviations of policy and judge, where an end is worth 1."""


@functools.cache
def action(index: int) -> Action:
    """Return the action of an index."""
    return Action("go", (str(index),), f'go "{index}"')


@functools.lru_cache(maxsize=512)
def _tree(seed: int) -> DecisionTree:
    """Return the tree that all searches of a setting share, so that its values are computed once."""
    return DecisionTree(BRANCHING, DEPTH, seed=seed, rate=RATE)


@dataclass(frozen=True)
class Noisy:
    """A tree, a policy and a judge."""

    tree: DecisionTree
    policy: NoisyPolicy
    judge: NoisyJudge
    start = ""

    @staticmethod
    def make(
        seed: int, *, sd: float = JUDGE, kind: Noise = "independent", false_positives: float | None = None, missing: float = 0.0
    ) -> Noisy:
        tree = _tree(seed)
        judge = NoisyJudge(tree, sd=sd, kind=kind, false_positives=false_positives)
        return Noisy(tree, NoisyPolicy(tree, sd=POLICY, missing=missing), judge)

    def step(self, state: str, key: str) -> tuple[str, bool]:
        """Return the next state, and whether it is an end."""
        index = key[4:-1]
        after = f"{state}.{index}" if state else index
        return after, self.tree.is_end(after)

    def proposals(self, state: str, k: int = BRANCHING) -> tuple[Proposal, ...]:
        """Return the k likeliest proposals."""
        priors = sorted(self.policy.priors(state, k), key=lambda item: -item[1])
        return tuple(Proposal(action=action(index), prior=prior) for index, prior in priors)

    def sample(self, state: str, draw: int) -> tuple[Proposal, ...]:
        """Draw a proposal by its prior."""
        return (Proposal(action=action(self.policy.draw(state, draw)), prior=1.0),)

    def value(self, state: str, draw: int) -> float:
        return self.judge.value(state, draw)


class Episode:
    """One task: before each committed action a search of at most `judgements` judgements, up to the end of the task.

    Where a search knows nothing of any action, the policy's first choice is taken. A comparison of n costs n judgements, a rollout one.
    """

    def __init__(self, game: Noisy, algorithm: Algorithm, judgements: int) -> None:
        self.game, self.algorithm, self.allowed = game, algorithm, judgements
        self.spent = self.decisions = 0
        self.tree = Tree(seed=game.tree.seed)

    def play(self) -> float:
        """1.0 for success, 0.0 for failure."""
        state = ""
        while not self.game.tree.is_end(state):
            self._search()
            self.decisions += 1
            index = self._choice()
            if index is None:
                return self._follow(state)
            state, ended = self.game.step(state, self.tree.root.edges[index].action.key)
            self.algorithm.advance(self.tree, index, Stepped(fingerprint=state, terminated=ended))
        return self.game.tree.outcome(state)

    def _follow(self, state: str) -> float:
        """Follow the policy alone to the end."""
        while not self.game.tree.is_end(state):
            state, _ = self.game.step(state, self.game.proposals(state)[0].action.key)
        return self.game.tree.outcome(state)

    def _choice(self) -> int | None:
        """Return the action that the search would commit; None where there is none."""
        try:
            return self.algorithm.decide(self.tree).edges[0]
        except SearchError:
            return None

    def _search(self) -> None:
        began = self.spent
        while True:
            answer = self.algorithm.ask(self.tree)
            if isinstance(answer, Done):
                return
            assert isinstance(answer, Selection), "one worker has nothing to wait for"
            while answer.id in self.tree.open:
                need = self.tree.open[answer.id].left[0]
                cost = len(answer.rivals) if need == "comparison" else need in ("value", "rollout")
                if self.spent - began + cost > self.allowed:
                    self.algorithm.release(self.tree, answer)
                    return
                self.spent += cost
                self.algorithm.tell(self.tree, answer, self._result(answer, need))

    def _result(self, selection: Selection, need: Need) -> Result:
        game, node = self.game, self.tree.nodes[selection.node]
        if need == "step":
            assert selection.edge is not None
            state, ended = game.step(node.fingerprint, node.edges[selection.edge].action.key)
            return Stepped(fingerprint=state, terminated=ended)
        target = self.tree.open[selection.id].target
        assert target is not None
        state = target.fingerprint
        match need:
            case "value":
                return Valued(evaluation=Evaluation(value=game.value(state, selection.draw)))
            case "proposals":
                return Proposed(proposals=game.proposals(state, selection.k))
            case "sample":
                return Proposed(proposals=game.sample(state, selection.draw))
            case "rollout":
                return self._rollout(state, selection)
            case _:
                return self._comparison(node, selection)

    def _rollout(self, state: str, selection: Selection) -> Rolled:
        steps = 0
        while not self.game.tree.is_end(state) and steps < selection.depth:
            state, _ = self.game.step(state, self.game.sample(state, selection.draw)[0].action.key)
            steps += 1
        return Rolled(
            evaluation=Evaluation(value=self.game.value(state, selection.draw)), steps=steps, terminated=self.game.tree.is_end(state)
        )

    def _comparison(self, node: Node, selection: Selection) -> Compared | Failure:
        """Shares by what each looks worth: a vote of judges that see all of them."""
        looks = [self.game.value(child.fingerprint, selection.draw) for i in selection.rivals if (child := node.edges[i].child)]
        total = sum(looks)
        return Compared(scores=tuple(look / total for look in looks) if total else (1 / len(looks),) * len(looks))


def success(
    seeds: Sequence[int], make: Callable[[int], Noisy], algorithm: Callable[[], Algorithm], judgements: int
) -> tuple[list[float], float]:
    """Outcomes by seed, and the judgements that were used for a committed action on average."""
    episodes = [Episode(make(seed), algorithm(), judgements) for seed in seeds]
    outcomes = [episode.play() for episode in episodes]
    return outcomes, sum(episode.spent for episode in episodes) / sum(episode.decisions for episode in episodes)
