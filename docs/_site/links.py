"""Check that every link and picture of a built site leads to a file and an anchor of it: `links.py SITE`. Other hosts are not asked."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        for name in ("href", "src"):
            if (value := found.get(name)) and not value.startswith(("mailto:", "data:", "javascript:")):
                (self.outside if urlsplit(value).netloc else self.links).append(value)
                if urlsplit(value).netloc and tag in ("script", "img", "link") and found.get("rel") != "canonical":
                    self.links.append(f"(loaded from elsewhere) {value}")


def dead(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each part that is loaded from elsewhere."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    lines = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are absolute: it is shown at any address
            continue
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or unquote(parts.fragment) not in anchors:
                lines.append(f"{path.relative_to(site.resolve())}: {link}")
    return sorted(set(lines))


if __name__ == "__main__":
    found = dead(Path(sys.argv[1]))
    print("\n".join(found) or f"docs: {len(list(Path(sys.argv[1]).rglob('*.html')))} pages, no dead link")
    sys.exit(bool(found))
