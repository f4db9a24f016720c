"""One HTTP request of this process itself, not of a browser: to http addresses only, bounded in bytes and time."""

from __future__ import annotations

import email.message
import http.client
import time
import urllib.request
from collections.abc import Mapping
from typing import IO

from exact.safety import is_web, origin

_CHUNK = 1 << 16
_NO_HEADERS: Mapping[str, str] = {}


def fetch(
    url: str, body: bytes | None = None, *, method: str = "", headers: Mapping[str, str] = _NO_HEADERS, seconds: float, most: int
) -> bytes:
    """Return the content at an address, of at most `most` bytes, within `seconds`.

    Redirects are followed to http addresses alone; headers are not sent along to another origin. `method`: POST with a body and GET
    without one, by default.

    Raises OSError where the answer is no such content: HTTPError for a status from 400 on; and http.client's HTTPException.
    """
    end = time.monotonic() + seconds
    if not is_web(url):
        raise OSError(f"{url[:200]!r} is no web address: write http://host/path")
    try:
        request = urllib.request.Request(url, body, dict(headers), method=method or None)
        with urllib.request.build_opener(_Redirects()).open(request, timeout=seconds) as response:
            return _read(response, end, most)
    except ValueError as error:  # a header, a name or an address that cannot be sent
        raise OSError(str(error)) from error


def _read(response: IO[bytes], end: float, most: int) -> bytes:
    data = bytearray()
    length = getattr(response, "length", None)
    while part := response.read1(_CHUNK):  # type: ignore[attr-defined] # http.client's, which returns what has arrived
        data += part
        if len(data) > most:
            raise OSError(f"the answer has more than {most:,} bytes")
        if time.monotonic() > end:
            raise TimeoutError("the answer did not end in time")
    if length is not None and len(data) < length:
        raise http.client.IncompleteRead(bytes(data), length - len(data))
    return bytes(data)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects to web addresses, without headers to another origin than the first."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: email.message.Message, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request that a redirect asks for. Raises OSError where it may not be sent."""
        if not is_web(newurl):
            raise OSError(f"it redirects to {newurl[:200]!r}, which is no web address")
        found = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type] # typeshed wants HTTPMessage
        if found is not None and origin(newurl) != origin(req.full_url):
            found.headers.clear()
        return found
