"""Version and folder of the package, for modules that must not import the public names.

Commands to run if a part is missing: those of a clone in a clone, and those of an installed package elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

__version__ = "0.2.0"
PACKAGE = Path(__file__).parent
"""Folder of the package."""


FIX = "run `exact doctor --fix`"
"""Way to get the parts that `exact doctor` can install by itself."""


def clone() -> Path | None:
    """Return the folder of the clone that this package is imported from; None if it was installed from a wheel."""
    root = Path(__file__).parents[1]
    return root if (root / "shells" / "setup.sh").is_file() else None


def set_up(option: str, otherwise: str) -> str:
    """Return the way to get an optional part. `option`: of shells/setup.sh; `otherwise`: the way without a clone, as a command."""
    return f"run shells/setup.sh {option}".rstrip() if clone() else otherwise


def with_apt(*packages: str, otherwise: str = "") -> str:
    """Return the way to install programs on this system. `otherwise`: the way on systems that are not Linux."""
    return otherwise if otherwise and sys.platform != "linux" else f"apt-get install {' '.join(packages)}"


def system_lacks() -> str:
    """Return one line on the features of Linux that this system lacks; empty on Linux."""
    if sys.platform == "linux":
        return ""
    forks = "environments do not fork (states are restored by replay), and there are no desktops"
    if sys.platform == "win32":
        return f"exact is not tested on Windows: {forks}; services and guests of a killed run may stay, and nothing asks on the terminal"
    return f"exact is not tested on {sys.platform}: {forks}"


def environment_for(packages: str, variable: str) -> str:
    """Return the way to install packages apart from exact, whose dependencies they do not fit, and to name their place in a variable."""
    folder = variable.removeprefix("EXACT_").lower().replace("_", "-")
    return f"install them apart: python -m venv {folder} && {folder}/bin/pip install {packages}, then set {variable}={folder}"
