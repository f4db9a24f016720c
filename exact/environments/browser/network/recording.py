"""Recorded traffic of a site, without credentials, that can be replayed without the site.

A file has one JSON object a line: the request (method, address, digest of the body) and the answer (status, headers, body), scrubbed by
scrub.py. Bodies of requests are not written.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from exact.config import RecordingConfig
from exact.environments.browser.network import scrub
from exact.errors import EnvironmentFailure
from exact.untrusted import read_bounded

_MOST_BYTES = 1 << 30
"""Bytes of the largest file of exchanges."""

MaskText = Callable[[str], str]


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its answer."""

    method: str
    url: str
    sent: str
    """Hexadecimal SHA-256 of the request's scrubbed body; empty if there was none."""
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @property
    def key(self) -> tuple[str, str, str]:
        """The properties by which equal requests are recognized."""
        return self.method, self.url, self.sent


class Recording:
    """A file of exchanges. Equal requests get their answers in the recorded order, and the last answer repeatedly after that."""

    def __init__(self, path: Path, mode: Literal["record", "replay"]) -> None:
        """Open a file, to append to it or to replay it. Raises EnvironmentFailure if it cannot be replayed."""
        self.path, self.mode = path, mode
        self._exchanges: defaultdict[tuple[str, str, str], list[RecordedExchange]] = defaultdict(list)
        if mode == "record":
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._read_exchanges()  # a file that is not a recording is not written to
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
        else:
            for answer in self._read_exchanges():
                self._exchanges[answer.key].append(answer)

    def record(
        self, request: Mapping[str, str], status: int, headers: Iterable[tuple[str, str]], body: bytes, mask: MaskText = scrub.unchanged
    ) -> None:
        """Append an exchange. `request`: `method`, `url` and, if it has a body, `postData`. `mask` masks secrets."""
        given = tuple(headers)
        kind = next((value for name, value in given if name.lower() == "content-type"), "")
        method, url, sent = _key(request, mask)
        answer = RecordedExchange(
            method=method,
            url=url,
            sent=sent,
            status=status,
            headers=tuple((name, mask(value)) for name, value in scrub.headers(given)),
            body=scrub.body(body, kind, mask),
        )
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(answer) + b"\n")

    def answer(self, request: Mapping[str, str], mask: MaskText = scrub.unchanged) -> RecordedExchange | None:
        """Return the next answer to a request; None if it was never recorded."""
        found = self._exchanges.get(_key(request, mask))
        if not found:
            return None
        return found.pop(0) if len(found) > 1 else found[0]

    def _read_exchanges(self) -> list[RecordedExchange]:
        try:
            lines = read_bounded(self.path, _MOST_BYTES).splitlines()
            return [msgspec.json.decode(line, type=RecordedExchange) for line in lines]
        except OSError as error:
            raise EnvironmentFailure(f"no recorded traffic at {self.path}: record it first") from error
        except (msgspec.MsgspecError, RecursionError) as error:
            raise EnvironmentFailure(f"{self.path} is no recorded traffic: {error}: record it again") from error


def recording_of(config: RecordingConfig) -> Recording | None:
    """Open the recording that a configuration names; None if it names none. Raises EnvironmentFailure if it cannot be replayed."""
    return Recording(Path(config.path).expanduser(), config.mode) if config.path else None


def _key(request: Mapping[str, str], mask: MaskText) -> tuple[str, str, str]:
    sent = request.get("postData", "")
    digest = hashlib.sha256(mask(scrub.form(sent)).encode()).hexdigest() if sent else ""
    return request["method"], mask(scrub.address(request["url"])), digest


def encoded(body: bytes) -> str:
    """Return a body in base64, as CDP takes it."""
    return base64.b64encode(body).decode()
