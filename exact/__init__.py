"""Agents that solve tasks in real browsers and desktops by reflective tree search.

A public name is imported when it is first used, so that `import exact` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.action import Action, ActionSpace, Parameter, Verb
    from exact.agents.base import Policy, ValueFunction
    from exact.benchmarks.base import Suite
    from exact.config import Config
    from exact.context import Context, Evaluation, Proposal, Reflection, Taken
    from exact.environments.base import Capabilities, Environment, EnvironmentFactory, SideEffect, Snapshot, Transition
    from exact.errors import (
        ActionError,
        AnswerError,
        BudgetExceeded,
        EnvironmentFailure,
        EvaluatorError,
        ExactError,
        InfrastructureError,
        JournalError,
        ModelError,
        UncertainCommit,
        UsageError,
    )
    from exact.models.base import ChatModel
    from exact.observation import Element, Observation
    from exact.reflection.base import Memory, Reflector, Surprise
    from exact.search.base import Algorithm
    from exact.search.tree import Node, Tree
    from exact.task import Outcome, Score, Task

__version__ = "0.1.0"

_MODULES = {
    "action": ("Action", "ActionSpace", "Parameter", "Verb"),
    "agents.base": ("Policy", "ValueFunction"),
    "benchmarks.base": ("Suite",),
    "config": ("Config",),
    "context": ("Context", "Evaluation", "Proposal", "Reflection", "Taken"),
    "environments.base": ("Capabilities", "Environment", "EnvironmentFactory", "SideEffect", "Snapshot", "Transition"),
    "errors": (
        "ActionError",
        "AnswerError",
        "BudgetExceeded",
        "EnvironmentFailure",
        "EvaluatorError",
        "ExactError",
        "InfrastructureError",
        "JournalError",
        "ModelError",
        "UncertainCommit",
        "UsageError",
    ),
    "models.base": ("ChatModel",),
    "observation": ("Element", "Observation"),
    "reflection.base": ("Memory", "Reflector", "Surprise"),
    "search.base": ("Algorithm",),
    "search.tree": ("Node", "Tree"),
    "task": ("Outcome", "Score", "Task"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action",
    "ActionError",
    "ActionSpace",
    "Algorithm",
    "AnswerError",
    "BudgetExceeded",
    "Capabilities",
    "ChatModel",
    "Config",
    "Context",
    "Element",
    "Environment",
    "EnvironmentFactory",
    "EnvironmentFailure",
    "Evaluation",
    "EvaluatorError",
    "ExactError",
    "InfrastructureError",
    "JournalError",
    "Memory",
    "ModelError",
    "Node",
    "Observation",
    "Outcome",
    "Parameter",
    "Policy",
    "Proposal",
    "Reflection",
    "Reflector",
    "Score",
    "SideEffect",
    "Snapshot",
    "Suite",
    "Surprise",
    "Taken",
    "Task",
    "Transition",
    "Tree",
    "UncertainCommit",
    "UsageError",
    "ValueFunction",
    "Verb",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'exact' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"exact.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
