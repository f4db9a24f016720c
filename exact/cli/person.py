"""Questions to the person at the terminal: may this write be sent, and the agent's question."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from exact.cli.terminal import echo
from exact.config import BrowserConfig
from exact.environments.base import SECRET, PersonQuestion
from exact.text import inert

_LONGEST = 400
"""Characters of one line that is shown."""


def terminal_person(
    config: BrowserConfig, quiet: Callable[[], AbstractContextManager[None]] = nullcontext, *, reruns: bool = False
) -> Callable[[PersonQuestion], Awaitable[str | bool | None]] | None:
    """Return a function that asks at the terminal; None if no person is asked, standard input is not a terminal, or on Windows.

    `quiet`: a context in which nothing else is drawn on the terminal. `reruns`: an earlier run is carried out again, whose writes alone
    have a yes.
    """
    wanted = reruns or config.confirm != "never" or config.ask_user or config.confirm_marked
    if not wanted or sys.platform == "win32" or not sys.stdin.isatty():
        return None

    async def ask(question: PersonQuestion) -> str | None:
        with quiet():
            return await ask_at_terminal(question, config.person_seconds)

    return ask


async def ask_at_terminal(question: PersonQuestion, seconds: float) -> str | None:
    """Print a question and return the line that is typed. Text typed before the question does not count as an answer.

    `seconds`: time for an answer, which is printed; the caller cancels it then.
    """
    _discard(sys.stdin.fileno())
    for line in shown(question, seconds):
        echo(inert(line, _LONGEST), err=True)
    try:
        return await next_line()
    except asyncio.CancelledError:
        echo("No answer is taken any more.", err=True)
        raise


def shown(question: PersonQuestion, seconds: float) -> list[str]:
    """Return the lines of a question that waits `seconds` for an answer."""
    if question.kind == "question":
        return [f"The agent asks: {question.text}", f"Type an answer and press Enter, within {seconds:g} s."]
    lines = [f"Action: {question.text}"] if question.text else []
    if question.kind == "write":
        sent = f"It sends {question.method} {question.url}"
        if question.method == SECRET:
            sent = f"A page that may know a typed secret sends to {question.url}"
        lines += [sent, *(f"    {name}: {value}" for name, value in question.fields.items())]
    return [*lines, f"Do it? [y/N] (anything but y or yes refuses, and so does no answer within {seconds:g} s)"]


async def next_line() -> str | None:
    """Return the next line of standard input; None at its end. A cancelled call reads nothing more, and waits for no thread."""
    if sys.platform == "win32":
        return await asyncio.to_thread(sys.stdin.readline) or None
    loop, came = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    file = sys.stdin.fileno()

    def read() -> None:
        if not came.done():
            came.set_result(os.read(file, 4096))

    loop.add_reader(file, read)
    try:
        data = await came
    finally:
        loop.remove_reader(file)
    return data.decode(errors="replace").strip() if data else None


def _discard(file: int) -> None:
    import termios

    termios.tcflush(file, termios.TCIFLUSH)
