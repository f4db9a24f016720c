"""Agents that solve tasks in real browsers and desktops by reflective tree search.

A public name is imported when it is first used, so that `import exact` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.action import Action, ActionSpace, Parameter, Verb
    from exact.agents.agent import Agent
    from exact.agents.base import Policy, ValueFunction
    from exact.agents.value.controls import RewardValue
    from exact.benchmarks.base import Suite
    from exact.config import Config, SearchConfig, ToolConfig
    from exact.context import Context, Evaluation, Proposal, Reflection, Taken
    from exact.environments.base import (
        BaseEnvironment,
        Capabilities,
        Environment,
        EnvironmentFactory,
        ForkableFactory,
        RewardSource,
        SideEffect,
        Snapshot,
        StateChanged,
        Transition,
    )
    from exact.environments.browser.reading import PageView
    from exact.environments.tools.tool import tool
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
        PartError,
        ToolError,
        UncertainCommit,
        UsageError,
    )
    from exact.library.extract import extract
    from exact.library.goal import WorstCase, estimate
    from exact.library.make import TaskEnvironment, make
    from exact.library.run import Run, Runner, open_run
    from exact.library.search import search, search_sync
    from exact.library.session import Point, Session, session
    from exact.library.solve import Solution, solve, solve_sync
    from exact.library.solving import SolvingEvent, solve_many, solving
    from exact.models.base import ChatModel
    from exact.observation import Element, Observation
    from exact.reflection.base import Memory, Reflector, Surprise
    from exact.search.algorithms.abmcts import ABMCTS
    from exact.search.algorithms.beam import Beam
    from exact.search.algorithms.best_first import BestFirst
    from exact.search.algorithms.best_of_n import BestOfN
    from exact.search.algorithms.flat_halving import FlatHalving
    from exact.search.algorithms.greedy import Greedy
    from exact.search.algorithms.gumbel import Gumbel
    from exact.search.algorithms.react import React
    from exact.search.algorithms.tot import TotBFS, TotDFS
    from exact.search.base import (
        Algorithm,
        Batched,
        Compared,
        Decision,
        Diverged,
        Done,
        Failure,
        Proposed,
        Rolled,
        Selection,
        Stepped,
        Valued,
        Wait,
    )
    from exact.search.mcts import MCTS
    from exact.search.tree import Edge, Node, Tree
    from exact.task import Outcome, Score, Task
    from exact.version import __version__

_MODULES = {
    "action": (
        "Action",
        "ActionSpace",
        "Parameter",
        "PartError",
        "Verb",
    ),
    "agents.agent": ("Agent",),
    "agents.base": (
        "Policy",
        "ValueFunction",
    ),
    "agents.value.controls": ("RewardValue",),
    "benchmarks.base": ("Suite",),
    "config": (
        "Config",
        "SearchConfig",
        "ToolConfig",
    ),
    "context": (
        "Context",
        "Evaluation",
        "Proposal",
        "Reflection",
        "Taken",
    ),
    "environments.base": (
        "BaseEnvironment",
        "Capabilities",
        "Environment",
        "EnvironmentFactory",
        "ForkableFactory",
        "RewardSource",
        "SideEffect",
        "Snapshot",
        "StateChanged",
        "Transition",
    ),
    "environments.browser.reading": ("PageView",),
    "environments.tools.tool": ("tool",),
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
        "PartError",
        "ToolError",
        "UncertainCommit",
        "UsageError",
    ),
    "library.extract": ("extract",),
    "library.goal": (
        "WorstCase",
        "estimate",
    ),
    "library.make": (
        "TaskEnvironment",
        "make",
    ),
    "library.run": (
        "Run",
        "Runner",
        "open_run",
    ),
    "library.search": (
        "search",
        "search_sync",
    ),
    "library.session": (
        "Point",
        "Session",
        "session",
    ),
    "library.solve": (
        "Solution",
        "solve",
        "solve_sync",
    ),
    "library.solving": (
        "SolvingEvent",
        "solve_many",
        "solving",
    ),
    "models.base": ("ChatModel",),
    "observation": (
        "Element",
        "Observation",
    ),
    "reflection.base": (
        "Memory",
        "Reflector",
        "Surprise",
    ),
    "search.algorithms.abmcts": ("ABMCTS",),
    "search.algorithms.beam": ("Beam",),
    "search.algorithms.best_first": ("BestFirst",),
    "search.algorithms.best_of_n": ("BestOfN",),
    "search.algorithms.flat_halving": ("FlatHalving",),
    "search.algorithms.greedy": ("Greedy",),
    "search.algorithms.gumbel": ("Gumbel",),
    "search.algorithms.react": ("React",),
    "search.algorithms.tot": (
        "TotBFS",
        "TotDFS",
    ),
    "search.base": (
        "Algorithm",
        "Batched",
        "Compared",
        "Decision",
        "Diverged",
        "Done",
        "Failure",
        "Proposed",
        "Rolled",
        "Selection",
        "Stepped",
        "Valued",
        "Wait",
    ),
    "search.mcts": ("MCTS",),
    "search.tree": (
        "Edge",
        "Node",
        "Tree",
    ),
    "task": (
        "Outcome",
        "Score",
        "Task",
    ),
    "version": ("__version__",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ABMCTS",
    "Action",
    "ActionError",
    "ActionSpace",
    "Agent",
    "Algorithm",
    "AnswerError",
    "BaseEnvironment",
    "Batched",
    "Beam",
    "BestFirst",
    "BestOfN",
    "BudgetExceeded",
    "Capabilities",
    "ChatModel",
    "Compared",
    "Config",
    "Context",
    "Decision",
    "Diverged",
    "Done",
    "Edge",
    "Element",
    "Environment",
    "EnvironmentFactory",
    "EnvironmentFailure",
    "Evaluation",
    "EvaluatorError",
    "ExactError",
    "Failure",
    "FlatHalving",
    "ForkableFactory",
    "Greedy",
    "Gumbel",
    "InfrastructureError",
    "JournalError",
    "MCTS",
    "Memory",
    "ModelError",
    "Node",
    "Observation",
    "Outcome",
    "PageView",
    "Parameter",
    "PartError",
    "Point",
    "Policy",
    "Proposal",
    "Proposed",
    "React",
    "Reflection",
    "Reflector",
    "RewardSource",
    "RewardValue",
    "Rolled",
    "Run",
    "Runner",
    "Score",
    "SearchConfig",
    "Selection",
    "Session",
    "SideEffect",
    "Snapshot",
    "Solution",
    "SolvingEvent",
    "StateChanged",
    "Stepped",
    "Suite",
    "Surprise",
    "Taken",
    "Task",
    "TaskEnvironment",
    "ToolConfig",
    "ToolError",
    "TotBFS",
    "TotDFS",
    "Transition",
    "Tree",
    "UncertainCommit",
    "UsageError",
    "ValueFunction",
    "Valued",
    "Verb",
    "Wait",
    "WorstCase",
    "__version__",
    "estimate",
    "extract",
    "make",
    "open_run",
    "search",
    "search_sync",
    "session",
    "solve",
    "solve_many",
    "solve_sync",
    "solving",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'exact' has no attribute {name!r}")
    if name == "search":  # the package of that name, which is a function too
        return importlib.import_module("exact.search")
    value = getattr(importlib.import_module(f"exact.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
