"""exact's agent in a study of AgentLab's, with the real package in its virtual environment."""

import importlib.resources
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".bench" / "venvs" / "agentlab" / "bin" / "python"


@pytest.mark.skipif(not PYTHON.exists(), reason="AgentLab is not installed: shells/setup.sh --agentlab")
def test_a_study_is_solved_by_the_built_in_policy(executable: str, tmp_path: Path) -> None:
    pages = Path(str(importlib.resources.files("miniwob"))) / "html" / "miniwob"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "EXACT_PYTHON": sys.executable, "EXACT_BROWSER": executable}
    env |= {"MINIWOB_URL": f"{pages.as_uri()}/", "AGENTLAB_EXP_ROOT": str(tmp_path)}
    study = [str(PYTHON), str(ROOT / "examples" / "interop" / "agentlab_study.py"), "miniwob.click-test-2"]
    done = subprocess.run(study, env=env, capture_output=True, text=True, timeout=180, cwd=tmp_path)
    assert done.stdout.endswith("miniwob.click-test-2: reward 1 after 1 steps\n"), done.stderr
