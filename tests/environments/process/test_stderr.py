"""Stderr of a guest in the log."""

import asyncio
from pathlib import Path

from exact.environments.process.process import StderrReader


async def test_what_a_guest_writes_has_no_effect_on_the_terminal_that_shows_its_log(tmp_path: Path) -> None:
    source = asyncio.StreamReader()
    reader = StderrReader(source, 7, tmp_path / "guest.log")
    source.feed_data("caf\u00e9\t\x1b[2J\x9b31m\r\n\x07end\n".encode())
    source.feed_eof()
    await reader.end(10)
    assert (tmp_path / "guest.log").read_text() == "[7] caf\u00e9\t␛[2J\\u009b31m\n[7] ␇end\n"
