"""The algorithms by name, and the translation of a configuration into strategies.

Other packages add algorithms by the entry point group `exact.algorithms`: a name, and a callable that takes a SearchConfig and returns an
Algorithm. A configuration may also name such a callable as `module:attribute` or `file.py:attribute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, TypeVar

import msgspec

from exact.config import SearchConfig
from exact.config.ranges import refusal
from exact.config.search import OPTIONS, ABMCTSOptions, BeamOptions, FlatHalvingOptions, GumbelOptions, TotBFSOptions, TotDFSOptions
from exact.errors import ExactError, UsageError, unknown
from exact.parts import check_part, described, shown
from exact.plugins import attribute, is_plugin
from exact.search.base import Algorithm
from exact.search.mcts import MCTS
from exact.search.rules import backup, candidates, final, select
from exact.search.rules.posterior import Beta, Gaussian

Build = Callable[[SearchConfig], Algorithm]
T = TypeVar("T", bound=msgspec.Struct)

GROUP = "exact.algorithms"


def algorithm(config: SearchConfig) -> Algorithm:
    """Return the algorithm that a configuration names.

    Raises UsageError for an unknown name, a setting outside of its range, or an option that the algorithm does not take.
    """
    build, settings = BUILTIN.get(config.algorithm), msgspec.structs.asdict(config)
    try:  # a configuration that was not parsed was not checked
        msgspec.convert(settings, SearchConfig)
    except msgspec.ValidationError as error:
        raise UsageError(refusal(error, settings, SearchConfig, "search.")) from error
    if config.batch and config.algorithm not in BATCHING:
        raise UsageError(f"search.batch: {config.algorithm} does not evaluate siblings together; {' and '.join(BATCHING)} do")
    if config.options and config.algorithm in BUILTIN and config.algorithm not in OPTIONS:
        raise UsageError(f"search.options: {config.algorithm} takes none, but got {', '.join(config.options)}")
    return build(config) if build else _made(config)


def names() -> list[str]:
    """Return the names of all algorithms: built-in ones, then those of other packages."""
    return [*BUILTIN, *(entry.name for entry in entry_points(group=GROUP) if entry.name not in BUILTIN)]


def _made(config: SearchConfig) -> Algorithm:
    """Return the algorithm that a factory of another package makes. Raises UsageError."""
    key, build = f"search.algorithm: {config.algorithm}", _brought(config.algorithm)
    try:
        made = build(config)
    except ExactError:
        raise
    except Exception as error:
        raise UsageError(f"{key} cannot be made from a SearchConfig: {described(error)}") from error
    check_part(key, made, "ask", "tell", "release", "forecast", "advance", "refuse", "decide", verb="gives")
    if not isinstance(getattr(made, "simulates", None), bool):
        raise UsageError(f"{key} gives {shown(made)}, whose simulates is not set: set it to True or False")
    return made


def _brought(name: str) -> Build:
    """Return the factory that another package registered under a name, or that `module:attribute` names. Raises UsageError."""
    if is_plugin(name):
        own: Build = attribute("search.algorithm", name, GROUP)
        return own
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            build: Build = entry.load()
            return build
    raise unknown("search algorithm", name, names())


def _mcts(config: SearchConfig) -> Algorithm:
    return MCTS(
        iterations=config.iterations,
        depth=config.depth,
        rule=rule(config),
        final=final_choice(config),
        expansion=config.expansion,
        revisit=config.revisit,
        think=config.think,
        enough=config.enough,
        plan=config.commit == "plan",
        widening=config.widening,
        reevaluations=config.reevaluations or 0,
        **common(config),
    )


def _walks(config: SearchConfig) -> dict[str, Any]:
    """Return the parameters that `gumbel` and `abmcts` share with `mcts`."""
    return {
        "iterations": config.iterations,
        "depth": config.depth,
        "revisit": config.revisit,
        "think": config.think,
        "enough": config.enough,
        "plan": config.commit == "plan",
        "reevaluations": config.reevaluations or 0,
        **common(config),
    }


def _gumbel(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.gumbel import Gumbel
    from exact.search.rules.improve import by_noise, by_visits

    options = _options(config, GumbelOptions)
    return Gumbel(
        sigma=by_noise(max(options.noise, 1e-3)) if options.sigma == "noise" else by_visits(),
        considered=options.considered,
        scale=options.scale,
        halving=options.halving,
        expansion=config.expansion,
        **_walks(config),
    )


def _flat_halving(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.flat_halving import FlatHalving

    return FlatHalving(most=_options(config, FlatHalvingOptions).considered, iterations=config.iterations, **common(config))


def _abmcts(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.abmcts import ABMCTS

    options, walks = _options(config, ABMCTSOptions), _walks(config)
    del walks["k"]
    belief = Beta() if options.belief == "beta" else Gaussian()
    return ABMCTS(belief=belief, policies=options.policies, patience=options.patience, **walks)


def _options(config: SearchConfig, kind: type[T]) -> T:
    """Return `search.options` as an algorithm's own type. Raises UsageError for an unknown option, or a value that does not fit."""
    known = [field.name for field in msgspec.structs.fields(kind)]
    for key in config.options:
        if key not in known:
            raise unknown(f"option of {config.algorithm}", key, known)
    try:
        return msgspec.convert(config.options, kind)
    except msgspec.ValidationError as error:
        raise UsageError(refusal(error, config.options, kind, "search.options.")) from error


def common(config: SearchConfig) -> dict[str, Any]:
    """Return the parameters of Work, which every tree-growing algorithm takes."""
    return {
        "k": config.k,
        "retries": config.retries,
        "evaluations": config.evaluations or 1,
        "backup": backup.mean if config.backup == "mean" else backup.discounted(config.discount),
        "discount": config.discount,
        "merging": config.merging,
        "candidates": {"best": candidates.best, "sampled": candidates.sampled}[config.candidates],
        "temperature": config.temperature,
    }


def rule(config: SearchConfig) -> select.SelectionRule:
    """Return the selection rule that a configuration describes."""
    return select.rule(
        {"puct": select.PUCT, "uct": select.UCT, "muzero": select.MUZERO}[config.explore],
        c=config.c,
        first_play=FIRST_PLAY[config.first_play],
        disagreement_bonus=config.disagreement_bonus,
    )


FIRST_PLAY: Mapping[str, select.FirstPlay] = {
    "parent": select.parent_value,
    "mean": select.parent_mean,
    "zero": select.zero,
    "lowest": select.lowest,
}


def final_choice(config: SearchConfig) -> final.FinalChoice:
    """Return the final choice that a configuration names."""
    choices = {"visits": final.VISITS, "value": final.VALUE, "max_robust": final.MAX_ROBUST, "lower_bound": final.LOWER_BOUND}
    return choices[config.final]


def _lookahead(config: SearchConfig) -> dict[str, Any]:
    """Return the parameters of the searches for one good state."""
    return {
        "iterations": config.iterations,
        "depth": config.depth,
        "plan": config.commit == "plan",
        "enough": config.enough,
        **common(config),
    }


BATCHING = ("beam", "tot_bfs")
"""Algorithms that can evaluate siblings together."""


def _react(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.react import React

    return React(retries=config.retries)


def _greedy(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.greedy import Greedy

    return Greedy(k=config.k, retries=config.retries, merging=config.merging)


def _best_first(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.best_first import BestFirst

    return BestFirst(**_lookahead(config))


def _best_of_n(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.best_of_n import BestOfN

    return BestOfN(n=config.breadth, **_lookahead(config))


def _beam(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.beam import Beam

    score = _options(config, BeamOptions).score
    return Beam(breadth=config.breadth, batch=config.batch, score=score, **_lookahead(config))


def _tot_bfs(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.tot import TotBFS

    rating = _options(config, TotBFSOptions).rating
    return TotBFS(breadth=config.breadth, batch=config.batch, rating=rating, **_lookahead(config))


def _tot_dfs(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.tot import TotDFS

    return TotDFS(threshold=_options(config, TotDFSOptions).threshold, **_lookahead(config))


BUILTIN: dict[str, Build] = {
    "react": _react,
    "explorer": _react,
    "greedy": _greedy,
    "mcts": _mcts,
    "best_first": _best_first,
    "best_of_n": _best_of_n,
    "beam": _beam,
    "tot_bfs": _tot_bfs,
    "gumbel": _gumbel,
    "flat_halving": _flat_halving,
    "abmcts": _abmcts,
    "tot_dfs": _tot_dfs,
}
