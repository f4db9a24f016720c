"""Stderr of a guest: the last lines for messages, and all of it for the log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from exact.inert import inert

_LINES, _LONGEST, _LOGGED, _ENDLESS = 200, 500, 16 << 20, 1 << 20
"""Lines retained for messages, and characters of each; bytes of a guest that are logged; bytes after which a line is cut."""

_logger = logging.getLogger("exact.guest")
_LOG: ContextVar[Path | None] = ContextVar("guest log", default=None)
_SCRUB: ContextVar[Callable[[str], str]] = ContextVar("guest log's scrubber", default=str)


@contextmanager
def log_stderr_to(path: Path, scrub: Callable[[str], str] = str) -> Iterator[None]:
    """Log the stderr of all guests started inside the block, and given no file of their own, to a file that only its owner can read.

    `scrub` removes secrets from a line.
    """
    token, scrubbing = _LOG.set(path), _SCRUB.set(scrub)
    try:
        yield
    finally:
        _LOG.reset(token)
        _SCRUB.reset(scrubbing)


class StderrReader:
    """Reader of the stderr of one guest, or of a service beside a browser. It reads to the end, so that the guest never blocks."""

    def __init__(self, source: asyncio.StreamReader, pid: int, path: Path | None) -> None:
        """Start reading.

        `path`: file that each line is appended to, after `[pid]`. None: that of `log_stderr_to`, or else the logger `exact.guest`.
        """
        self._source, self._pid, self._path = source, pid, path or _LOG.get()
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._left, self._scrub = _LOGGED, _SCRUB.get()
        self._reading = asyncio.ensure_future(self._read())

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._lines)

    async def end(self, seconds: float) -> None:
        """Wait until every process has closed it, for at most `seconds`."""
        await asyncio.wait([self._reading], timeout=seconds)

    async def close(self) -> None:
        """Stop reading. May be called twice."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        rest = b""
        while chunk := await self._source.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _ENDLESS:
                lines, rest = [*lines, rest], b""
            self._add(lines)
        self._add([rest] if rest else [])

    def _add(self, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            self._lines.append(text[:_LONGEST])
            if self._left > 0:
                self._left -= len(line) + 1
                self._write(f"[{self._pid}] {text}" if self._left > 0 else f"[{self._pid}] (the rest is left out)")

    def _write(self, line: str) -> None:
        if self._path is None:
            _logger.info(line)
            return
        try:
            with open(self._path, "a", encoding="utf-8", errors="replace", opener=_private) as file:
                file.write(f"{inert(self._scrub(line))}\n")
        except OSError as error:  # reading goes on, or the guest would block
            self._left = 0
            _logger.warning(f"[{self._pid}] {self._path} is no longer written: {error.strerror}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
