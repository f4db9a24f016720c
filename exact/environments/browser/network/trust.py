"""Trust in sites whose certificates are signed by authorities of the user, by pins of the sites' public keys.

Chromium's arguments take pins of keys, not authorities. So each site's certificate is verified here before its key is pinned.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from exact.environments.browser.network.dial import Destinations
from exact.errors import EnvironmentFailure, UsageError
from exact.untrusted import read_bounded

_MOST_BYTES = 8 << 20
"""Bytes of the largest file of authorities."""
_CONNECT_TIMEOUT = 10.0
"""Seconds."""
_VERSION_TAG = 0xA0
"""Tag of the version, the only optional field before the key."""


async def pinned_keys(authorities: Sequence[str], origins: Iterable[str], hosts: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return pins of the public keys of the https origins: base64 SHA-256, as in Outside's `trusted`.

    `authorities`: files with certificates in PEM. `hosts`: addresses of names, as in Outside. Raises UsageError for a file without
    certificates, and EnvironmentFailure for a site that does not answer or that none of the authorities has signed.
    """
    if not authorities:
        return ()
    context = _context_trusting(authorities)
    secure = [each for each in dict.fromkeys(origins) if each.startswith("https:")]
    return tuple(await asyncio.gather(*(asyncio.to_thread(_pin, context, each, hosts or {}) for each in secure)))


def _context_trusting(authorities: Sequence[str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for path in authorities:
        try:
            context.load_verify_locations(cadata=read_bounded(Path(path).expanduser(), _MOST_BYTES).decode("ascii", "replace"))
        except (OSError, ValueError) as error:  # OpenSSL's error is an OSError
            raise UsageError(f"browser.authorities: {path} holds no certificates in PEM: {error}") from error
    return context


def _pin(context: ssl.SSLContext, origin: str, hosts: Mapping[str, str]) -> str:
    parts = urlsplit(origin)
    name, port = parts.hostname or "", parts.port or 443
    server = Destinations(hosts).server(name, port)
    try:
        with (
            socket.create_connection((server.host, server.port), timeout=_CONNECT_TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
        ):
            certificate = secured.getpeercert(binary_form=True)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or error
        raise EnvironmentFailure(f"the certificate of {origin} is not signed by the authorities in browser.authorities: {why}") from error
    except OSError as error:
        raise EnvironmentFailure(f"{origin} does not answer: {error}") from error
    assert certificate is not None
    return base64.b64encode(hashlib.sha256(public_key(certificate)).digest()).decode()


def public_key(certificate: bytes) -> bytes:
    """Return the bytes of the SubjectPublicKeyInfo of a DER certificate (RFC 5280, 4.1)."""
    at, fields = _content_range(certificate, _content_range(certificate, 0)[0])[0], list[bytes]()
    while len(fields) < 6:  # serial number, algorithm, issuer, validity, subject, key
        _, end = _content_range(certificate, at)
        if certificate[at] != _VERSION_TAG:
            fields.append(certificate[at:end])
        at = end
    return fields[-1]


def _content_range(data: bytes, at: int) -> tuple[int, int]:
    """Return start and end of the content of the DER element at an offset."""
    size, start = data[at + 1], at + 2
    if size & 0x80:
        width = size & 0x7F
        size, start = int.from_bytes(data[start : start + width], "big"), start + width
    return start, start + size
