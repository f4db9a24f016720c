"""The tasks of the suite: over a text editor, a calculator, a file manager, a terminal, and viewers of pictures and papers."""

from __future__ import annotations

from collections.abc import Mapping

from exact.benchmarks.desktop.calculator import CALCULATOR_TASKS
from exact.benchmarks.desktop.documents import DOCUMENT_TASKS
from exact.benchmarks.desktop.editor import EDITOR_TASKS
from exact.benchmarks.desktop.folders import FOLDER_TASKS
from exact.benchmarks.desktop.infeasible import INFEASIBLE_TASKS
from exact.benchmarks.desktop.problem import Draw

TASKS: Mapping[str, Draw] = {**EDITOR_TASKS, **CALCULATOR_TASKS, **FOLDER_TASKS, **DOCUMENT_TASKS, **INFEASIBLE_TASKS}
"""Tasks by the name in an id: `desktop/write-note?seed=3`."""
