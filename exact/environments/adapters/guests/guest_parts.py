"""Shared parts of the guests in this folder. Standard library only, Python 3.9 and later."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

Element = dict[str, Any]
"""Plain data with the fields of exact.observation.Element."""


class ActionError(Exception):
    """Raised if an action does not fit; the state is unchanged. The guest's protocol recognises it by its name."""


def written(elements: Iterable[Element]) -> str:
    """Return elements as text, one per line and indented: `[4] button "Submit" focused`."""
    return "\n".join(_line(each) for each in elements)


def _line(element: Element) -> str:
    parts = ["  " * int(element.get("depth", 0)) + f"[{element['id']}] {element['role']}"]
    if element.get("name"):
        parts.append(json.dumps(element["name"], ensure_ascii=False))
    if element.get("value") is not None:
        parts.append("value=" + json.dumps(element["value"], ensure_ascii=False))
    parts.extend(element.get("states", ()))
    if not element.get("visible", True):
        parts.append("(outside the view)")
    return " ".join(parts)


def digest(parts: object) -> str:
    """Return a digest of plain data."""
    text = json.dumps(parts, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def identity(elements: Iterable[Element]) -> list[list[object]]:
    """Return the fields of elements that identify a state: ids and boxes are left out."""
    names = ("depth", "role", "name", "value", "states", "visible")
    return [[each.get(name) for name in names] for each in elements]


def png(pixels: Any) -> bytes:
    """Return the PNG of an array of bytes of shape `(height, width, 3)`, `(height, width, 1)` or `(height, width)`."""
    height, width, *rest = pixels.shape
    colours = rest[0] if rest else 1
    row = width * colours
    data = pixels.tobytes()
    rows = b"".join(b"\0" + data[at * row : (at + 1) * row] for at in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 0, 0, 0, 0)
    parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows, 1)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def use_browser(executable: str) -> None:
    """Make Playwright launch this browser for every launch, without features that need a network or privileges."""
    from playwright.sync_api import BrowserType

    launch = BrowserType.launch
    quiet = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]

    def launched(self: Any, **options: Any) -> Any:
        given = [*(options.pop("args", None) or ()), *quiet, "--disable-component-update", "--disable-sync"]
        return launch(self, **{**options, "executable_path": executable, "args": given})

    BrowserType.launch = launched  # type: ignore[method-assign]


SETTLED_SCRIPT = """
() => new Promise(done => {
  let left = 40, timer = 0;
  const end = () => { watcher.disconnect(); clearTimeout(timer); done(); };
  const again = () => { clearTimeout(timer); if (left-- > 0) timer = setTimeout(end, 60); else end(); };
  const watcher = new MutationObserver(again);
  watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  requestAnimationFrame(again);
})
"""
"""Script that waits until nothing has changed for 60 ms, for at most 40 changes."""


def wait_until_settled(pages: Iterable[Any]) -> None:
    """Wait until Playwright pages have settled, instead of a fixed time."""
    for page in pages:
        try:
            page.wait_for_load_state("domcontentloaded", timeout=10_000)
            page.evaluate(SETTLED_SCRIPT)
        except Exception:  # noqa: BLE001 - the page navigates or closes, which the next observation shows
            continue
