"""Pictures without the texts that they carry beside their pixels."""

from __future__ import annotations

_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP")
_JPEG = b"\xff\xd8"


def without_texts(data: bytes) -> bytes | None:
    """Return a PNG or JPEG without its comments, EXIF and other texts; None if the data is neither."""
    if data.startswith(_PNG):
        return _png(data)
    if data.startswith(_JPEG):
        return _jpeg(data)
    return None


def _png(data: bytes) -> bytes:
    parts, at = [_PNG], len(_PNG)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if kind not in _TEXTS:
            parts.append(data[at:end])
        at = end
        if kind == b"IEND":  # no viewer shows data after it
            break
    return b"".join(parts)


def _jpeg(data: bytes) -> bytes:
    parts, at = [_JPEG], 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if not (data[at + 1] == 0xFE or 0xE1 <= data[at + 1] <= 0xEF):
            parts.append(data[at:end])
        at = end
    return b"".join((*parts, data[at:]))
