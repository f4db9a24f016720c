"""A real llama.cpp server for tests, with a model of 135 million parameters: how it behaves is tested, not how well it answers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from exact.config import ModelConfig

SLOTS, CONTEXT = 2, 4096


def program() -> ModuleType:
    """Return bench/_llamacpp.py; the test is skipped where the server is not installed."""
    name = "bench_llamacpp"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "bench" / "_llamacpp.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    module = sys.modules[name]
    if not module.available():
        pytest.skip(module.MISSING)
    return module


@contextmanager
def running(port: int = 0) -> Iterator[Any]:
    with program().serving(slots=SLOTS, context=CONTEXT, port=port) as server:
        yield server


def config(base_url: str, **fields: Any) -> ModelConfig:
    """Return the configuration of the served model."""
    given = {"model": "local", "provider": "llamacpp", "base_url": base_url, "max_tokens": 8, "timeout": 120.0, "retries": 0}
    return ModelConfig(**(given | fields))
