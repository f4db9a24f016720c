"""Configuration of the search and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta

from exact.config.aliases import Amount, AtLeastOne, AtLeastZero, Share, Strict

Scale = Annotated[float, Meta(ge=0, le=1e6)]
Temperature = Annotated[float, Meta(gt=0, le=1e6)]


class ScopeLimits(Strict, frozen=True, kw_only=True):
    """Hard caps on a part of a task. None: no cap."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    tokens: AtLeastZero | None = None
    """Tokens in and out."""
    transitions: AtLeastZero | None = None
    """Environment steps, including replays."""
    evaluations: AtLeastZero | None = None
    """Evaluations by the value function."""
    seconds: Amount | None = None
    """Wall-clock seconds."""


class Limits(Strict, frozen=True, kw_only=True):
    """Hard caps on one task. None: no cap."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    actions: AtLeastZero | None = 15
    """Committed actions."""
    transitions: AtLeastZero | None = None
    """Environment steps, including replays. When they are used up, actions are still committed, without a search."""
    tokens: AtLeastZero | None = None
    """Tokens in and out."""
    iterations: AtLeastZero | None = None
    """Iterations of all searches together."""
    evaluations: AtLeastZero | None = None
    """Evaluations by the value function."""
    seconds: Amount | None = None
    """Wall-clock seconds."""


class SearchConfig(Strict, frozen=True, kw_only=True):
    """The search algorithm and its strategies. docs/search_options.md says which algorithm reads which key."""

    algorithm: str = "mcts"
    """Name of the algorithm. `exact list algorithms` lists them; the entry point `exact.algorithms` adds others. explorer: react, in
    environments with the actions `step_back` and `restart`, for models that were trained on exploratory conversations."""
    iterations: AtLeastOne = 16
    """Iterations for each committed action. Those that one step leaves over are added to the next."""
    k: AtLeastOne = 6
    """Distinct proposals requested at an expansion."""
    depth: AtLeastOne = 8
    """Maximum depth of the tree, in actions below the root."""
    retries: AtLeastZero = 2
    """Retries of a failed piece of work before its node is closed."""
    workers: AtLeastOne = 1
    """Pieces of work of one tree in progress at once. Each has a separate environment."""
    order: Literal["arrival", "selection"] = "arrival"
    """Order in which the search takes the results of several workers. arrival: as they come. selection: in rounds, in the order of the
    requests, which takes longer and gives the same tree each time if environment and models are deterministic."""
    evaluations: AtLeastOne | None = None
    """Most evaluations of one state. None: 3 for `value.kind: llm`, whose evaluations are cheap and differ; 1 for the other kinds, which
    cost more (rubric, debate, comparative, the second part of a cascade) or give the same value again (logprob, lexical, learned)."""
    explore: Literal["puct", "uct", "muzero"] = "puct"
    """Selection rule. puct: AlphaZero's. uct: UCB1, which tries each action once and ignores priors. muzero: PUCT with a constant that
    grows slowly with the visits."""
    c: Scale = 0.5
    """Exploration constant for values in [0, 1]."""
    disagreement_bonus: Scale = 0.0
    """mcts: weight w of disagreement. An action's exploration term is multiplied by 1 + w times the spread between the judges of its state.
    0: off."""
    reevaluations: AtLeastZero | None = None
    """mcts, gumbel, abmcts: iterations reserved at the end to re-evaluate the root's candidates, if these lie within one standard error of
    each other, until the gap between them exceeds its error. None: a quarter of the iterations for a cascade, else 0."""
    batch: bool = False
    """beam, tot_bfs: siblings are evaluated together, in one question if the value function supports it."""
    first_play: Literal["parent", "mean", "zero", "lowest"] = "parent"
    """Value of an action that was not tried. parent: V of its state. mean: the state's mean. zero: 0. lowest: the lowest of the mean and
    its siblings' Q."""
    expansion: Literal["lazy", "eager", "speculative"] = "lazy"
    """Time of an expansion. lazy: on the second visit. eager: right after the evaluation. speculative: during the evaluation."""
    revisit: Literal["exhaust", "repeat"] = "exhaust"
    """Treatment of a terminal state that was evaluated `evaluations` times. exhaust: it is closed. repeat: its value is backed up again."""
    backup: Literal["mean", "max"] = "mean"
    """Q of an action from the values below it: their mean or their maximum."""
    discount: Share = 1.0
    """Factor of a value for each action between it and the decision."""
    merging: Literal["none", "noop", "siblings", "full"] = "siblings"
    """States that count as one. noop: a state and its successor by an action without effect. siblings: also equal successors of one state.
    full: also any equal states."""
    candidates: Literal["best", "sampled"] = "best"
    """Choice of k proposals. best: the likeliest. sampled: drawn by prior."""
    temperature: Temperature = 1.0
    """Temperature of the priors: below 1 they are sharper, above 1 flatter."""
    widening: Scale | None = None
    """Scale of progressive widening: a state has at most `widening * sqrt(visits)` children. None: all proposals at once."""
    final: Literal["visits", "value", "max_robust", "lower_bound"] = "lower_bound"
    """Choice of the committed action. visits: most visits. value: highest Q. max_robust: both, else visits. lower_bound: the highest lower
    confidence bound of Q, one standard error below it."""
    think: Share | None = None
    """Prior from which an action is committed without a search, unless it is presumed to write or the value falls. None: never."""
    enough: Share | None = None
    """Value from which a terminal state, confirmed by an independent evaluation, ends the search. None: never."""
    commit: Literal["replan", "plan"] = "replan"
    """Part of a decision that is committed. replan: one action; then a new search begins. plan: the whole path, until the environment
    differs from the prediction."""
    commit_by: Literal["replay", "fork"] = "replay"
    """Way of committing a decision. replay: the action is taken in the live environment. fork: the environment that search brought to the
    chosen state becomes the live one, if it rolls back."""
    prefetch: AtLeastZero = 1
    """Spare environments, which are brought to the likely next states during model calls, if environments fork."""
    environments: AtLeastZero = 0
    """Environments that a search has open at once, if they fork; at least one for each worker and the spare ones. Those beyond stay in
    their states and are resumed there, which trades memory for restores. 0: workers, spare ones, and one more for each worker but one."""
    breadth: AtLeastOne = 3
    """beam, tot_bfs: states retained at each level. best_of_n: trajectories."""
    limits: ScopeLimits = ScopeLimits()
    """Caps on the search for one committed action."""
    iteration: ScopeLimits = ScopeLimits()
    """Caps on one iteration of the search."""
    options: dict[str, Any] = {}
    """Options that only one algorithm takes, by name: those of docs/search_options.md, or of your own algorithm."""

    @property
    def standing(self) -> int:
        """Environments beyond those of the workers and the spare ones."""
        return max(0, self.environments - self.workers - self.prefetch) if self.environments else self.workers - 1


class GumbelOptions(Strict, frozen=True, kw_only=True):
    """Options of gumbel."""

    considered: AtLeastOne | None = None
    """Actions of the root that the halving begins with. They have the highest sums of noise, log prior and weighted value. None: as many,
    up to 16, as the iterations allow to visit once in each phase."""
    scale: Scale = 0.0
    """Scale of the Gumbel noise on the root's log priors. 0: none, so the likeliest actions are considered. 1: the actions are drawn by
    their priors, as for training."""
    halving: Literal["phases", "visits"] = "phases"
    """Time at which the actions of a phase are chosen. phases: at its beginning; the remaining phases share the remaining iterations.
    visits: at each visit, by the values known then; the length of all phases follows from the first budget, as in mctx."""
    sigma: Literal["noise", "visits"] = "noise"
    """Weight of values beside log priors. noise: one standard error of the most visited action's Q weighs one nat, so a difference that
    noise explains overturns no clear prior. visits: values are scaled to their range, and weigh more with the visits, as in mctx."""
    noise: Scale = 0.1
    """sigma noise: standard deviation of one evaluation, until repeated evaluations measure it. The lower, the sooner a value overturns a
    prior. Below 0.001 it counts as 0.001."""


class FlatHalvingOptions(Strict, frozen=True, kw_only=True):
    """Options of flat_halving."""

    considered: AtLeastOne | None = None
    """Actions of the root that the halving begins with, the likeliest first. None: all."""


class ABMCTSOptions(Strict, frozen=True, kw_only=True):
    """Options of abmcts."""

    belief: Literal["beta", "gaussian"] = "beta"
    """Prior of the values of an action. beta: Beta(0.5, 0.5); a value counts as a fractional success. gaussian: a normal distribution of
    unknown mean and variance."""
    policies: AtLeastOne = 1
    """Policies that propose: `policy`, then those of `arms`. One is drawn for each proposal, by the values that its actions led to. At most
    one more than `arms` has."""
    patience: AtLeastOne = 4
    """Proposals for each action that a state has, and as many for one more, after which the policy is not asked there any more."""


class BeamOptions(Strict, frozen=True, kw_only=True):
    """Options of beam."""

    score: Literal["state", "cumulative"] = "state"
    """Score by which states stay in the beam. state: the state's value. cumulative: the mean value of the states from the root's child to
    it, so that a promising end of a bad path is dropped sooner."""


class TotBFSOptions(Strict, frozen=True, kw_only=True):
    """Options of tot_bfs."""

    rating: Literal["value", "vote"] = "value"
    """Rating by which states are retained. value: each state's value. vote: siblings are compared in one question, and a state scores the
    geometric mean of the shares on its path."""


class TotDFSOptions(Strict, frozen=True, kw_only=True):
    """Options of tot_dfs."""

    threshold: Share = 0.2
    """Value below which a state is not entered. The search goes on in the next best one. 0: all states are entered."""


OPTIONS: Mapping[str, type[Strict]] = MappingProxyType(
    {
        "beam": BeamOptions,
        "tot_bfs": TotBFSOptions,
        "gumbel": GumbelOptions,
        "flat_halving": FlatHalvingOptions,
        "abmcts": ABMCTSOptions,
        "tot_dfs": TotDFSOptions,
    }
)
"""Types of `search.options` by algorithm. The other built-in algorithms take none."""
