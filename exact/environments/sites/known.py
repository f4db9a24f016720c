"""The secrets of a log-in, as far as its environment knows them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from exact.config import LoginConfig
from exact.environments.sites.accounts import variable_of
from exact.secrecy.state import looks_random, state_secrets
from exact.secrecy.values import Secret

LARGEST_STATE = 16 << 20
"""Bytes of the largest file of a log-in that is read."""
_WORD_LIKE = re.compile(r"(?i)auth|cookie|token|secret|key|pass|session|credential|signature|csrf")


def browser_secrets(login: LoginConfig, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield all secrets of a log-in: those that agents type, and those that they do not."""
    yield from (Secret(name, value) for name, value in resolved(login.secrets, environ))
    yield from login_secrets(login, environ)


def login_secrets(login: LoginConfig, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the secrets of a log-in that no agent types: headers, basic authentication and a saved session."""
    for name, value in resolved(login.headers, environ):
        if _WORD_LIKE.search(name) or login.headers[name].startswith(("$", "<secret:")) or (len(value) >= 8 and looks_random(value)):
            scheme, _, rest = value.strip().partition(" ")
            yield Secret(f"header {name}", value)
            if rest and len(rest.strip()) >= 6:
                yield Secret(f"header {name}", rest.strip())
            if scheme.lower() == "basic":
                yield from _basic(rest)
    for name, value in resolved({"password": login.password}, environ):
        yield Secret(name, value)
        for _, user in resolved({"user": login.user}, environ):
            pair = f"{user}:{value}"
            yield Secret("basic credentials", pair)
            yield Secret("basic credentials", base64.b64encode(pair.encode()).decode())
    if login.state:
        yield from _of_state(Path(login.state))


def _of_state(path: Path) -> Iterator[Secret]:
    try:
        path = path.expanduser()
        if path.is_file() and path.stat().st_size <= LARGEST_STATE:
            state = json.loads(path.read_text("utf-8"))
            if isinstance(state, dict):
                yield from state_secrets(state)
    except (OSError, ValueError, RecursionError):
        return


def _basic(encoded: str) -> Iterator[Secret]:
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return
    yield Secret("basic credentials", pair)
    if len(password := pair.partition(":")[2]) >= 4:
        yield Secret("basic credentials", password)


def resolved(values: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the values that are given or set."""
    for name, text in values.items():
        held = re.fullmatch(r"<secret:([^<>]+)>", text)
        value = environ.get(variable_of(held[1]), "") if held else environ.get(text[1:], "") if text.startswith("$") else text
        if value:
            yield name, value
