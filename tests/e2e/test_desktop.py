"""A task on a desktop, searched by the built-in agent from the command line to the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exact.cli.main import main
from exact.environments.desktop.factory import absent

QUICK = {
    "browser.sandbox": "never", "browser.screenshots": "false", "search.iterations": 6, "search.k": 3, "search.depth": 1,
    "limits.actions": 6, "reflection.kind": "none",
}  # fmt: skip
"""One step deep: two ways to save look equally good, and a file dialog that is slow to fill does not decide between them."""


def test_a_note_is_written_and_saved_by_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if lack := absent() or ", ".join(name for name in ("mousepad",) if not shutil.which(name)):
        pytest.skip(f"no desktop: {lack}")
    run = tmp_path / "run"
    settings = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    assert main(("run", "desktop/write-note", *settings, "--out", str(run), "--json")) == 0
    line = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    assert (line["status"], line["score"]) == ("scored", 1.0), capsys.readouterr().out
    journal = next(run.glob("tasks/*/journal.jsonl")).read_text()
    assert '"searched"' in journal or journal.count("\n") > 10
    assert "~/note.txt - Mousepad" in next(run.glob("tasks/*/report.html")).read_text()
