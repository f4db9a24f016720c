"""One place where a model is served, over HTTP: sends a request, reads the answer, and says what went wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from exact.config import ModelConfig
from exact.errors import UsageError
from exact.models import wire
from exact.models.base import ChatAnswer, ChatRequest
from exact.models.connect import checked
from exact.models.meter import Exchange, note
from exact.models.pace import Pace
from exact.models.post import NoToken, Post, Refusal, Unanswered
from exact.models.price import Tariff
from exact.models.providers import Capabilities, Endpoint, Provider
from exact.models.refusal import lacking
from exact.models.retry import Trouble, named_wait
from exact.models.tokens import estimate

Read = TypeVar("Read", ChatAnswer, wire.Embedded)

_SECRET = re.compile(r"\b(sk-|Bearer\s+)[\w.*+/=-]{3,}")
_SHORTEST_KEY = 6
_RETRIED = frozenset({408, 409, 425, 429})
_LESSONS = 8
"""How often one request may be sent again because the server said what it does not take."""
_PROBE_SECONDS = 5.0


class ServedModel:
    """A model at one endpoint. What it turns out not to take is remembered in `takes`."""

    def __init__(self, config: ModelConfig, provider: Provider, place: Endpoint, tariff: Tariff, pace: Pace) -> None:
        """Raises UsageError for an address that is none and for a missing key; loopback needs no key."""
        self._config, self._tariff, self._pace = config, tariff, pace
        self.model = place.model or config.model
        self.url, local = checked(place.base_url)
        self._variable = provider.api_key_env if place.api_key_env is None else place.api_key_env
        self._key = os.environ.get(self._variable, "") if self._variable else ""
        if self._variable and not self._key and not local and not provider.token:
            raise UsageError(f"no key for {config.model} at {self.url}: set the environment variable {self._variable}")
        self._post = Post(provider, place, self.model, key=self._key, local=local, timeout=config.timeout)
        self.takes = provider.takes(config.model)
        if config.api == "classify":
            self.takes = msgspec.structs.replace(self.takes, n=False)
        self.weight = place.weight

    async def ask(self, request: ChatRequest, *, n: int, index: int) -> ChatAnswer:
        """The answer with choices from `index` on, as many as the server gives. Raises Trouble.

        What the server refuses is left out and the request sent again. Raises NotSeveral where that is `n`.
        """
        classifies = self._config.api == "classify"
        for _ in range(_LESSONS):
            if classifies:
                body, notes = wire.question(request, self.model, self.takes)
            else:
                body, notes = wire.body(request, self.model, n=n, index=index, takes=self.takes)
            body |= self._config.extra
            try:
                answer = await self._paced(body, estimate(request), classifies)
            except _Lacking as refused:
                self.takes = refused.takes
                if n > 1 and self.takes.n is False:
                    raise NotSeveral from None
            else:
                return msgspec.structs.replace(answer, notes=notes)
        raise Trouble(f"{self.url} refuses the request in {_LESSONS} ways", "check the model's options in the configuration")

    async def embed(self, texts: list[str]) -> wire.Embedded:
        """A vector for each text. Raises Trouble."""
        body = {"model": self.model, "input": texts, "encoding_format": "float"} | self._config.extra
        tokens = sum(map(len, texts)) / 4
        async with self._pace.slot(tokens) as sent:
            found = self._read(await self._sent("/embeddings", body, sent), wire.embedded)
        self._pace.succeeded(tokens, found.usage.input_tokens)
        return found

    async def alive(self) -> bool:
        """Whether the server answers at all: it lists its models, or says that it does not list them."""
        try:
            await self._post.get("/models", timeout=_PROBE_SECONDS)
        except Refusal as refusal:
            return refusal.status in (400, 404, 405)
        except (Unanswered, UnicodeError):
            return False
        return True

    async def close(self) -> None:
        await self._post.close()

    async def _paced(self, body: dict[str, Any], tokens: int, classifies: bool) -> ChatAnswer:
        path, read = ("/classify", wire.classified) if classifies else ("/chat/completions", wire.answer)
        async with self._pace.slot(tokens) as sent:
            answer = self._read(await self._sent(path, body, sent), read)
        usage = answer.usage
        self._pace.succeeded(tokens, usage.input_tokens + usage.output_tokens)
        return answer

    async def _sent(self, path: str, body: dict[str, Any], sent: float) -> str:
        """The server's text. Raises Trouble; what came of it is on the meter, but for an answer's text."""
        outcome, reason = "lost", "nobody waited for it any more"
        try:
            text = await self._post(path, body)
            outcome, reason = "answered", ""
            return self._without_key(text)
        except Refusal as refusal:
            outcome, reason = "refused", f"{refusal.status}: {self._scrubbed(refusal.message)}"
            trouble = self._refused(refusal, body, sent)
        except Unanswered as error:
            reason = self._scrubbed(str(error))
            if not error.sent:
                outcome = "refused"
            if isinstance(error, NoToken):
                trouble = Trouble(f"there is no token for {self.url} ({reason})", "see the provider's `token`", again=True)
            else:
                trouble = Trouble(f"cannot reach {self.url} ({reason})", "is the server running, and is base_url right?", again=True)
        except UnicodeError as error:
            reason = self._scrubbed(str(error))
            trouble = self._unreadable(reason)
        finally:
            if outcome != "answered":
                note(Exchange(endpoint=self.url, outcome="refused" if outcome == "refused" else "lost", reason=reason))
        raise trouble

    def _read(self, text: str, read: Callable[[str], Read]) -> Read:
        try:
            answer = read(text)
        except wire.MalformedAnswer as error:
            reason = self._scrubbed(str(error))
            note(Exchange(endpoint=self.url, outcome="lost", reason=reason))
            raise self._unreadable(reason) from None
        usage = msgspec.structs.replace(answer.usage, cost=self._tariff.cost(answer.usage))
        note(Exchange(endpoint=self.url, outcome="answered", usage=usage))
        return msgspec.structs.replace(answer, usage=usage)

    def _unreadable(self, reason: str) -> Trouble:
        return Trouble(f"{self.url} answers with nothing that reads ({reason})", "is base_url an OpenAI-compatible API?", again=True)

    def _refused(self, refusal: Refusal, body: dict[str, Any], sent: float) -> Exception:
        """What an HTTP status means, and the way out."""
        status, name = refusal.status, f"{self.model} at {self.url}"
        said = f"{status}: {self._scrubbed(refusal.message)}"
        if status in (400, 422):
            takes = lacking(self.takes, body, refusal.param, refusal.message)
            if takes is not None:
                return _Lacking(takes)
            return Trouble(f"{name} refuses the request ({said})", "check the model's options in the configuration", elsewhere=False)
        if status in (401, 403):
            way_out = f"set {self._variable} to one that may use {self.model}" if self._variable else "see who may use it"
            return Trouble(f"{self.url} refuses the key ({said})", way_out)
        if status == 404:
            return Trouble(f"{self.url} has no {self.model} ({said})", "check model and base_url")
        if status == 429 and refusal.code == "insufficient_quota":
            return Trouble(f"{name} is out of quota ({said})", "add credit, or choose another model")
        if status == 429:
            wait = named_wait(refusal.headers)
            self._pace.limited(sent, wait)
            return Trouble(f"{name} limits the rate ({said})", "use fewer workers, or raise the model's retries", again=True, after=wait)
        if status >= 500 or status in _RETRIED:
            wait = named_wait(refusal.headers)
            return Trouble(f"{name} failed ({said})", "try again later, or see the server's log", again=True, after=wait)
        return Trouble(f"{name} refuses the request ({said})", "check the model's options in the configuration", elsewhere=False)

    def _without_key(self, text: str) -> str:
        """An answer is kept word for word, but for a key that the server gave back."""
        return text.replace(self._key, "***") if len(self._key) >= _SHORTEST_KEY and self._key in text else text

    def _scrubbed(self, text: str) -> str:
        """One line of a message that came from outside, without any key in it."""
        line = " ".join(_SECRET.sub(r"\1***", self._without_key(text)).split())
        return line if len(line) <= 240 else line[:237] + "..."


class NotSeveral(Exception):
    """The server does not take `n`."""


class _Lacking(Exception):
    """The server does not take something that can be done without."""

    def __init__(self, takes: Capabilities) -> None:
        super().__init__()
        self.takes = takes
