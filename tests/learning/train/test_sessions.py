"""Sessions of a server, for a thread that trains."""

from __future__ import annotations

import asyncio
import sys
import time
from types import ModuleType
from typing import Any

import pytest

from exact.errors import EnvironmentFailure, ExactError, UsageError
from exact.learning.train.sessions import ClientSessions, asked


class PingedClient:
    """A client whose server wants a sign of life every few milliseconds, as one that pings over a WebSocket."""

    answers = 0

    def __init__(self, **options: Any) -> None:
        self.options = options

    async def connect(self) -> None:
        self.pings = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        while True:
            await asyncio.sleep(0.005)
            PingedClient.answers += 1

    async def close(self) -> None:
        self.pings.cancel()


def client_of(kind: type[Any]) -> dict[str, ModuleType]:
    modules = {name: ModuleType(name) for name in ("openenv", "openenv.core", "openenv.core.generic_client")}
    modules["openenv.core.generic_client"].GenericEnvClient = kind  # type: ignore[attr-defined]
    return modules


def test_the_servers_pings_are_answered_while_the_thread_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in client_of(PingedClient).items():
        monkeypatch.setitem(sys.modules, name, module)
    with ClientSessions("http://server", 2) as sessions:
        before, until = PingedClient.answers, time.monotonic() + 20
        while PingedClient.answers < before + 4 and time.monotonic() < until:
            sum(range(10_000))  # a step of the training, which leaves the loop no turn of its own
    assert PingedClient.answers >= before + 4
    assert len(sessions.clients) == 2


def test_a_server_that_cannot_be_reached_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(PingedClient):
        async def connect(self) -> None:
            raise ConnectionRefusedError("refused")

    for name, module in client_of(Refused).items():
        monkeypatch.setitem(sys.modules, name, module)
    sessions = ClientSessions("http://server", 1)
    with pytest.raises(EnvironmentFailure, match="does not answer: refused: is `exact serve` running"), sessions:
        pass
    assert not sessions._thread.is_alive()


async def test_a_server_that_takes_too_long_is_named_with_the_kind_of_the_failure() -> None:
    async def late() -> None:
        raise TimeoutError

    with pytest.raises(EnvironmentFailure, match="does not answer: TimeoutError"):
        await asked(late())


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        ("Server error: no more sessions (code: CAPACITY_REACHED)", UsageError, "is full: lower `environments`"),
        ("Server error: unknown task 'clik-test': did you mean 'click-test'?", EnvironmentFailure, "refuses: .*did you mean 'click-test'"),
    ],
)
async def test_what_a_server_says_is_no_missing_answer(words: str, kind: type[ExactError], told: str) -> None:
    async def refused() -> None:
        raise RuntimeError(words)

    with pytest.raises(kind, match=told):
        await asked(refused())
