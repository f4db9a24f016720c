"""The algorithms by name, and the translation of a configuration into strategies.

Other packages add algorithms by the entry point group `exact.algorithms`: a name, and a callable that takes a SearchConfig and returns an
Algorithm. A configuration may also name such a callable as `module:attribute` or `file.py:attribute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from exact.config import SearchConfig
from exact.errors import ExactError, UsageError, unknown
from exact.parts import check_part, described, shown
from exact.plugins import attribute, is_plugin
from exact.search.base import Algorithm
from exact.search.mcts import MCTS
from exact.search.rules import backup, candidates, final, select
from exact.search.rules.posterior import Beta, Gaussian

Build = Callable[[SearchConfig], Algorithm]

GROUP = "exact.algorithms"


def algorithm(config: SearchConfig) -> Algorithm:
    """Return the algorithm that a configuration names.

    Raises UsageError for an unknown name, or for an option the algorithm does not take.
    """
    build = BUILTIN.get(config.algorithm)
    if config.batch and config.algorithm not in BATCHING:
        raise UsageError(f"search.batch: {config.algorithm} does not evaluate siblings together; {' and '.join(BATCHING)} do")
    if config.options and config.algorithm in PLAIN:
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

    _known(config, "considered", "scale", "halving", "sigma", "noise")
    options = {**{"sigma": "noise", "halving": "phases", "noise": 0.1, "scale": 0.0}, **config.options}
    sigma, halving = _word(config, options, "sigma", "noise", "visits"), _word(config, options, "halving", "phases", "visits")
    noise, scale = _amount(config, options, "noise"), _amount(config, options, "scale")
    return Gumbel(
        sigma=by_noise(max(noise, 1e-3)) if sigma == "noise" else by_visits(),
        considered=_count(config, "considered"),
        scale=scale,
        halving=halving,
        expansion=config.expansion,
        **_walks(config),
    )


def _flat_halving(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.flat_halving import FlatHalving

    _known(config, "considered")
    return FlatHalving(most=_count(config, "considered"), iterations=config.iterations, **common(config))


def _abmcts(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.abmcts import ABMCTS

    _known(config, "belief", "policies", "patience")
    belief = _word(config, {"belief": "beta", **config.options}, "belief", "beta", "gaussian")
    more = {name: count for name in ("policies", "patience") if (count := _count(config, name)) is not None}
    walks = _walks(config)
    del walks["k"]
    return ABMCTS(belief=Beta() if belief == "beta" else Gaussian(), **more, **walks)


def _word(config: SearchConfig, options: Mapping[str, Any], name: str, *choices: str) -> Any:
    """Return an option that must be one of several words. Raises UsageError."""
    if options[name] not in choices:
        raise UsageError(f"search.options.{name} is {options[name]!r}: {config.algorithm} knows {', '.join(choices)}")
    return options[name]


def _amount(config: SearchConfig, options: Mapping[str, Any], name: str) -> float:
    """Return an option that must be a number of at least 0. Raises UsageError."""
    found = options[name]
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < float("inf"):
        raise UsageError(f"search.options.{name} is {found!r}: {config.algorithm} takes a number of at least 0")
    return float(found)


def _count(config: SearchConfig, name: str) -> int | None:
    """Return an option that must be a whole number of at least 1, or None if it is not given. Raises UsageError."""
    found = config.options.get(name)
    if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 1):
        raise UsageError(f"search.options.{name} is {found!r}: {config.algorithm} takes a whole number of at least 1")
    return found


def common(config: SearchConfig) -> dict[str, Any]:
    """Return the parameters of Work, which every tree-growing algorithm takes. Raises UsageError."""
    if config.temperature <= 0:
        raise UsageError(f"search.temperature is {config.temperature:g}: set it above 0; the closer to it, the surer are the priors")
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


def _choice(config: SearchConfig, name: str, *choices: str) -> Any:
    """Return an option that must be one of several words; by default the first. Raises UsageError."""
    _known(config, name)
    found = config.options.get(name, choices[0])
    if found not in choices:
        raise UsageError(f"search.options.{name} is {found!r}: {config.algorithm} knows {', '.join(choices)}")
    return found


def _share(config: SearchConfig, name: str, default: float) -> float:
    """Return an option that must be a number in [0, 1]. Raises UsageError."""
    _known(config, name)
    found = config.options.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise UsageError(f"search.options.{name} is {found!r}: {config.algorithm} takes a number in [0, 1]")
    return float(found)


def _known(config: SearchConfig, *names: str) -> None:
    """Raise UsageError for an option that the algorithm does not take."""
    for key in config.options:
        if key not in names:
            raise unknown(f"option of {config.algorithm}", key, names)


BATCHING = ("beam", "tot_bfs")
"""Algorithms that can evaluate siblings together."""

PLAIN = ("react", "explorer", "greedy", "mcts", "best_first", "best_of_n")
"""Algorithms without options."""


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

    score = _choice(config, "score", "state", "cumulative")
    return Beam(breadth=config.breadth, batch=config.batch, score=score, **_lookahead(config))


def _tot_bfs(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.tot import TotBFS

    rating = _choice(config, "rating", "value", "vote")
    return TotBFS(breadth=config.breadth, batch=config.batch, rating=rating, **_lookahead(config))


def _tot_dfs(config: SearchConfig) -> Algorithm:
    from exact.search.algorithms.tot import TotDFS

    return TotDFS(threshold=_share(config, "threshold", 0.2), **_lookahead(config))


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
