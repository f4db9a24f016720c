"""Agents that a benchmark knows by name: the built-in agent, which needs no model, with each search, and controls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from exact.config import Config, load
from exact.documents import read_yaml
from exact.errors import unknown

_NO_REFLECTION = {"kind": "none"}
_SEARCH = {"iterations": 32, "k": 12, "c": 1.0, "backup": "max", "discount": 0.97, "revisit": "repeat"}
_LOOKAHEAD = {"iterations": 32, "k": 12, "backup": "max", "discount": 0.97}

AGENTS: Mapping[str, Mapping[str, Any]] = {
    "react": {"search": {"algorithm": "react"}, "reflection": _NO_REFLECTION},
    "best_of_n": {"search": {"algorithm": "best_of_n", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "best_first": {"search": {"algorithm": "best_first", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "tot": {"search": {"algorithm": "tot_bfs", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "mcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": _NO_REFLECTION},
    "rmcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": {"kind": "builtin"}},
    "random": {"search": {"algorithm": "react"}, "policy": {"kind": "random"}, "reflection": _NO_REFLECTION},
    "filter": {"search": {"algorithm": "greedy", "k": 12}, "reflection": _NO_REFLECTION},
    "constant": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "constant"}, "reflection": _NO_REFLECTION},
    "oracle": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "oracle"}, "reflection": _NO_REFLECTION},
}
"""Configurations by name.

`react`: no search. `best_of_n`: whole trajectories. `best_first`, `tot`: the searches of Koh et al. and Yao et al. `mcts`: PUCT. `rmcts`:
`mcts` with reflections.

Controls: `random`: a random action. `filter`: `react`, with each action tried and evaluated before it is committed. `constant`: `mcts` with
the same value for every state. `oracle`: `mcts` whose value function is the benchmark's evaluator.
"""


def agent_config(spec: str, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration that `spec` names: a YAML file, or a name in AGENTS. Raises UsageError for any other.

    A configuration without a `name` takes the stem of its file.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        config = load(path, overrides)
        unnamed = "name" not in (read_yaml(path) or {})
        return msgspec.structs.replace(config, name=path.stem) if unnamed else config
    if spec not in AGENTS:
        raise unknown("agent", spec, AGENTS, way_out="(or give the path of a YAML file)")
    return load(None, [f"name={spec}", *(f"{key}={json.dumps(value)}" for key, value in AGENTS[spec].items()), *overrides])
