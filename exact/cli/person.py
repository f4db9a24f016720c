"""Questions to the person at the terminal: may this write be sent, and what the agent asks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from exact.cli.terminal import echo
from exact.config import BrowserConfig
from exact.environments.person import PersonQuestion
from exact.inert import inert

_LONGEST = 400
"""Characters of one line that is shown."""


def terminal_person(config: BrowserConfig) -> Callable[[PersonQuestion], Awaitable[str | bool | None]] | None:
    """Return a function that asks at the terminal; None where nobody is asked, standard input is no terminal, or on Windows."""
    wanted = config.confirm != "never" or config.ask_user
    return ask_at_terminal if wanted and sys.platform != "win32" and sys.stdin.isatty() else None


async def ask_at_terminal(question: PersonQuestion) -> str | None:
    """Print a question and return the line that is typed. What was typed before the question is no answer to it."""
    for line in shown(question):
        echo(inert(line, _LONGEST), err=True)
    return await _line()


def shown(question: PersonQuestion) -> list[str]:
    """Return the lines of a question."""
    if question.kind == "question":
        return [f"The agent asks: {question.text}", "Type an answer and press Enter."]
    lines = [f"Action: {question.text}"] if question.text else []
    if question.kind == "write":
        lines += [f"It sends {question.method} {question.url}", *(f"    {name}: {value}" for name, value in question.fields.items())]
    return [*lines, "Do it? Type yes and press Enter; anything else refuses."]


async def _line() -> str | None:
    """Return the next line of standard input; None at its end. A cancelled call reads nothing more."""
    loop, came = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    file = sys.stdin.fileno()
    _discard(file)

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
