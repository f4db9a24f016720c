"""A model at one endpoint, over HTTP: it sends requests, reads answers, and turns failures into errors that name the way out.

Facts that a server reports about itself: context length, slots and models, if it has a page for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from exact.config import ModelConfig
from exact.errors import UsageError
from exact.models import classify, messages, responses, wire
from exact.models.base import ChatAnswer, ChatRequest, Tariff
from exact.models.decode import FailedAnswer, MalformedAnswer, as_object, as_text, objects, unstreamed, whole
from exact.models.meter import Exchange, note
from exact.models.providers import Endpoint, ModelCapabilities, Provider, api_of
from exact.models.rate_limiter import RateLimiter
from exact.models.refusal import Learned, adjusted, out_of_credit, pictures_refused, prompt_filtered, too_long
from exact.models.retry import RequestError, retry_after
from exact.models.tokens import checked, estimate
from exact.models.transport import NoAnswer, NoToken, StatusError, Transport, parse_base_url
from exact.models.wire import as_json, structured
from exact.text import inert

Read = TypeVar("Read", ChatAnswer, wire.Embedded)

_SECRET = re.compile(r"\b(sk-|Bearer\s+)[\w.*+/=-]{3,}")
_SHORTEST_KEY = 6
_RETRIED = frozenset({408, 409, 425, 429})
_OF_THE_PROMPT = frozenset({400, 403, 422, 451})
"""Statuses with which a filter refuses a prompt."""
_ADJUSTMENTS = 8
"""Times that one request may be sent, each time without the parts that the server refused before."""
_PROBE_SECONDS = 5.0
_STARTING = re.compile(r"\b(?:loading|starting|warming up|initiali[sz]ing|not (?:yet )?ready)\b", re.I)
"""Matches the message of a server that still loads the model."""
_STARTING_SECONDS = 1.0
"""Seconds before such a server is asked again."""
_OPTIONS = "check the model's options in the configuration"


class Api(Protocol):
    """A module that writes requests for an API and reads its answers."""

    PATH: str
    """Path under the address."""
    KEY_HEADER: str
    """Header that carries the key. Empty: the provider's usual one."""
    REQUIRED: frozenset[str]
    """Fields that a request cannot do without."""

    def body(
        self, request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the request for choices `index` to `index + n - 1`, and notes on the parts left out because the server refuses them."""
        ...

    def headers(self, body: dict[str, Any]) -> dict[str, str]:
        """Return the headers that a request needs beside the key."""
        ...

    def answer(self, raw: str) -> ChatAnswer:
        """Return the answer in a server's JSON. Raises MalformedAnswer, FailedAnswer."""
        ...


_APIS: dict[str, Api] = {"chat": wire, "classify": classify, "messages": messages, "responses": responses}


class ServedModel:
    """A model at one endpoint. `takes` holds the features that the server is known to support, `without` those that it refused."""

    def __init__(self, config: ModelConfig, provider: Provider, endpoint: Endpoint, tariff: Tariff, limiter: RateLimiter) -> None:
        """Open no connection yet.

        Raises UsageError if the address is invalid or the key is missing. An endpoint on loopback needs no key.
        """
        self._config, self._tariff, self._limiter = config, tariff, limiter
        self.model = endpoint.model or config.model
        self.url, local = parse_base_url(endpoint.base_url)
        self._variable = provider.api_key_env if endpoint.api_key_env is None else endpoint.api_key_env
        self._key = os.environ.get(self._variable, "") if self._variable else ""
        if self._variable and not self._key and not local and not provider.token:
            raise UsageError(f"no key for {config.model} at {self.url}: set the environment variable {self._variable}")
        api = api_of(config, provider)
        self._api = _APIS[api]
        self._serves = "is base_url an OpenAI-compatible API?" if api == "chat" else f"does base_url serve the {api} API?"
        header = self._api.KEY_HEADER
        self._transport = Transport(provider, endpoint, self.model, key=self._key, local=local, timeout=config.timeout, header=header)
        self.takes, self.without = provider.takes(config.model), frozenset[str]()
        if api != "chat":
            self.takes = msgspec.structs.replace(self.takes, n=False)
        self._weight = endpoint.weight

    @property
    def weight(self) -> float:
        """Configured weight, reduced if the endpoint answered 429: its measured capacity counts."""
        return self._weight * self._limiter.health

    async def ask(self, request: ChatRequest, *, n: int, index: int) -> ChatAnswer:
        """Return an answer with choices from number `index` on, as many as the server gives.

        A part that the server refuses is left out, and the request is sent again. Parts that an accepted request lacked are left out from
        then on. There is one choice if the server refuses `n`. Raises RequestError.
        """
        known = trial = Learned(takes=self.takes, without=self.without)
        first: RequestError | None = None
        for _ in range(_ADJUSTMENTS):
            is_json = structured(request, self._config.structured, trial.takes)
            body, notes = self._body(as_json(request) if is_json else request, n, index, trial)
            try:
                answer = await self._limited(body, request)
            except _Refused as refused:
                first = first or refused.failure
                found = adjusted(trial, body, refused.param, refused.message, self._api.REQUIRED)
                if found is None:
                    raise first from None
                trial = found
            else:
                self._learn(known, trial)
                return msgspec.structs.replace(answer, notes=notes, structured=is_json)
        raise first or RequestError(f"{self.url} refuses the request in {_ADJUSTMENTS} ways", _OPTIONS, resumable=False)

    def _body(self, request: ChatRequest, n: int, index: int, known: Learned) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the request without the parts that the server is known to refuse, and notes on them."""
        body, notes = self._api.body(request, self.model, n=1 if known.takes.n is False else n, index=index, takes=known.takes)
        for field, value in self._config.extra.items():
            ours = body.get(field)
            body[field] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
        lacks = {field for field in body if known.refuses(field)}
        return {field: value for field, value in body.items() if field not in lacks}, tuple(dict.fromkeys((*notes, *sorted(lacks))))

    def _learn(self, known: Learned, trial: Learned) -> None:
        """Remember the parts that an accepted request lacked. Requests in parallel may have learned something else meanwhile."""
        self.without |= trial.without
        before, after = msgspec.structs.asdict(known.takes), msgspec.structs.asdict(trial.takes)
        self.takes = msgspec.structs.replace(self.takes, **{name: value for name, value in after.items() if value != before[name]})

    async def embed(self, texts: list[str]) -> wire.Embedded:
        """Return a vector for each text, in order. Raises RequestError."""
        body = {"model": self.model, "input": texts, "encoding_format": "float"} | self._config.extra
        tokens = sum(map(len, texts)) / 4
        async with self._limiter.slot(tokens, self._config.timeout) as sent:
            found = self._read(await self._send("/embeddings", body, sent), wire.embedded)
        self._limiter.succeeded(tokens, found.usage.input_tokens)
        return found

    def warms(self, request: ChatRequest) -> bool:
        """Return whether the first of several choices should be asked for alone, because the others then read the prompt from the cache."""
        return self._api is messages and self.takes.cache is not False and messages.is_worth_caching(request)

    async def alive(self) -> bool:
        """Return whether the server answers at all: it lists its models, or says that it does not list them."""
        try:
            await self._transport.get("/models", timeout=_PROBE_SECONDS)
        except StatusError as error:
            return error.status in (400, 404, 405)
        except (NoAnswer, UnicodeError):
            return False
        return True

    async def fetch(self, path: str, body: Mapping[str, Any] | None = None, *, root: bool = False) -> object:
        """Return the JSON at a path of the server, to which `body` is posted; None if there is none.

        With `root` the path begins at the server's root, for an API whose address ends with a version such as `/v1`.
        """
        address = re.sub(r"/v\d+/?$", "", self.url) + path if root else path
        try:
            if body is None:
                return msgspec.json.decode(await self._transport.get(address, timeout=_PROBE_SECONDS))
            return msgspec.json.decode(await self._transport.post(address, body))
        except (StatusError, NoAnswer, UnicodeError, msgspec.DecodeError, RecursionError):
            return None

    async def close(self) -> None:
        await self._transport.close()

    async def _limited(self, body: dict[str, Any], request: ChatRequest) -> ChatAnswer:
        tokens = estimate(request)
        async with self._limiter.slot(tokens, self._config.timeout) as sent:
            text = await self._send(self._api.PATH, body, sent)
            try:
                answer = self._read(text, lambda raw: checked(self._api.answer(raw), request))
            except FailedAnswer as failed:
                error = StatusError(failed.status, failed.message, code=failed.code, param="", headers={})
                note(Exchange(endpoint=self.url, outcome="refused", reason=self._scrubbed(failed.message)))
                raise self._status(error, body, sent) from None
        usage = answer.usage
        if usage.reasoning_tokens and self.takes.reasons is None:
            self.takes = msgspec.structs.replace(self.takes, reasons=True)
        self._limiter.succeeded(tokens, usage.input_tokens + usage.output_tokens)
        choices = tuple(
            msgspec.structs.replace(each, text=self._without_key(each.text)) for each in answer.choices
        )  # also if it is escaped
        return answer if choices == answer.choices else msgspec.structs.replace(answer, choices=choices)

    async def _send(self, path: str, body: dict[str, Any], sent: float) -> str:
        """Return the text of the server's answer. A request that fails is noted on the meter. Raises RequestError."""
        outcome, reason = "lost", "the caller was cancelled"
        try:
            text = await self._transport.post(path, body, self._api.headers(body))
            outcome, reason = "answered", ""
            return self._without_key(unstreamed(text))
        except StatusError as status:
            outcome, reason = "refused", f"{status.status}: {self._scrubbed(status.message)}"
            failure = self._status(status, body, sent)
        except NoAnswer as error:
            reason = self._scrubbed(str(error))
            if not error.sent:
                outcome = "refused"
            if isinstance(error, NoToken):
                failure = RequestError(f"there is no token for {self.url} ({reason})", "see the provider's `token`", retry=True)
            else:
                failure = RequestError(f"cannot reach {self.url} ({reason})", "is the server running, and is base_url right?", retry=True)
        except UnicodeError as error:
            reason = self._scrubbed(str(error))
            failure = self._unreadable(reason)
        finally:
            if outcome != "answered":
                note(Exchange(endpoint=self.url, outcome="refused" if outcome == "refused" else "lost", reason=reason))
        raise failure

    def _read(self, text: str, read: Callable[[str], Read]) -> Read:
        try:
            answer = read(text)
        except MalformedAnswer as error:
            reason = self._scrubbed(str(error))
            note(Exchange(endpoint=self.url, outcome="lost", reason=reason))
            raise self._unreadable(reason) from None
        usage = msgspec.structs.replace(answer.usage, cost=self._tariff.cost(answer.usage))
        note(Exchange(endpoint=self.url, outcome="answered", usage=usage))
        return msgspec.structs.replace(answer, usage=usage)

    def _unreadable(self, reason: str) -> RequestError:
        return RequestError(f"{self.url} answers with nothing that reads ({reason})", self._serves, retry=True)

    def _status(self, error: StatusError, body: dict[str, Any], sent: float) -> Exception:
        """Return the error that an HTTP status means."""
        status, name = error.status, f"{self.model} at {self.url}"
        message = f"{status}: {self._scrubbed(error.message)}"
        if 300 <= status < 400:
            place = self._scrubbed(error.headers.get("location", "")) or "another address"
            fact = f"{self.url} redirects to {place}, where no prompt and no key is sent"
            return RequestError(fact, "write the address of the API itself as base_url", resumable=False)
        if status in _OF_THE_PROMPT and prompt_filtered(error.code, error.message, body):
            return RequestError(f"{name} refuses the prompt ({message})", "another prompt may pass its filter", filtered=True)
        if status in (400, 413, 422) and too_long(error.code, error.message):
            return RequestError(f"the prompt is too long for {name} ({message})", "lower observation_tokens or history", elsewhere=False)
        if status == 402 or (status in (400, 403) and out_of_credit(error.code, error.message)):
            return RequestError(f"{name} is out of credit ({message})", "add credit, or choose another model")
        if status in (400, 422) or (status >= 500 and pictures_refused(body, error.message)):
            failure = RequestError(f"{name} refuses the request ({message})", _OPTIONS, elsewhere=False, resumable=False)
            return _Refused(failure, error.param, error.message)
        if status in (401, 403):
            way_out = f"set {self._variable} to one that may use {self.model}" if self._variable else "see who may use it"
            return RequestError(f"{self.url} refuses the key ({message})", way_out)
        if status == 404:
            return RequestError(f"{self.url} has no {self.model} ({message})", "check model and base_url", resumable=False)
        if status == 429 and error.code == "insufficient_quota":
            return RequestError(f"{name} is out of quota ({message})", "add credit, or choose another model")
        if status == 429:
            wait = retry_after(error.headers)
            self._limiter.limited(sent, wait)
            return RequestError(
                f"{name} limits the rate ({message})", "use fewer workers, or raise the model's retries", retry=True, after=wait
            )
        if status == 503 and _STARTING.search(error.message):
            way_out = "wait until the server has loaded it, or raise the model's timeout"
            wait = retry_after(error.headers) or _STARTING_SECONDS
            return RequestError(f"{name} is not ready ({message})", way_out, retry=True, after=wait, starting=True)
        if status >= 500 or status in _RETRIED:
            wait = retry_after(error.headers)
            return RequestError(f"{name} failed ({message})", "try again later, or see the server's log", retry=True, after=wait)
        return RequestError(f"{name} refuses the request ({message})", _OPTIONS, elsewhere=False, resumable=False)

    def _without_key(self, text: str) -> str:
        """Return an answer verbatim, except for a key that the server repeated."""
        return text.replace(self._key, "***") if len(self._key) >= _SHORTEST_KEY and self._key in text else text

    def _scrubbed(self, text: str) -> str:
        """Return a message from outside as one line without keys, of at most 240 characters."""
        line = " ".join(inert(_SECRET.sub(r"\1***", self._without_key(text))).split())
        return line if len(line) <= 240 else line[:237] + "..."


class _Refused(Exception):
    """Raised when the server refuses a request that may pass with less in it."""

    def __init__(self, failure: RequestError, param: str, message: str) -> None:
        super().__init__()
        self.failure, self.param, self.message = failure, param, message


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a server reports. A number is 0 if it is not reported."""

    software: str = ""
    """Name of the server's program, if known."""
    context: int = 0
    """Tokens of a prompt and its answer together; with slots, of one of them."""
    trained: int = 0
    """Context length that the model was trained for, in tokens."""
    slots: int = 0
    """Requests that are answered at the same time, which is also the most answers to one request."""
    models: tuple[str, ...] = ()
    """Names of the models that are served."""


async def server_facts(served: ServedModel, *, own: bool) -> ServerFacts:
    """Return the facts that the server reports at `/models`. With `own` (the user runs it), also at those of llama.cpp and Ollama."""
    listed = objects(as_object(await served.fetch("/models")).get("data"))
    entry = next((each for each in listed if each.get("id") == served.model), listed[0] if len(listed) == 1 else {})
    meta = as_object(entry.get("meta"))
    found = ServerFacts(
        software={"llamacpp": "llama.cpp", "vllm": "vLLM", "sglang": "SGLang"}.get(as_text(entry.get("owned_by")), ""),
        context=whole(entry.get("max_model_len")) or whole(entry.get("loaded_context_length")) or whole(entry.get("context_length")),
        trained=whole(meta.get("n_ctx_train")),
        models=tuple(name for each in listed if (name := as_text(each.get("id")))),
    )
    if own and not found.context:
        found = _of_llamacpp(found, as_object(await served.fetch("/props", root=True)))
    return await _of_ollama(found, served) if own and not found.context else found


def _of_llamacpp(found: ServerFacts, props: Mapping[str, Any]) -> ServerFacts:
    settings = as_object(props.get("default_generation_settings"))
    if not settings:
        return found
    slots = whole(props.get("total_slots"))
    return msgspec.structs.replace(found, software="llama.cpp", context=whole(settings.get("n_ctx")), slots=slots)


async def _of_ollama(found: ServerFacts, served: ServedModel) -> ServerFacts:
    """Return the facts with those of Ollama: the context of the loaded model, and the one that it was trained for."""
    shown = as_object(await served.fetch("/api/show", {"model": served.model}, root=True))
    known = as_object(shown.get("model_info"))
    if not known:
        return found
    trained = next((whole(value) for name, value in known.items() if name.endswith(".context_length")), 0)
    loaded = objects(as_object(await served.fetch("/api/ps", root=True)).get("models"))
    names = (served.model, f"{served.model}:latest")
    context = next((whole(each.get("context_length")) for each in loaded if each.get("model") in names or each.get("name") in names), 0)
    return msgspec.structs.replace(found, software="Ollama", context=context, trained=trained)
