"""Hooks of mkdocs: pages that are made from the code, and links to files of the repository."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
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
