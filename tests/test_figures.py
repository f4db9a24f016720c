"""The page of figures is what the results say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_of_figures_is_made_of_the_results_that_are_kept() -> None:
    code = "import sys; sys.path.insert(0, 'bench'); import figures; print(figures.page(), end='')"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs/results/figures.md").read_text(), "run python bench/figures.py"
