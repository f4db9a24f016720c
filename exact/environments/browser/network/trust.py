"""Certificate authorities of one's own: sites that they sign are trusted by their public keys.

Chromium takes pins of keys, not authorities. So each site's certificate is checked here, by the authorities' files, before it is pinned:
one that does not stand up to that is not trusted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from exact.errors import EnvironmentFailure, UsageError

_SECONDS = 10.0
_VERSION = 0xA0
"""Tag of the one field that may be left out."""


async def pinned_keys(authorities: Sequence[str], origins: Iterable[str], hosts: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The public keys of those sites with TLS which the authorities vouch for: base64 SHA-256, as Outside's `trusted`.

    `hosts`: names of servers that have none, as in Outside. Raises UsageError for a file that holds no certificate, and
    EnvironmentFailure for a site that does not answer or is not signed by any of them.
    """
    if not authorities:
        return ()
    context = _trusting(authorities)
    secure = [each for each in dict.fromkeys(origins) if each.startswith("https:")]
    return tuple(await asyncio.gather(*(asyncio.to_thread(_pin, context, each, hosts or {}) for each in secure)))


def _trusting(authorities: Sequence[str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for path in authorities:
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"browser.authorities: {path} holds no certificates in PEM: {error}") from error
    return context


def _pin(context: ssl.SSLContext, origin: str, hosts: Mapping[str, str]) -> str:
    parts = urlsplit(origin)
    name, port = parts.hostname or "", parts.port or 443
    place, colon, number = hosts.get(name, "").rpartition(":")
    address = (place, int(number)) if colon and number.isdigit() else (hosts.get(name) or name, port)
    try:
        with socket.create_connection(address, timeout=_SECONDS) as plain, context.wrap_socket(plain, server_hostname=name) as secured:
            certificate = secured.getpeercert(binary_form=True)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or error
        raise EnvironmentFailure(f"the certificate of {origin} is not signed by the authorities in browser.authorities: {why}") from error
    except OSError as error:
        raise EnvironmentFailure(f"{origin} does not answer: {error}") from error
    assert certificate is not None
    return base64.b64encode(hashlib.sha256(public_key(certificate)).digest()).decode()


def public_key(certificate: bytes) -> bytes:
    """The SubjectPublicKeyInfo of a DER certificate (RFC 5280, 4.1), as it stands there."""
    at, fields = _inside(certificate, _inside(certificate, 0)[0])[0], list[bytes]()
    while len(fields) < 6:  # serial number, algorithm, issuer, validity, subject, key
        _, end = _inside(certificate, at)
        if certificate[at] != _VERSION:
            fields.append(certificate[at:end])
        at = end
    return fields[-1]


def _inside(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of the DER element at a place begins and ends."""
    size, start = data[at + 1], at + 2
    if size & 0x80:
        width = size & 0x7F
        size, start = int.from_bytes(data[start : start + width], "big"), start + width
    return start, start + size
