"""Solved example steps that a policy's prompt shows, loaded from YAML."""

from __future__ import annotations

from pathlib import Path

import msgspec

from exact.documents import read_yaml
from exact.errors import UsageError


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One correct step of another task."""

    goal: str
    observation: str
    thought: str
    action: str
    """Action text in the environment's grammar, such as `click [3]`."""


def load_examples(path: str) -> tuple[Example, ...]:
    """Return the examples in a YAML file, in order.

    Raises UsageError if the file cannot be read or holds no list of examples.
    """
    try:
        return msgspec.convert(read_yaml(Path(path)), tuple[Example, ...])
    except OSError as error:
        raise UsageError(f"cannot read examples {path}: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} holds no list of examples: {' '.join(str(error).split())}") from error
