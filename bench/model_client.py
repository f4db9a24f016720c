"""Measure the cost of the model client: milliseconds added to a call, and memory during 1,000 concurrent calls.

Time: one call after the other, each through the client and then as a bare exchange of the same bytes over an open socket (JSON
written and read); the figure is the median of the differences in processor time, which is what a client that waits for nothing of its
own adds, and leaves out what other processes take. The server runs in its own process; prompt and answer are those of a policy at a
full page. Memory: the highest resident size of a process with 1,000 calls under way, less that after a first call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _common import Figure, Noise, finish, interval, parser, table, versions

from exact.config import ModelConfig, PriceConfig
from exact.models import wire
from exact.models.base import ChatRequest, Image, Message, Sampling, Text
from exact.models.openai import OpenAIModel
from exact.models.providers import Endpoint, ModelCapabilities, Provider
from exact.models.scripted import LateAnswer, ScriptedServer

CALLS = 1000
PROMPT, PICTURE = 20_000, 100_000
"""Characters, bytes."""
HOLD = 6.0
"""Seconds that the server keeps all calls waiting."""
MIB = 2**20


async def serve() -> None:
    """Serve answers on loopback until stdin ends. A question that contains `wait` is answered late."""
    faults = lambda question, times: LateAnswer(HOLD) if "wait" in question.messages[0][1] else None  # noqa: E731
    async with ScriptedServer(lambda question, sample: "It is the button. " * 20 + "\nAction: click [3]", faults=faults) as server:
        print(server.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def serving() -> Iterator[str]:
    """Run a server in another process, and yield its base URL."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def opened(url: str) -> OpenAIModel:
    provider = Provider(name="bench", endpoints=(Endpoint(base_url=url),), concurrency=CALLS, capabilities=ModelCapabilities(n=True))
    return OpenAIModel(ModelConfig(model="m", timeout=300, retries=0, price=PriceConfig(input=1, output=2)), provider=provider)


def question(number: int, *, wait: bool = False, picture: bytes = b"") -> ChatRequest:
    words = "".join(f'[{i}] link "item {i} of page {number}"\n' for i in range(PROMPT // 34))
    parts = (Text(words), Image(picture)) if picture else (Text(words),)
    system = Message("system", (Text("wait" if wait else "Choose."),))
    return ChatRequest(messages=(system, Message("user", parts)), sampling=Sampling(seed=number), role="policy")


class Bare:
    """The same exchange over one socket, with nothing around it."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").partition("/")[0].split(":")

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))

    async def ask(self, request: ChatRequest) -> None:
        body = json.dumps(wire.body(request, "m", n=1, index=0, takes=ModelCapabilities())[0]).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length"))
        assert json.loads(await self._reader.readexactly(length))["choices"]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def times(url: str, rounds: int, noise: Noise) -> dict[str, list[float]]:
    """Milliseconds of each call, through the client and bare, in turn, of the processor and of the clock; the first ten rounds are not
    counted."""
    model, bare = opened(url), Bare(url)
    await bare.open()
    found: dict[str, list[float]] = {name: [] for name in ("client", "bare", "client, clock", "bare, clock")}
    for number in range(rounds + 10):
        if number % 20 == 0:
            noise.probe()
        request = question(number)
        for name, ask in (("client", model.complete), ("bare", bare.ask)):
            start, used = time.perf_counter(), time.process_time()
            await ask(request)
            if number >= 10:
                found[name].append(1000 * (time.process_time() - used))
                found[f"{name}, clock"].append(1000 * (time.perf_counter() - start))
    await model.close()
    await bare.close()
    return found


def resident() -> int:
    """Bytes that this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def memory(url: str, picture: int) -> tuple[float, int]:
    """MiB more at the highest while all calls are under way than after one call, and how many were answered."""
    model = opened(url)
    await model.complete(question(0))
    before = highest = resident()
    calls = [asyncio.create_task(_one(model, number, picture)) for number in range(CALLS)]
    while not all(call.done() for call in calls):
        await asyncio.sleep(0.02)
        highest = max(highest, resident())
    answered = sum(call.result() for call in calls)
    await model.close()
    return (highest - before) / MIB, answered


async def _one(model: OpenAIModel, number: int, picture: int) -> bool:
    answer = await model.complete(question(number, wait=True, picture=os.urandom(picture) if picture else b""))
    return bool(answer.choices[0].text)


def measured(url: str, picture: int) -> tuple[float, int]:
    """`memory` in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--hold", url, str(picture)], capture_output=True, text=True, check=True)
    mib, answered = done.stdout.split()
    return float(mib), int(answered)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--hold", nargs=2, metavar=("URL", "BYTES"), help=argparse.SUPPRESS)
    given = options.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most) if most > 0 else 8192, most))
    if given.serve:
        asyncio.run(serve())
        return
    if given.hold:
        mib, answered = asyncio.run(memory(given.hold[0], int(given.hold[1])))
        print(mib, answered)
        return
    noise = Noise()
    with serving() as url:
        spent = asyncio.run(times(url, 200 if given.quick else 1000, noise))
        held = {picture: measured(url, picture) for picture in (0, PICTURE)}
    added = [client - bare for client, bare in zip(spent["client"], spent["bare"], strict=True)]
    rows = {**spent, "the client's part": added}
    table(("ms a call", "median", "min", "max"), [(name, *(f"{value:.2f}" for value in interval(values))) for name, values in rows.items()])
    print()
    table(
        (f"{CALLS} calls under way", "MiB more", "answered"),
        [(f"{PROMPT} characters" + (f", a picture of {p} bytes" if p else ""), f"{mib:.0f}", str(n)) for p, (mib, n) in held.items()],
    )
    if any(answered != CALLS for _, answered in held.values()):
        raise SystemExit("not all calls were answered: the memory figure is of fewer calls")
    figures = [
        Figure("client_ms_per_call", statistics.median(added), 2.0, at_least=False),
        Figure("mib_1000_calls", held[0][0], 200, at_least=False),
    ]
    details = {
        "milliseconds": {name: [round(value, 3) for value in values] for name, values in spent.items()},
        "mib_with_pictures": held[PICTURE][0],
    }
    finish(given, figures, noise, versions("exact-agent", "openai"), details)


if __name__ == "__main__":
    main()
