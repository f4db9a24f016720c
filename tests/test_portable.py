"""Systems other than Linux, which a child without `fcntl`, `/proc`, user ids and POSIX signals stands in for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import exact
from exact import version
from exact.environments.browser.launch import find

ELSEWHERE = """
import builtins, io, os, signal, sys
for name in ("fcntl", "termios", "pwd", "grp", "resource", "pty", "tty"):
    sys.modules[name] = None
for name in ("geteuid", "getuid", "getegid", "getgid", "killpg", "getpgid", "setsid", "sysconf", "O_CLOEXEC", "O_NOFOLLOW"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGKILL

def hide(name):
    real = getattr(os, name)
    def call(path=".", *args, **options):
        text = os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if isinstance(text, str) and (text == "/proc" or text.startswith("/proc/")) and "self" not in text:
            raise FileNotFoundError(2, "No such file or directory", text)
        return real(path, *args, **options)
    setattr(os, name, call)

for name in ("stat", "lstat", "scandir", "listdir", "open", "readlink"):
    hide(name)
real_open = io.open
def opened(file, *args, **options):
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return real_open(file, *args, **options)
io.open = builtins.open = opened
"""
"""Program that takes away what only POSIX or only Linux has. Standard modules that need it are loaded before."""
LOADED = "import numpy, PIL.Image, asyncio, subprocess, tempfile, shutil, pathlib, ssl, uuid, platform, multiprocessing\n"

PLAIN_PATH = (
    "exact", "exact.cli.main", "exact.cli.run", "exact.cli.attempt", "exact.cli.bench", "exact.cli.run", "exact.cli.show",
    "exact.cli.doctor", "exact.cli.doctor", "exact.cli.init", "exact.cli.check", "exact.library.solve", "exact.runs.runner",
    "exact.runs.attempt.attempt", "exact.environments.browser.environment", "exact.environments.browser.served",
    "exact.environments.process.worker", "exact.benchmarks.miniwob.suite", "exact.report", "exact.environments.check",
    "exact.benchmarks.desktop.suite", "exact.benchmarks.sites.suite", "exact.environments.sites.site",
)  # fmt: skip


def elsewhere(code: str, folder: Path, *, loaded: str = LOADED, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program in a child that lacks what other systems lack."""
    environ = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1]), "EXACT_RUNSC": "/nowhere"}
    program = loaded + ELSEWHERE + code
    return subprocess.run([sys.executable, "-c", program], cwd=folder, env=environ, capture_output=True, text=True, timeout=timeout)


def test_everything_of_the_plain_path_imports_elsewhere(tmp_path: Path) -> None:
    code = f"import importlib\nfor name in {PLAIN_PATH}:\n    importlib.import_module(name)\nprint('imported')"
    done = elsewhere(code, tmp_path)
    assert done.stdout == "imported\n", done.stderr[-2000:]


def test_a_search_runs_elsewhere(tmp_path: Path) -> None:
    code = "from exact.cli.main import main; sys.exit(main(['run', 'miniwob/click-test', '--set', 'search.iterations=2', '--out', 'run']))"
    playwright = "import playwright.async_api\n"  # names signals in its own code
    done = elsewhere(code, tmp_path, loaded=LOADED + playwright)
    assert done.returncode == 0 and '"score":1.0' in (tmp_path / "run" / "results.jsonl").read_text(), done.stderr[-3000:]


def test_doctor_runs_elsewhere(tmp_path: Path) -> None:
    done = elsewhere("from exact.cli.main import main; main(['doctor'])", tmp_path)
    assert "not reported by this system" in done.stdout, done.stderr[-3000:]


def test_two_processes_do_not_share_a_scratch_folder_elsewhere(tmp_path: Path) -> None:
    code = "from exact.machine import scratch\nwith scratch('test') as one, scratch('test') as two: print(one != two, one.exists())"
    assert elsewhere(code, tmp_path).stdout == "True True\n"


@pytest.mark.parametrize("name", ["Google Chrome", "Chromium"])
def test_a_browser_among_the_applications_of_macos_is_found(name: str, tmp_path: Path) -> None:
    program = tmp_path / f"{name}.app" / "Contents" / "MacOS" / name
    program.parent.mkdir(parents=True)
    program.write_text("")
    assert find._application((tmp_path,)) is None
    program.chmod(0o755)
    assert find._application((tmp_path / "none", tmp_path)) == program


@pytest.mark.parametrize(("system", "said"), [("win32", "not tested on Windows"), ("darwin", "not tested on darwin"), ("linux", "")])
def test_a_system_that_is_not_linux_is_told_what_it_lacks(system: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    lacks = version.system_lacks()
    assert said in lacks and bool(lacks) == (system != "linux")
