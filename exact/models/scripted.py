"""Models with scripted answers, for tests of this package and of code built on it.

An answer depends only on the question and on the number of the sample. The order of questions, which concurrency changes, has no effect.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Self

import msgspec

from exact.errors import ModelError
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Usage, cost_at
from exact.models.script import (
    Answers,
    Question,
    Reply,
    classification,
    completion,
    message,
    native_question,
    question,
    question_of,
    reply,
    response,
    table,
    vectors,
)

_WRITTEN = {"/chat/completions": completion, "/classify": classification, "/messages": message, "/responses": response}
"""Functions that write replies, by the end of the path of their API."""
_NATIVE = ("/messages", "/responses")
_TOKENS = {"input": "prompt_tokens", "output": "completion_tokens"}

__all__ = [
    "Answers",
    "AtMost",
    "Cut",
    "Fault",
    "Faults",
    "Hang",
    "LateAnswer",
    "Malformed",
    "Question",
    "Reply",
    "Received",
    "DroppedConnection",
    "ScriptedModel",
    "ScriptedServer",
    "Slow",
    "Status",
    "Twice",
    "table",
]


class ScriptedModel:
    """A ChatModel that answers from a script, in this process."""

    def __init__(self, answers: Answers, *, name: str = "scripted/model", price: Price | None = None) -> None:
        self._answers, self._name, self._price = answers, name, price
        self.requests: list[ChatRequest] = []
        """All requests, in order of arrival."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def price(self) -> Price | None:
        return self._price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return the script's answer. Raises ModelError for a question that is not in the script."""
        self.requests.append(request)
        question = question_of(request, self._name)
        try:
            replies = [reply(self._answers(question, sample)) for sample in range(question.n)]
        except LookupError as error:
            raise ModelError(f"{self._name}: {error}") from error
        data = completion(question, replies)
        tokens = data["usage"]
        usage = Usage(input_tokens=tokens["prompt_tokens"], output_tokens=tokens["completion_tokens"])
        usage = msgspec.structs.replace(usage, cost=cost_at(usage, self._price) if self._price else None)
        return ChatAnswer(choices=tuple(map(_choice, replies)), usage=usage, model=self._name, raw=json.dumps(data))

    async def close(self) -> None:
        """Do nothing: the model holds no resources."""


def _choice(reply: Reply) -> Choice:
    finish = "refusal" if reply.refusal else reply.finish
    return Choice(
        text=reply.text or reply.refusal or "", finish=finish, token_ids=reply.token_ids, logprobs=reply.logprobs,
        ends=_ends(reply), top_logprobs=reply.top_logprobs, calls=reply.calls,
    )  # fmt: skip


def _ends(reply: Reply) -> tuple[int, ...] | None:
    if reply.tokens is None:
        return None
    parts = [token if isinstance(token, bytes) else token.encode() for token in reply.tokens]
    return tuple(len(b"".join(parts[:count]).decode(errors="replace")) for count in range(1, len(parts) + 1))


class Status(msgspec.Struct, frozen=True):
    """An error with an HTTP status; `retry_after` in seconds."""

    code: int
    message: str = "scripted failure"
    retry_after: float | None = None
    error_code: str | None = None
    param: str | None = None


class DroppedConnection(msgspec.Struct, frozen=True):
    """The connection is dropped without an answer."""


class Hang(msgspec.Struct, frozen=True):
    """No answer ever comes."""


class Malformed(msgspec.Struct, frozen=True):
    """A body with status 200 that is not a chat completion."""

    body: str = '{"choices": [{'


class Cut(msgspec.Struct, frozen=True):
    """The connection ends in the middle of the body."""


class AtMost(msgspec.Struct, frozen=True):
    """Fewer choices than were asked for; 0: none."""

    choices: int


class LateAnswer(msgspec.Struct, frozen=True):
    """The whole answer, after so many seconds."""

    seconds: float


class Slow(msgspec.Struct, frozen=True):
    """The whole answer in so many pieces, with a pause in seconds before each."""

    pieces: int
    pause: float


class Twice(msgspec.Struct, frozen=True):
    """Every choice is the first one again."""


Fault = Status | DroppedConnection | Hang | Malformed | Cut | AtMost | LateAnswer | Slow | Twice
Faults = Callable[[Question, int], Fault | None]
"""A function from a question and the number of times it was asked before, with its seed, to a fault. None: it is answered."""


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the server's log: the outcome of a request for answers."""

    key: str
    seed: int | None
    fault: str = ""
    """Name of the fault's type; empty if it was answered as asked."""
    input_tokens: int = 0
    output_tokens: int = 0
    whole: bool = False
    """Flag of an answer that was sent completely."""


class ScriptedServer:
    """Serves `POST .../chat/completions`, `.../responses`, `.../messages`, `.../classify`, `.../embeddings` and `GET .../models`.

    It does so as long as its context lasts, on loopback or at another address of this machine. The native APIs give one choice a request:
    the number of the sample is that of the times that a question came before.

    `async with ScriptedServer(answers) as server: ... server.base_url`. Leaving it, also by being cancelled, closes all connections
    and leaves no task behind.
    """

    def __init__(self, answers: Answers, *, faults: Faults = lambda question, times: None, host: str = "127.0.0.1") -> None:
        self._answers, self._faults, self._host = answers, faults, host
        self._came: Counter[tuple[str, int | None]] = Counter()
        self._open: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self.bodies: list[dict[str, Any]] = []
        """Body of each request, in order of arrival."""
        self.headers: list[dict[str, str]] = []
        """Headers of each request, with names in lower case."""
        self.paths: list[str] = []
        """Path and query of each request."""
        self.log: list[Received] = []
        """Outcome of each request for answers, in the order they ended."""
        self.listed = 0
        """Number of requests for the list of models."""
        self.ill = False
        """Flag that makes health checks and all other requests fail too."""

    @property
    def input_tokens(self) -> int:
        """Input tokens of all answers that were sent, complete or not."""
        return sum(line.input_tokens for line in self.log)

    @property
    def output_tokens(self) -> int:
        """Output tokens of all answers that were sent, complete or not."""
        return sum(line.output_tokens for line in self.log)

    @property
    def base_url(self) -> str:
        """Base URL for clients."""
        assert self._server is not None, "the server runs inside its context only"
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._host, 0, backlog=2048)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            self._open.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request, and return whether another may follow on the connection."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
        method, path = first.split(" ")[:2]
        target, path = path, path.partition("?")[0]
        api = next((each for each in _WRITTEN if path.endswith(each)), "")
        if method != "POST" or not api:
            return await self._beside(writer, method, path, body)
        try:
            data = json.loads(body)
            asked = native_question(data) if api in _NATIVE else question(data)
        except ValueError as error:
            return await _send(writer, 400, _error(Status(400, str(error))))
        self.bodies.append(data)
        self.headers.append(headers)
        self.paths.append(target)
        times = self._came[asked.key, asked.seed]
        self._came[asked.key, asked.seed] += 1
        first_sample = times if api in _NATIVE else 0
        return await self._answer(writer, asked, self._faults(asked, times), api, first_sample)

    async def _beside(self, writer: asyncio.StreamWriter, method: str, path: str, body: bytes) -> bool:
        """Handle a request other than a question to a chat model."""
        if self.ill:
            return await _send(writer, 503, _error(Status(503, "ill")))
        if method == "GET" and path.endswith("/models"):
            self.listed += 1
            return await _send(writer, 200, json.dumps({"object": "list", "data": []}))
        if method == "POST" and path.endswith("/embeddings"):
            return await _send(writer, 200, json.dumps(vectors(json.loads(body)["input"])))
        return await _send(writer, 404, _error(Status(404, f"no {method} {path} here")))

    async def _answer(self, writer: asyncio.StreamWriter, asked: Question, fault: Fault | None, api: str, first: int) -> bool:
        fault_name = type(fault).__name__ if fault is not None else ""
        missed = Received(key=asked.key, seed=asked.seed, fault=fault_name)
        match fault:
            case Status():
                self.log.append(missed)
                extra = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
                return await _send(writer, fault.code, _error(fault), extra)
            case DroppedConnection():
                self.log.append(missed)
                writer.transport.abort()
                return False
            case Hang():
                self.log.append(missed)
                await _forever()
            case Malformed():
                self.log.append(missed)
                return await _send(writer, 200, fault.body)
            case LateAnswer():
                await asyncio.sleep(fault.seconds)
        try:
            data = _WRITTEN[api](asked, self._replies(asked, fault, first))
        except LookupError as error:
            return await _send(writer, 400, _error(Status(400, str(error))))
        usage, line = data["usage"], len(self.log)
        tokens = {f"{way}_tokens": usage.get(f"{way}_tokens", usage.get(name, 0)) for way, name in _TOKENS.items()}
        self.log.append(msgspec.structs.replace(missed, **tokens))
        goes_on = await _send(writer, 200, json.dumps(data), cut=isinstance(fault, Cut), slow=fault if isinstance(fault, Slow) else None)
        self.log[line] = msgspec.structs.replace(self.log[line], whole=goes_on)
        return goes_on

    def _replies(self, asked: Question, fault: Fault | None, first: int) -> list[Reply]:
        given = asked.n if not isinstance(fault, AtMost) else min(asked.n, fault.choices)
        return [reply(self._answers(asked, 0 if isinstance(fault, Twice) else first + i)) for i in range(given)]


async def _forever() -> NoReturn:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("a future that nobody sets")


def _error(status: Status) -> str:
    kind = "invalid_request_error" if status.code < 500 else "server_error"
    return json.dumps({"error": {"message": status.message, "type": kind, "param": status.param, "code": status.error_code}})


async def _send(
    writer: asyncio.StreamWriter, code: int, body: str, extra: dict[str, str] | None = None, *, cut: bool = False, slow: Slow | None = None
) -> bool:
    payload = body.encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **(extra or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {code} Scripted\r\n{head}\r\n".encode("latin-1"))
    piece = -(-len(payload) // (slow.pieces if slow else 1))
    for start in range(0, len(payload), piece or 1):
        if slow:
            await writer.drain()
            await asyncio.sleep(slow.pause)
        writer.write(payload[start : start + piece] if not cut else payload[: len(payload) // 2])
    await writer.drain()
    return not cut
