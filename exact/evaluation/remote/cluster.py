"""The cluster: a Ray on this machine alone, or nodes that run already; and their resources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from exact.errors import UsageError

KINDS = ("browser", "desktop")
"""Resources that nodes declare: how many attempts with a browser, and with a desktop, they run at once."""

KEPT, MOST_KEPT = "num_workers_soft_limit", 64
"""Ray's setting for the idle processes that a node keeps for later attempts, and its value. By default it keeps one a processor.

An attempt waits for models most of the time, so more of them run at once, and each new process takes seconds of a processor.
"""


def ray_module() -> Any:
    """Return Ray's module. Raises UsageError if it is not installed."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise UsageError("Ray is not installed: run `pip install 'exact-agent[ray]'`, or use the local engine") from error
    return ray


@contextmanager
def connected(address: str | None, here: Mapping[str, float]) -> Iterator[Any]:
    """Yield Ray, connected while the block runs. A connection that this process has already is used, and stays.

    `address`: `auto`, `ray://HOST:PORT` or `HOST:PORT`; None for $RAY_ADDRESS, and without it for a Ray on this machine alone, which
    declares the resources of `here`. Raises UsageError if no cluster is reached.
    """
    ray, address = ray_module(), address or os.environ.get("RAY_ADDRESS")
    if ray.is_initialized():
        yield ray
        return
    if address is None:
        ray.init(include_dashboard=False, log_to_driver=False, resources=dict(here), _system_config={KEPT: MOST_KEPT})
    else:
        _join(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _join(ray: Any, address: str) -> None:
    """Connect to a cluster. Raises UsageError if none is reached.

    Ray starts a separate server for its client. A busy head gives that up after 30 s, and is then asked again.
    """
    for left in reversed(range(_TRIES)):
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            ray.shutdown()
            if left and isinstance(error, ConnectionAbortedError):
                continue
            text = " ".join(str(error).split())[:200]
            raise UsageError(f"no cluster at {address} ({text}): start one with `exact cluster up`, or give another --address") from error
        return


_TRIES = 3
"""Times that a busy head is asked for a connection."""


def room(ray: Any, needs: Mapping[str, float]) -> int:
    """Return how many attempts that need this much the cluster runs at once, on all nodes together."""
    return sum(holds(node["Resources"], needs) for node in ray.nodes() if node["Alive"])


def holds(held: Mapping[str, float], needs: Mapping[str, float]) -> int:
    """Return how many attempts one node runs at once."""
    return int(min(held.get(_NAMES.get(name, name), 0.0) / amount for name, amount in needs.items()))


_NAMES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}
"""Ray's names of resources."""
