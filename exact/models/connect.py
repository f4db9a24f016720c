"""Addresses of endpoints, and tokens in place of keys."""

from __future__ import annotations

import importlib
import ipaddress
import urllib.parse
from collections.abc import Awaitable, Callable

from exact.errors import UsageError

TokenSource = Callable[[], Awaitable[str]]
"""A function that returns the token of one request."""

_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


def parse_base_url(base_url: str) -> tuple[str, bool]:
    """Return a base URL without any credentials in it, and whether it is on loopback. Raises UsageError where it is no HTTP address."""
    try:
        parts = urllib.parse.urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(f"base_url {base_url!r} is no URL of a model server: write e.g. http://127.0.0.1:8000/v1")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}", _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def token_source(name: str) -> TokenSource:
    """Return the token source of a name: `azure` (DefaultAzureCredential), or `package.module:function`.

    The function may be asynchronous. Raises UsageError where it cannot be imported.
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
