"""Where the package `webarena-verified` is: its data set, and the interpreter that runs its evaluators."""

from __future__ import annotations

import os
from pathlib import Path

from exact.benchmarks.webarena.wheel import Wheel, task_file
from exact.errors import UsageError
from exact.hints import environment_for, set_up

VARIABLE = "EXACT_WEBARENA_VERIFIED"
"""Environment variable with a virtual environment that has the package, or its Python."""
_OURS = Path(__file__).parents[3] / ".bench" / "venvs" / "webarena-verified"
"""Virtual environment of a source tree: shells/setup.sh --webarena-verified."""
_MODULE = "webarena_verified"
TASKS, HARD = "assets/dataset/webarena-verified.json", "assets/dataset/subsets/webarena-verified-hard.json"
"""The data set in the package, and the numbers of its hard tasks."""
_WHEEL = Wheel("webarena-verified", "1.2.3", _MODULE, TASKS, "EXACT_WEBARENA_VERIFIED_TASKS", (HARD,))


def interpreter() -> Path:
    """Return the Python that has the evaluators: the one of EXACT_WEBARENA_VERIFIED, else the source tree's.

    Raises UsageError with the ways to get it.
    """
    said = os.environ.get(VARIABLE)
    place = Path(said).expanduser().absolute() if said else _OURS
    python = place if place.is_file() else place / "bin" / "python"
    if _package(python):
        return python
    if said:
        raise UsageError(f"{VARIABLE} is {said}, which has no webarena-verified: run `pip install webarena-verified` there, or unset it")
    raise UsageError(
        "the evaluators of webarena_verified are not installed: "
        + set_up(
            f"--webarena-verified, or run `pip install webarena-verified` in a virtual environment and set {VARIABLE} to it",
            environment_for("webarena-verified", VARIABLE),
        )
    )


def data_set() -> Path:
    """Return the folder of the package that has the data set: beside the evaluators, else unpacked from its wheel. Raises UsageError."""
    try:
        python = interpreter()
    except UsageError:
        if os.environ.get(VARIABLE):
            raise
        return task_file(_WHEEL).parents[TASKS.count("/")]
    folder = _package(python)
    assert folder is not None
    return folder


def _package(python: Path) -> Path | None:
    """Return the folder of the package in the virtual environment of a Python; None where there is none."""
    found = python.parents[1].glob(f"lib/python3*/site-packages/{_MODULE}/{TASKS}") if os.access(python, os.X_OK) else ()
    return next((path.parents[TASKS.count("/")] for path in found), None)
