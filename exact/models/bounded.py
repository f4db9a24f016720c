"""Bodies of servers' answers: bounded in bytes, also when they are decompressed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

MOST_BYTES = 64 << 20
"""Bytes of the largest answer. The largest ones hold many vectors, or the likeliest tokens of long texts."""
_ENCODINGS = ("gzip", "x-gzip", "deflate")
_EITHER = 47
"""Window bits by which zlib reads gzip's and its own format."""


def bounded_stream(stream: Any, encoding: str) -> Any:
    """Return a stream of the HTTP client that ends with an OSError where its plain content has more than MOST_BYTES.

    `encoding`: the answer's header. The result is of the stream's own base class, which the client asks for.
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
    """Yield the decompressed content in parts of at most MOST_BYTES + 1 bytes. Raises OSError where it does not read."""
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
