"""Hooks of mkdocs: pages that are made from the code, links to files of the repository, frames of tables, and drawings in the text."""

from __future__ import annotations

import json
import re
import subprocess
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FRONT = "index.md"
KEYS = {"key", "option", "field"}
"""First headings of the tables that are lists of keys: their rows wrap on any screen."""
_TABLE = re.compile(r"<table>.*?</table>", re.S)
_ROW = re.compile(r"<tr>\s*<td.*?</tr>", re.S)
_CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
_DRAWING = re.compile(r'<img alt="([^"]*)" src="([^"]+/drawn/[\w-]+\.svg)" ?/?>')
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference, which the project's own interpreter makes."""
    command = [str(ROOT / ".venv" / "bin" / "python"), str(Path(__file__).with_name("reference.py"))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise PluginError(f"the reference cannot be made: {done.stderr.strip().splitlines()[-1:]}")
    for name, text in json.loads(done.stdout).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write links to files outside of docs/ as their paths: the site does not have them. A path that does not exist is an error."""
    if page.file.src_uri == FRONT:
        page.meta |= {"template": "home.html", "hide": ["navigation", "toc"]}
    folder = (Path(page.file.abs_src_path).parent if page.file.abs_src_path else ROOT / "docs" / Path(page.file.src_uri).parent).resolve()

    def plain(match: re.Match[str]) -> str:
        text, target = match[1], match[2].partition("#")[0]
        place = (folder / target).resolve()
        if not target or place.is_relative_to(ROOT / "docs"):
            return match[0]
        if not place.exists():
            raise PluginError(f"{page.file.src_uri}: the link to {target} leads nowhere")
        name = f"`{place.relative_to(ROOT)}`"
        return name if text in (name.strip("`"), place.name, name) else f"{text} ({name})"

    return _LINK.sub(plain, markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Give each table a frame that scrolls and that the keyboard reaches, and put drawings into the page, whose colours they take."""
    source = ROOT / "docs" / Path(page.file.src_uri).parent
    return _DRAWING.sub(lambda match: (source / match[2]).resolve().read_text("utf-8"), _TABLE.sub(_framed, html))


def _framed(match: re.Match[str]) -> str:
    headings = [re.sub(r"<[^>]+>", "", each).strip() for each in re.findall(r"<th[^>]*>(.*?)</th>", match[0], re.S)]
    table = _CODE.sub(_breakable, match[0].replace("<table>", '<table class="plain">', 1))
    if not headings or headings[0] not in KEYS:
        label = escape(f"Table of {', '.join(filter(None, headings))}")
        return f'<div class="table" tabindex="0" role="region" aria-label="{label}">{table}</div>'

    def labelled(row: re.Match[str]) -> str:
        cells = re.findall(r"<td[^>]*>.*?</td>", row[0], re.S)
        for i, heading in enumerate(headings[1:-1], 1):
            if heading not in ("values", "type") and cells[i] != "<td></td>":
                cells[i] = cells[i].replace("<td", f'<td data-label="{escape(heading)}"', 1)
        return f"<tr>{''.join(cells)}</tr>"

    return f'<div class="table keys">{_ROW.sub(labelled, table)}</div>'


def _breakable(code: re.Match[str]) -> str:
    """Return a piece of code that may be broken after its signs, so that its words stay whole."""
    return re.sub(r"(?<=[|.,_/=])(?=\w)", "<wbr>", code[0])
