"""Solved steps that a policy's prompt shows: data, not code."""

from __future__ import annotations

from pathlib import Path

import msgspec

from exact.errors import UsageError


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One right step of another task."""

    goal: str
    observation: str
    thought: str
    action: str
    """In the environment's grammar: `click [3]`."""


def load_examples(path: str) -> tuple[Example, ...]:
    """The examples in a YAML file, in order. Raises UsageError."""
    import yaml

    try:
        data = yaml.safe_load(Path(path).read_text("utf-8"))
        return msgspec.convert(data, tuple[Example, ...])
    except OSError as error:
        raise UsageError(f"cannot read examples {path}: {error.strerror}") from error
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} holds no list of examples: {' '.join(str(error).split())}") from error
