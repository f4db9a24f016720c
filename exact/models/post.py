"""Requests to an endpoint over the SDK's HTTP client: JSON out, text back, and what the transport or the server said against it.

Only the client is the SDK's, with its pools and limits. What the SDK does around a request (options, headers, copies, types) took longer
than the exchange itself: see bench/model_client.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, NoReturn

import msgspec

from exact.models.connect import token_source
from exact.models.providers import Endpoint, Provider

Token = Callable[[], Awaitable[str]]
_NEVER_SENT = ("ConnectError", "ConnectTimeout")


class Refusal(Exception):
    """The server answered with an error status."""

    def __init__(self, status: int, message: str, *, code: str, param: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param, self.headers = status, message, code, param, headers


class Unanswered(Exception):
    """No whole answer came. `sent`: whether the server may have had the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NoToken(Unanswered):
    """The source of tokens gave none, so nothing was sent."""


class Post:
    """One endpoint's requests. Azure's name the deployment in the path and the version in the query."""

    def __init__(self, provider: Provider, place: Endpoint, model: str, *, key: str, local: bool, timeout: float) -> None:
        """A proxy of the surroundings is not used for loopback. Raises UsageError for a source of tokens that is none."""
        import openai

        self._http: Any = openai.DefaultAsyncHttpxClient(timeout=timeout, trust_env=not local)
        self._transport: Any = importlib.import_module("httpx2" if int(openai.__version__.partition(".")[0]) >= 3 else "httpx")
        self._timeout = timeout
        self._azure, self._version = provider.kind == "azure", provider.api_version
        self._base = place.base_url.rstrip("/") + ("/openai" if self._azure else "")
        self._model = model
        self._token: Token | None = token_source(provider.token) if provider.token else None
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"exact/{version('exact-agent')}"}
        if self._token is None:
            self._headers |= {"api-key": key} if self._azure else {"Authorization": f"Bearer {key or 'none'}"}
        self._addresses: dict[str, Any] = {}

    async def __call__(self, path: str, body: Mapping[str, Any]) -> str:
        """The text of the answer to a body posted at a path. Raises Refusal, Unanswered; UnicodeError for what is no text."""
        return await self._exchange("POST", path, msgspec.json.encode(body), self._timeout)

    async def get(self, path: str, *, timeout: float) -> str:
        """The text at a path. Raises Refusal, Unanswered."""
        return await self._exchange("GET", path, b"", timeout)

    async def close(self) -> None:
        await self._http.aclose()

    async def _exchange(self, method: str, path: str, content: bytes, timeout: float) -> str:
        headers = self._headers
        if self._token is not None:
            headers = headers | {"Authorization": f"Bearer {await _given(self._token)}"}
        seconds = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        request = self._transport.Request(
            method, self._address(method, path), headers=headers, content=content or None, extensions={"timeout": seconds}
        )  # fmt: skip
        try:
            response = await self._http.send(request)
        except (self._transport.HTTPError, self._transport.StreamError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise Unanswered(reason, sent=type(error).__name__ not in _NEVER_SENT) from error
        if response.status_code >= 400:
            _refuse(response)
        text: str = response.content.decode()
        return text

    def _address(self, method: str, path: str) -> Any:
        """Parsed once for each path."""
        if path not in self._addresses:
            url = self._base + path
            if self._azure:
                deployment = f"/deployments/{self._model}" if method == "POST" else ""
                url = f"{self._base}{deployment}{path}?api-version={self._version}"
            self._addresses[path] = self._transport.URL(url)
        return self._addresses[path]


async def _given(token: Token) -> str:
    try:
        return await token()
    except Exception as error:
        raise NoToken(f"{type(error).__name__}: {error}", sent=False) from error


def _refuse(response: Any) -> NoReturn:
    """Raises the Refusal that a response is: in the server's own words where it gives any."""
    body: Any
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeError):
        body = response.content[:1000].decode(errors="replace")
    found = body.get("error", body) if isinstance(body, dict) else body
    said = found if isinstance(found, dict) else {}
    message = said.get("message") if isinstance(said.get("message"), str) else f"{body}"
    raise Refusal(
        response.status_code, str(message), code=str(said.get("code") or ""), param=str(said.get("param") or ""), headers=response.headers
    )
