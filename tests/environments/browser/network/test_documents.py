"""What becomes of the responses to navigations."""

from __future__ import annotations

import pytest

from exact.environments.browser.network.body import DocumentFate, fate_of

TYPES = [
    "",
    "text/html",
    "text/plain",
    "x",
    "*/*",
    "unknown/unknown",
    "application/json",
    "image/png",
    "image/svg+xml",
    "application/xhtml+xml",
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("status", [200, 206, 299, 300, 302, 304, 404, 420, 430, 450, 520, 599, 999])
def test_whatever_may_become_a_document_gets_the_policy(status: int, kind: str) -> None:
    for disposition in ("inline", "attachment=x", "", "x=attachment", 'filename="attachment"'):
        headers = [{"name": "Content-Type", "value": kind}, {"name": "content-disposition", "value": disposition}]
        assert fate_of(status, headers) is DocumentFate.DOCUMENT
    assert fate_of(status, [{"name": "Content-Type", "value": kind}]) is DocumentFate.DOCUMENT


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (204, {}, DocumentFate.PASSED),
        (302, {"Location": "/next"}, DocumentFate.PASSED),
        (302, {"Location": " "}, DocumentFate.DOCUMENT),
        (300, {"Location": "/next"}, DocumentFate.DOCUMENT),
        (200, {"Content-Disposition": "ATTACHMENT; filename=a.html", "Content-Type": "text/html"}, DocumentFate.PASSED),
        (200, {"Content-Type": "application/zip"}, DocumentFate.DOWNLOAD),
        (200, {"Content-Type": "text/csv; charset=utf-8"}, DocumentFate.DOWNLOAD),
        (200, {"Content-Type": "application/octet-stream"}, DocumentFate.DOWNLOAD),
        (200, {"Content-Type": "application/vnd.oasis.opendocument.text"}, DocumentFate.DOWNLOAD),
        (404, {"Content-Type": "application/zip"}, DocumentFate.DOCUMENT),
    ],
)
def test_redirects_empty_answers_and_downloads_are_no_documents(status: int, headers: dict[str, str], expected: DocumentFate) -> None:
    assert fate_of(status, [{"name": name, "value": value} for name, value in headers.items()]) is expected
