"""The text of a PDF as a page: the headless browser has no PDF viewer, and agents read text."""

from __future__ import annotations

import io
from html import escape

MAX_PAGES = 200
"""Most pages of a document whose text is shown."""
MISSING = "The text of PDF documents is not shown here: pip install 'exact-agent[pdf]'."


def as_page(data: bytes, name: str) -> bytes:
    """Return the text of a PDF as HTML, page by page. An unreadable PDF becomes a page that says so."""
    title = name.rpartition("/")[2] or "document.pdf"
    try:
        import pypdf
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError:
        return _page(title, f"<p>{escape(MISSING)}")
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        total = len(reader.pages)
        pages = [_section(i + 1, total, reader.pages[i].extract_text()) for i in range(min(total, MAX_PAGES))]
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, RecursionError) as error:
        return _page(title, f"<p>This PDF cannot be read: {escape(type(error).__name__)}.")
    rest = f"<p>{total - MAX_PAGES} more pages are left out." if total > MAX_PAGES else ""
    return _page(title, "".join(pages) + rest)


def _section(number: int, total: int, text: str) -> str:
    lines = "".join(f"<p>{escape(line)}" for line in text.splitlines() if line.strip())
    return f"<section aria-label='Page {number} of {total}'><h2>Page {number} of {total}</h2>{lines or '<p>(no text)'}</section>"


def _page(title: str, body: str) -> bytes:
    return f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><main>{body}</main>".encode()
