"""Calls of tools: bounded in time and size, whatever a function does."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import exact
from exact.environments.tools.tool import CHARACTERS, bounded, called, function_tool
from exact.errors import ToolError


def masked(text: str) -> str:
    return text.replace("4711", "<secret:pin>")


async def test_a_function_that_is_not_async_runs_in_a_thread_of_its_own() -> None:
    @exact.tool
    def where() -> str:
        """Say where it runs."""
        return threading.current_thread().name

    assert await called(function_tool(where), "{}", masked) == "exact tool"


async def test_a_function_that_hangs_in_its_thread_holds_up_nothing() -> None:
    released = threading.Event()

    @exact.tool(seconds=0.05)
    def stuck() -> None:
        """Wait for ever."""
        released.wait(30)

    began = time.monotonic()
    try:
        with pytest.raises(ToolError, match=r"stuck gave no answer within 0.05 s"):
            await called(function_tool(stuck), "{}", masked)
        (thread,) = (each for each in threading.enumerate() if each.name == "exact tool" and each.is_alive())
        assert thread.daemon and time.monotonic() - began < 5
    finally:
        released.set()


@pytest.mark.parametrize("error", [ValueError("bad\nword"), SystemExit(3), KeyboardInterrupt(), StopIteration(1)], ids=repr)
async def test_whatever_a_function_raises_is_a_tool_error_of_one_line(error: BaseException) -> None:
    @exact.tool
    def fail() -> None:
        """Fail."""
        raise error

    with pytest.raises(ToolError, match="fail raised ") as raised:
        await called(function_tool(fail), "{}", masked)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 700


async def test_100_megabytes_become_a_few_thousand_characters_that_say_so() -> None:
    @exact.tool(effect="read")
    def huge() -> str:
        """Return too much."""
        return "x" * 100_000_000

    text = await called(function_tool(huge), "{}", masked)
    assert len(text) < CHARACTERS + 100 and text.endswith("(... 99,994,000 characters left out)")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "done, without a result"),
        ("plain", "plain"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (b"123", "3 bytes"),
        (exact.ToolConfig, "\"<class 'exact.config.environments.ToolConfig'>\""),
        ("pin 4711", "pin <secret:pin>"),
    ],
)
def test_results_are_texts(result: Any, text: str) -> None:
    assert bounded(result, masked) == text


def test_a_secret_at_the_cut_is_masked_whole() -> None:
    assert "47" not in bounded("x" * (CHARACTERS - 2) + "4711" + "y" * 9000, masked)


@pytest.mark.parametrize("error", [exact.ActionError, ValueError])
async def test_the_words_of_an_error_are_one_bounded_line_without_secrets(error: type[Exception]) -> None:
    @exact.tool(effect="read")
    def leak() -> None:
        """Fail with too many words."""
        raise error("4711 is\nwrong " + "x" * 100_000)

    with pytest.raises(exact.ActionError) as raised:
        await called(function_tool(leak), "{}", masked)
    assert "<secret:pin> is wrong" in str(raised.value) and "4711" not in str(raised.value)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 700
