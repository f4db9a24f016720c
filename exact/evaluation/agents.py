"""Agents that a benchmark knows by name: the embedded one, which needs no model, under each search, and controls of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from exact.config import Config, load
from exact.errors import unknown

_PLAIN = {"kind": "none"}
_SEARCH = {"iterations": 32, "k": 12, "c": 1.0, "backup": "max", "discount": 0.97, "revisit": "repeat"}
_LOOK = {"iterations": 32, "k": 12, "backup": "max", "discount": 0.97}

AGENTS: Mapping[str, Mapping[str, Any]] = {
    "react": {"search": {"algorithm": "react"}, "reflection": _PLAIN},
    "best_of_n": {"search": {"algorithm": "best_of_n", **_LOOK}, "reflection": _PLAIN},
    "best_first": {"search": {"algorithm": "best_first", **_LOOK}, "reflection": _PLAIN},
    "tot": {"search": {"algorithm": "tot_bfs", **_LOOK}, "reflection": _PLAIN},
    "mcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": _PLAIN},
    "rmcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": {"kind": "builtin"}},
    "random": {"search": {"algorithm": "react"}, "policy": {"kind": "random"}, "reflection": _PLAIN},
    "filter": {"search": {"algorithm": "greedy", "k": 12}, "reflection": _PLAIN},
    "constant": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "constant"}, "reflection": _PLAIN},
    "oracle": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "oracle"}, "reflection": _PLAIN},
}
"""react: no search. best_of_n: whole trajectories. best_first, tot: Koh's and Yao's searches. mcts: PUCT. rmcts: mcts with lessons.

Controls: random: any action. filter: react, each action tried and judged before it is taken. constant: mcts with the same value for
everything. oracle: mcts that is told the verdict."""


def agent_config(spec: str, overrides: Iterable[str] = ()) -> Config:
    """The configuration that `--agent` names: a YAML file, or a name above. Raises UsageError.

    A file that gives no `name` is called as the file is.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        config = load(path, overrides)
        unnamed = "name" not in (yaml.safe_load(path.read_text("utf-8")) or {})
        return msgspec.structs.replace(config, name=path.stem) if unnamed else config
    if spec not in AGENTS:
        raise unknown("agent", spec, AGENTS, way_out="(or give the path of a YAML file)")
    return load(None, [f"name={spec}", *(f"{key}={json.dumps(value)}" for key, value in AGENTS[spec].items()), *overrides])
