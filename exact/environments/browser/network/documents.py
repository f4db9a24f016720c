"""What becomes of the response to a navigation: every document gets the content security policy, whatever its status and type.

Only what Chromium makes no document of is passed on as it is: redirects, answers without content, and downloads. What it downloads because
of its type is named a download, so that a look at the content cannot make it a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum

_REDIRECTS = (301, 302, 303, 307, 308)
_NO_CONTENT = (204, 205)
ATTACHMENT = {"name": "Content-Disposition", "value": "attachment"}
"""The header that names a response a download. Chromium calls the file by the address."""
_ATTACHMENT = re.compile(r"\s*attachment\s*(;.*)?", re.IGNORECASE | re.DOTALL)
_TYPE = re.compile(r"\s*([a-z-]+/[a-z0-9!#$&^_.+-]+)\s*(;.*)?", re.IGNORECASE | re.DOTALL)
_SHOWN = re.compile(
    r".*(html|xml|json|script|rss|atom|manifest|multipart|mpegurl|dash).*|application/(ogg|mp4|unknown)|unknown/.*|image/.*|audio/.*|video/.*"
    r"|text/(?!(x-)?(csv|v?calendar|vcard|vcf|qif|comma-separated-values)|tab-separated-values|tsv|rtf|directory|ldif|ofx).*",
    re.IGNORECASE,
)
"""Types that may become documents."""


class DocumentFate(Enum):
    """What a response to a navigation becomes."""

    PASSED = "passed on"
    DOWNLOAD = "named a download"
    DOCUMENT = "a document with the policy"


def fate_of(status: int, headers: Iterable[Mapping[str, str]]) -> DocumentFate:
    """Return what becomes of a response, by its status and CDP's headers."""
    given = list(headers)
    if status in _NO_CONTENT or (status in _REDIRECTS and any(each.strip() for each in _values(given, "location"))):
        return DocumentFate.PASSED
    disposition, types = _values(given, "content-disposition"), _values(given, "content-type")
    if len(disposition) == 1 and _ATTACHMENT.fullmatch(disposition[0]):
        return DocumentFate.PASSED
    if 200 <= status < 300 and not disposition and len(types) == 1 and is_download(types[0]):
        return DocumentFate.DOWNLOAD
    return DocumentFate.DOCUMENT


def is_download(kind: str) -> bool:
    """Return whether Chromium downloads a content type, by its name alone."""
    found = _TYPE.fullmatch(kind)
    return found is not None and _SHOWN.fullmatch(found[1]) is None


def _values(headers: Iterable[Mapping[str, str]], name: str) -> list[str]:
    return [each["value"] for each in headers if each["name"].lower() == name]
