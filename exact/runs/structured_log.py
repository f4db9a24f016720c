"""A structured log of attempts: one JSON object a line, for collectors of logs.

The environment variable EXACT_LOG names a file, to which all processes append, or `-` for standard error. Lines hold names, numbers and
kinds only: no text of a page, a prompt or an answer. Warnings of this package stand in it too.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from exact.errors import UsageError
from exact.runs.journal import events as ev
from exact.runs.telemetry import LOG, verb_of
from exact.text import inert


class AttemptLogger:
    """A listener to the journal of one attempt."""

    def __init__(self, agent: str, task: str) -> None:
        self._named = {"agent": agent, "task": task}

    def __call__(self, event: ev.AnyEvent) -> None:
        """Write a line about an event that has just been written, if it is one of those that are logged."""
        match event:
            case ev.Opened() | ev.Resumed():
                write("info", type(event).__name__.lower(), **self._named)
            case ev.Called():
                cost = {} if event.usage.cost is None else {"cost": event.usage.cost}
                tokens = {"input_tokens": event.usage.input_tokens, "output_tokens": event.usage.output_tokens}
                write("debug", "called", **self._named, node=event.node, role=event.role, seconds=event.seconds, **tokens, **cost)
            case ev.Arrived():
                write("debug", "arrived", **self._named, node=event.node, route=event.route, match=event.match, seconds=event.seconds)
            case ev.Committed():
                refused = {"refused": True} if event.refused else {}
                write("info", "committed", **self._named, step=event.step, action=verb_of(event.action), **refused)
            case ev.Failed():
                write("warning", "failed", **self._named, node=event.node, what=event.what)
            case ev.Scored():
                write("info", "scored", **self._named, score=event.score.value)
            case ev.Finished():
                level = "error" if event.status == "failed" else "info"
                missing = {"missing": event.missing} if event.missing else {}
                write(level, "finished", **self._named, status=event.status, **missing)
            case _:
                pass


def write(level: str, event: str, **fields: Any) -> None:
    """Append a whole line to the log. What cannot be written any more is left out: a full disk ends no attempt."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event, "process": os.getpid(), **fields}
    with suppress(OSError):
        _append(msgspec.json.encode(line) + b"\n")


@contextmanager
def logging_attempts() -> Iterator[None]:
    """Check that the log can be written, and write this package's warnings to it while the block runs. Raises UsageError."""
    try:
        _append(b"")
    except OSError as error:
        raise UsageError(f"{LOG}={os.environ[LOG]}: {error.strerror}: name a file that can be written, or - for standard error") from error
    handler, logger = _WarningHandler(logging.WARNING), logging.getLogger("exact")
    if not any(isinstance(each, _WarningHandler) for each in logger.handlers):  # another run of this process may have begun
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _append(data: bytes) -> None:
    if (target := os.environ[LOG]) == "-":
        sys.stderr.write(data.decode())
        sys.stderr.flush()
        return
    file = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)  # no wait for a pipe's reader
    try:
        os.write(file, data)
    finally:
        os.close(file)


class _WarningHandler(logging.Handler):
    """Writes records as lines."""

    def emit(self, record: logging.LogRecord) -> None:
        write(record.levelname.lower(), "warning", logger=record.name, message=inert(record.getMessage())[:2000])
