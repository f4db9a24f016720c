"""Programs in virtual environments of their own, which have other packages than this one."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(name: str, option: str, *arguments: str, path: Path, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    """Run a program in `.bench/venvs/<name>`, with this checkout as the installed `exact`. Skips where the environment is not there."""
    python = ROOT / ".bench" / "venvs" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {python.relative_to(ROOT)}: shells/setup.sh {option}")
    info = path / "exact_agent-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: exact-agent\nVersion: 0\n")
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
    return subprocess.run([str(python), *arguments], cwd=path, env=env, capture_output=True, text=True, timeout=timeout)
