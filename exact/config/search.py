"""The search, and the caps on it."""

from __future__ import annotations

from typing import Any, Literal

from exact.config.strict import Amount, AtLeastOne, AtLeastZero, Share, Strict


class ScopeLimits(Strict, frozen=True, kw_only=True):
    """Hard caps inside a task. None: no cap on that."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    tokens: AtLeastZero | None = None
    transitions: AtLeastZero | None = None
    """Environment steps, replays included."""
    evaluations: AtLeastZero | None = None
    seconds: Amount | None = None
    """Wall time."""


class Limits(Strict, frozen=True, kw_only=True):
    """Hard caps on one task. None: no cap on that."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    actions: AtLeastZero | None = 15
    """Committed actions."""
    transitions: AtLeastZero | None = None
    """Environment steps, replays included. When they are used up, actions are still committed, unexplored."""
    tokens: AtLeastZero | None = None
    """Tokens in and out."""
    iterations: AtLeastZero | None = None
    """Iterations of all searches together."""
    evaluations: AtLeastZero | None = None
    """Judgements by the value function."""
    seconds: Amount | None = None
    """Wall time."""


class SearchConfig(Strict, frozen=True, kw_only=True):
    """Which algorithm looks ahead, and how far. Each strategy is described where its name leads: exact/search/."""

    algorithm: str = "mcts"
    """A name in the registry: `exact config algorithms` lists them; others come by the entry point `exact.algorithms`."""
    iterations: AtLeastOne = 16
    """Backed-up visits of the tree for each committed action; what a step leaves over, the next may use."""
    k: AtLeastOne = 6
    """Distinct proposals asked for at an expansion."""
    depth: AtLeastOne = 8
    """How many actions below the root a search may look."""
    retries: AtLeastZero = 2
    """How often a failed piece of work is asked for again before its node is closed."""
    workers: AtLeastOne = 1
    """How many pieces of work of one tree may be under way at once; each has an environment of its own."""
    order: Literal["arrival", "selection"] = "arrival"
    """With several workers, results are taken in as they come, or in rounds, in the order they were asked for: that takes longer and
    leads to the same tree each time, as far as environment and models do."""
    evaluations: AtLeastOne | None = None
    """How often one state may be judged. None: 3 times by a language model, once by a judge that would say the same again."""
    explore: Literal["puct", "uct", "muzero"] = "puct"
    c: Amount = 0.5
    """Exploration constant on values in [0, 1]; with a schedule, the first."""
    disagreement_bonus: Amount = 0.0
    """mcts: exploration of an action is multiplied by 1 + this times the spread between the judges of the state it leads to."""
    reevaluations: AtLeastZero | None = None
    """mcts, gumbel, abmcts: of the iterations, how many at the end go to judging the root's candidates again, where they lie within `z`
    errors of each other, until the gap between them exceeds its error. None: a quarter of them for a cascade, else none."""
    batch: bool = False
    """beam, tot_bfs: siblings are judged together, in one question where the value function can."""
    c_last: Amount | None = None
    """The last exploration constant of a schedule; None: `c`."""
    c_schedule: Literal["constant", "linear", "exponential", "cosine"] = "constant"
    first_play: Literal["parent", "mean", "zero", "lowest", "reduced"] = "parent"
    first_play_reduction: Share = 0.25
    """For `reduced`."""
    normalise: Literal["none", "minmax", "siblings"] = "none"
    noise_floor: Share = 0.05
    """Differences of Q below this are not blown up by normalising."""
    parallel: Literal["counts", "loss"] = "counts"
    collision: Literal["mask", "wait", "resample"] = "mask"
    expansion: Literal["lazy", "eager", "speculative"] = "lazy"
    revisit: Literal["exhaust", "repeat"] = "exhaust"
    backup: Literal["mean", "max", "mixed"] = "mean"
    mix: Share = 0.5
    """For `mixed`: the share of the maximum."""
    discount: Share = 1.0
    """What a value is worth one action earlier."""
    merging: Literal["none", "noop", "siblings", "full"] = "siblings"
    branching_decay: Share = 1.0
    """`k` times this for each level below the root; at least one proposal."""
    candidates: Literal["best", "sampled", "uniform"] = "best"
    temperature: Amount = 1.0
    """Of the priors: below 1 surer, above 1 flatter."""
    widening: Amount | None = None
    """Progressive widening: `widening * visits ** widening_power` children; None: all proposals at once."""
    widening_power: Share = 0.5
    final: Literal["visits", "value", "max_robust", "lower_bound"] = "lower_bound"
    z: Amount = 1.0
    """For `lower_bound`: how many standard errors."""
    noise: Share = 0.3
    """For `lower_bound`: the least deviation of one judgement that is assumed; what was measured counts where it is more."""
    think: Share | None = None
    """Prior from which an action is committed without a search, where it is not presumed to write and the value does not fall."""
    enough: Share | None = None
    """Value from which an end, confirmed by an independent judgement, ends the search."""
    early: bool = False
    """Whether to stop when more iterations cannot change the decision."""
    subtree: bool = False
    """Whether `iterations` counts visits of the root, so that a kept subtree counts."""
    commit: Literal["replan", "plan"] = "replan"
    """replan: one action, then search again. plan: the whole path, until the environment differs from what was foreseen."""
    commit_by: Literal["replay", "fork"] = "replay"
    """How a decision is committed. replay: the action is taken in the live environment. fork: the environment that search brought to the
    chosen state becomes the live one, where it rolls back."""
    prefetch: AtLeastZero = 1
    """Environments to spare, which are brought to the likely next states while a model thinks; where environments fork."""
    environments: AtLeastZero = 0
    """Environments that a search has open at once, where they fork; at least one for each worker and those to spare. 0: these, and
    another for
    each worker but one. Those beyond stay in the states where they were left, and are gone on with from there: memory for restores."""
    breadth: AtLeastOne = 3
    """Beam search and tree of thoughts: states kept at each level. best_of_n: trajectories."""
    limits: ScopeLimits = ScopeLimits()
    """Caps on the search for one committed action."""
    iteration: ScopeLimits = ScopeLimits()
    """Caps on one iteration."""
    options: dict[str, Any] = {}
    """What else an algorithm takes, by name."""

    @property
    def standing(self) -> int:
        """Environments beyond those of the workers and those to spare."""
        return max(0, self.environments - self.workers - self.prefetch) if self.environments else self.workers - 1
