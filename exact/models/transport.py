"""HTTP requests to one endpoint by the openai SDK: JSON out, bytes back.

`AsyncOpenAI` sends each request once (`max_retries=0`): retries, rate limits and fail-over are this package's. Answers are taken raw and
are parsed by wire.py, because servers other than OpenAI's add and leave out fields.

Bodies of servers' answers: bounded in bytes, also when they are decompressed.

Addresses of endpoints, and tokens in place of keys.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import urllib.parse
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from exact.errors import UsageError
from exact.models.providers import Endpoint, Provider
from exact.origins import is_loopback

if TYPE_CHECKING:
    import ssl

    import openai


_NEVER_SENT = ("ConnectError", "ConnectTimeout")
_NOT_DEPLOYED = ("/responses",)
"""Paths that Azure serves for all deployments, which the request's model names."""
_NO_HEADERS: Mapping[str, str] = {}
_STORES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that name certificates to trust."""


class StatusError(Exception):
    """Raised when the server answered with an error status. The message is the server's, if it gives one."""

    def __init__(self, status: int, message: str, *, code: str, param: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param, self.headers = status, message, code, param, headers


class NoAnswer(Exception):
    """Raised when no complete answer arrived. `sent`: whether the server may have received the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NoToken(NoAnswer):
    """Raised when the token source failed, so that nothing was sent."""


class Transport:
    """Requests to one endpoint. Azure's carry the deployment in the path and the API version in the query."""

    def __init__(
        self, provider: Provider, endpoint: Endpoint, model: str, *, key: str, local: bool, timeout: float, header: str = ""
    ) -> None:
        """Open no connection yet. `timeout` is in seconds; with `local`, proxies named by the environment are not used.

        `header` is the one that carries the key, if the API uses a separate header.

        Raises UsageError if the provider's token source cannot be imported.
        """
        self._azure = azure = provider.kind == "azure"
        self._endpoint, self._version, self._local, self._seconds = endpoint, provider.api_version, local, timeout
        self._token = token_source(provider.token) if provider.token else None
        self._key, self._header = key or "none", header or ("api-key" if azure else "")
        self._deployment = f"/deployments/{model}" if azure else ""

    @functools.cached_property
    def _client(self) -> openai.AsyncOpenAI:
        """The SDK's client, which is imported when a model is asked first: it takes longer than a page."""
        import openai

        return openai.AsyncOpenAI(
            api_key="none",  # each request has its own credentials
            base_url=self._endpoint.base_url.rstrip("/") + ("/openai" if self._azure else ""),
            default_query={"api-version": self._version} if self._azure else None,
            max_retries=0,
            timeout=self._seconds,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=self._seconds,
                trust_env=not self._local,
                verify=tls_settings(not self._local),
                follow_redirects=False,  # a redirect would take prompts, and keys in separate headers, to another server
                headers={"Accept-Encoding": "gzip, deflate"},
                event_hooks={"response": [_bound]},
            ),
        )

    @functools.cached_property
    def _headers(self) -> dict[str, Any]:
        import openai

        found = {**dict.fromkeys(_ambient_headers(), openai.omit), "User-Agent": f"exact/{version('exact-agent')}"}
        if self._header:
            return found | {self._header: self._key, "Authorization": openai.omit}
        return found | {"Authorization": f"Bearer {self._key}"}

    async def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] = _NO_HEADERS) -> str:
        """Return the text of the answer to a JSON body, sent with further headers.

        Raises StatusError, NoAnswer, and UnicodeError if the answer is not UTF-8.
        """
        options: Any = {"headers": await self._credentials() | dict(headers)}
        deployment = "" if path in _NOT_DEPLOYED else self._deployment
        return await self._received(self._client.post(deployment + path, cast_to=bytes, body=body, options=options), self._seconds)

    async def get(self, path: str, *, timeout: float) -> str:
        """Return the text at a path, within `timeout` seconds. Raises StatusError, NoAnswer, UnicodeError."""
        options: Any = {"headers": await self._credentials(), "timeout": timeout}
        return await self._received(self._client.get(path, cast_to=bytes, options=options), timeout)

    async def close(self) -> None:
        """Close all connections."""
        if "_client" in vars(self):
            await self._client.close()

    async def _credentials(self) -> dict[str, Any]:
        if self._token is None:
            return self._headers
        try:
            token = await self._token()
        except Exception as error:
            raise NoToken(f"{type(error).__name__}: {error}", sent=False) from error
        headers = {name: value for name, value in self._headers.items() if name not in ("api-key", "x-api-key")}
        return headers | {"Authorization": f"Bearer {token}"}

    async def _received(self, request: Awaitable[bytes], seconds: float) -> str:
        """Return the text of an answer. The SDK's own time limit holds for each read, and a server may send one byte at a time."""
        import openai

        try:
            async with asyncio.timeout(seconds):
                return (await request).decode()
        except openai.APIStatusError as error:
            _raise_status(error.response)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise NoAnswer(str(cause) or type(cause).__name__, sent=type(cause).__name__ not in _NEVER_SENT) from error
        except OSError as error:
            raise NoAnswer(str(error) or type(error).__name__, sent=True) from error


def tls_settings(trust_env: bool) -> ssl.SSLContext:
    """Return the TLS settings of the SDK's HTTP client. All transports share them: to read the certificates takes 40 ms."""
    return _read_tls_settings(trust_env, *map(os.environ.get, _STORES) if trust_env else ())


@functools.lru_cache(maxsize=8)
def _read_tls_settings(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    import openai

    client = openai.DefaultAsyncHttpxClient.__mro__[1]  # httpx's, or its successor's
    found: ssl.SSLContext = importlib.import_module(client.__module__.partition(".")[0]).create_ssl_context(trust_env=trust_env)
    return found


async def _bound(response: Any) -> None:
    """Bound an answer whose head has arrived. The client would decompress and keep all of it."""
    encoding = response.headers.pop("content-encoding", "")
    response.stream = bounded_stream(response.stream, encoding)


def _ambient_headers() -> list[str]:
    """Return the names of headers that the SDK would add by environment variables. They are for OpenAI, and not for every endpoint."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return ["OpenAI-Organization", "OpenAI-Project", *(line.partition(":")[0].strip() for line in lines if ":" in line)]


def _raise_status(response: Any) -> NoReturn:
    body: Any
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        body = response.content[:1000].decode(errors="replace")
    found = (body.get("error") or body) if isinstance(body, dict) else body
    error = found if isinstance(found, dict) else {}
    said = next((text for text in (error.get("message"), error.get("detail"), found) if isinstance(text, str)), f"{body}")
    raise StatusError(
        response.status_code,
        said,
        code=str(error.get("code") or error.get("type") or ""),
        param=str(error.get("param") or ""),
        headers=response.headers,
    )


MOST_BYTES = 64 << 20
"""Bytes of the largest answer. The largest ones hold many vectors, or the likeliest tokens of long texts."""
_ENCODINGS = ("gzip", "x-gzip", "deflate")
_EITHER = 47
"""Window bits by which zlib reads gzip's and its own format."""


def bounded_stream(stream: Any, encoding: str) -> Any:
    """Return a stream of the HTTP client that ends with an OSError if its plain content has more than MOST_BYTES.

    `encoding`: the answer's header. The result has the stream's base class, which the client requires.
    """
    base = next(each for each in type(stream).__mro__ if each.__name__ == "AsyncByteStream")

    class Bounded(base):  # type: ignore[misc, valid-type]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MOST_BYTES
            async for part in _plain(stream, encoding.strip().lower()):
                left -= len(part)
                if left < 0:
                    raise OSError(f"the answer has more than {MOST_BYTES:,} bytes")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


async def _plain(stream: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield the decompressed content in parts of at most MOST_BYTES + 1 bytes. Raises OSError if it cannot be decompressed."""
    if encoding in ("", "identity"):
        async for part in stream:
            yield part
        return
    if encoding not in _ENCODINGS:
        raise OSError(f"the answer is compressed in a way that was not asked for: {encoding[:40]}")
    decoder = zlib.decompressobj(_EITHER)
    try:
        async for part in stream:
            yield decoder.decompress(part, MOST_BYTES + 1)
    except zlib.error as error:
        raise OSError(f"the answer cannot be decompressed: {error}") from error
    if not decoder.eof:
        raise OSError("the answer ends too early")


TokenSource = Callable[[], Awaitable[str]]
"""A function that returns the token of one request."""

_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


def parse_base_url(base_url: str) -> tuple[str, bool]:
    """Return a base URL without any credentials in it, and whether it is on loopback. Raises UsageError if it is not an HTTP address."""
    try:
        parts = urllib.parse.urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(f"base_url {base_url!r} is no URL of a model server: write e.g. http://127.0.0.1:8000/v1")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}", is_loopback(host) or host.endswith(".localhost")


def token_source(name: str) -> TokenSource:
    """Return the token source of a name: `azure` (DefaultAzureCredential), or `package.module:function`.

    The function may be asynchronous. Raises UsageError if it cannot be imported.
    """
    if name == "azure":
        try:
            identity = importlib.import_module("azure.identity.aio")
        except ImportError as error:
            raise UsageError("token: azure needs azure-identity: pip install azure-identity aiohttp, or give a key") from error
        source: TokenSource = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _AZURE_SCOPE)
        return source
    module, colon, function = name.partition(":")
    try:
        given = getattr(importlib.import_module(module), function) if colon else None
    except (ImportError, AttributeError) as error:
        raise UsageError(f"token {name!r} cannot be imported ({error}): write package.module:function") from error
    if not callable(given):
        raise UsageError(f"token {name!r} is no function: write `azure` or package.module:function")
    return _asynchronous(given)


def _asynchronous(function: Callable[[], str | Awaitable[str]]) -> TokenSource:
    async def token() -> str:
        found = function()
        return found if isinstance(found, str) else await found

    return token
