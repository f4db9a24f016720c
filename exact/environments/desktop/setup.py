"""Requirements of a task on a desktop: applications, files, and conditions on the outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from exact.errors import UsageError
from exact.observation import Element


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Condition on the outcome: on a file of the home folder, on a visible element, or on the answer."""

    file: str = ""
    element: str = ""
    """Role, then its name if that matters: `textbox` or `button Save`."""
    kind: Literal["text", "folder", "none"] = "text"
    """Expected content of the path `file`: a file whose text is compared, a folder, or nothing."""
    answer: bool = False
    equals: str | None = None
    """Whole text, except white space at its ends."""
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Setup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Desktop of a task, from the JSON object `desktop` of its private part."""

    applications: tuple[tuple[str, ...], ...] = ()
    """Program and arguments of each, started in this order; a leading `~` is the home folder, in which they work."""
    files: dict[str, str] = {}
    """Texts by their paths in the home folder."""
    checks: tuple[Check, ...] = ()
    """Conditions that must all hold for success. None: the task has no evaluator."""
    infeasible: bool = False
    """Whether the task cannot be done: then the action `fail` at the end is the success, and nothing else is."""
    sandboxed: bool = False
    """Whether it is refused outside a sandbox, because its programs could change this machine."""
    seconds: float = 20.0
    """Maximum seconds until an application shows a window."""


def declared(private: dict[str, object]) -> Setup:
    """Return the set-up in a task's private part. Raises UsageError."""
    try:
        setup = msgspec.json.decode(str(private.get("desktop") or "{}"), type=Setup)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the task's `desktop` cannot be read: {error}: write JSON with applications, files and checks") from error
    for path in [*setup.files, *(check.file for check in setup.checks)]:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise UsageError(f"{path!r} is outside the home folder: write a path that begins there")
    return setup


def failure(check: Check, home: Path, elements: Sequence[Element], answer: str | None) -> str:
    """Return the reason if a condition does not hold; empty if it does."""
    if check.file:
        path = home / check.file
        if check.kind != "text":
            kind = "folder" if path.is_dir() else "file" if path.exists() else "none"
            return "" if kind == check.kind else f"{check.file} is {'not there' if kind == 'none' else f'a {kind}'}"
        if not path.is_file():
            return f"there is no file {check.file}"
        return _differs(check, f"file {check.file}", path.read_text("utf-8", "replace"))
    if check.answer:
        return _differs(check, "the answer", answer or "")
    role, _, name = check.element.partition(" ")
    found = [each for each in elements if each.role == role and (not name or each.name == name)]
    if not found:
        return f"there is no {check.element}"
    reasons = [_differs(check, check.element, each.value if each.value is not None else each.name) for each in found]
    return "" if "" in reasons else reasons[0]


def _differs(check: Check, what: str, text: str) -> str:
    if check.equals is not None and text.strip() != check.equals.strip():
        return f"{what} is {_short(text)}"
    for part in check.contains:
        if part not in text:
            return f"{what} lacks {_short(part)}"
    for part in check.lacks:
        if part in text:
            return f"{what} still has {_short(part)}"
    return ""


def _short(text: str) -> str:
    return repr(re.sub(r"\s+", " ", text.strip())[:60])
