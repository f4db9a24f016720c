"""`exact run` on a site that brings its services: environments fork by default, and fall back to replay where they cannot."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from exact.environments.restore.costs import UNMEASURED
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from tests.nobody import AS_NOBODY, nobody

SITES = Path(__file__).parent / "sites"
ROOT = Path(__file__).parents[2]
DEARER_THAN_A_WORLD = 1.0
"""Seconds that a page takes where a test is of environments: a quick one is replayed where that is measured to be cheaper."""
SMALL = (
    "search.iterations=10",
    "search.workers=2",
    "search.depth=3",
    "limits.actions=1",
    "browser.screenshots=false",
    "reflection.kind=none",
)


@pytest.fixture(scope="session")
def runsc(executable: str) -> str:
    """Skipped where there is no browser or no usable runsc."""
    try:
        return str(find_runsc().path)
    except EnvironmentFailure as error:
        pytest.skip(str(error))


def services(application: str, port: int, folder: Path, *, seconds: float = 0.0) -> Path:
    """Write a file that declares an application as the site's service, whose pages take the given time."""
    python, reads, env = "python3", [str(SITES)], {}
    if application == "flask_rows.py":
        flask = importlib.util.find_spec("flask")
        if flask is None or flask.origin is None:
            pytest.skip("flask is not installed: pip install 'exact-agent[test]'")
        python, env = sys.executable, {"PYTHONPATH": str(Path(flask.origin).parents[1])}
        reads += [sys.prefix, env["PYTHONPATH"]]
    service = {"command": [python, str(SITES / application), str(port), str(seconds)], "ready_url": f"http://127.0.0.1:{port}/", "env": env}
    file = folder / "services.yaml"
    file.write_text(json.dumps([{**service, "reads": reads}]))
    return file


def run(
    file: Path | None, port: int, out: Path, *settings: str, prefix: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    """`exact run` on the site, to its end."""
    command = [*prefix, sys.executable, "-m", "exact.cli", "run", "--url", f"http://127.0.0.1:{port}/", "--goal", "Add the row apple."]
    command += ["--out", str(out), *(["--services", str(file)] if file else [])]
    for setting in (*SMALL, *settings):
        command += ["--set", setting]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    )


def journal(out: Path) -> list[dict[str, Any]]:
    (found,) = (out / "tasks").rglob("journal.jsonl")
    return [json.loads(line) for line in found.read_text().splitlines()]


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def back(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each arrival of an environment at a state, and whether it was prefetched during model calls."""
    return [*of(events, "arrived"), *of(events, "prepared")]


def shown(out: Path, event: dict[str, Any]) -> str:
    """Return the rows that the page shows after a step."""
    (blob,) = out.rglob(f"{event['observation']}*")
    return json.loads(blob.read_text())["text"].partition("Rows: ")[2].partition('"')[0]


@pytest.mark.parametrize("application", ["flask_rows.py", "http_rows.py"])
def test_two_environments_are_alive_at_once_and_a_row_of_one_is_absent_in_its_sibling(application: str, runsc: str, tmp_path: Path) -> None:
    """A whole run on a site whose pages take a second, as a fork must be cheaper than a replay."""
    out = tmp_path / "run"
    done = run(services(application, 8000, tmp_path, seconds=DEARER_THAN_A_WORLD), 8000, out)
    assert done.returncode == 0, done.stdout + done.stderr
    events = journal(out)
    assert max(arrival["environments"] for arrival in of(events, "arrived")) >= 3, "the live environment and two that search"
    assert {arrival["match"] for arrival in of(events, "arrived")} == {"exact"}
    assert any(came["route"].startswith(("fork", "restore")) for came in back(events)), "environments are what it goes back by"
    first = {shown(out, act) for act in of(events, "acted") if act["node"] == 0 and act.get("wrote")}
    assert len(first) > 1 and all("," not in each for each in first), "each sibling has its own row only"
    (committed,) = of(events, "committed")
    assert committed["agrees"] and shown(out, committed) in {*first, "none"}


def test_a_user_without_rights_searches_in_environments_that_fork(runsc: str) -> None:
    with nobody(runsc) as variables:
        home = Path(variables["HOME"])
        done = run(services("http_rows.py", 8000, home), 8000, home / "run", prefix=AS_NOBODY, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        events = journal(home / "run")
        assert "environments do not fork" not in done.stderr
        assert max(arrival["environments"] for arrival in of(events, "arrived")) >= 3
        first = {shown(home / "run", act) for act in of(events, "acted") if act["node"] == 0 and act.get("wrote")}
        assert len(first) > 1 and all("," not in each for each in first)


@pytest.mark.parametrize("sandbox", ["required", "never"])
def test_stderr_of_a_service_is_in_the_run_for_its_owner_alone(sandbox: str, runsc: str, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "run" / "guest.log"
    done = run(services("http_rows.py", port, tmp_path), port, tmp_path / "run", f"browser.sandbox={sandbox}", "search.iterations=2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "] rows: listening\n" in log.read_text() and stat.S_IMODE(log.stat().st_mode) == 0o600


def test_without_a_sandbox_the_run_says_so_once_replays_and_explores_no_write(executable: str, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "run"
    done = run(services("http_rows.py", port, tmp_path), port, out, EXACT_RUNSC="/nowhere")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("environments do not fork here") == 1 and "simulations send no writes" in done.stderr
    events = journal(out)
    assert {arrival["route"] for arrival in of(events, "arrived")} <= {"reuse", "advance", "replay"}
    held = [act for act in of(events, "acted") if act.get("wrote")]
    assert held and all(effect["kind"] == "blocked" for act in held for effect in act["effects"])


def test_a_sandbox_that_is_required_and_not_to_be_had_fails_the_task(executable: str, tmp_path: Path) -> None:
    port = free_port()
    done = run(services("http_rows.py", port, tmp_path), port, tmp_path / "run", "browser.sandbox=required", EXACT_RUNSC="/nowhere")
    assert done.returncode == 1 and "browser.sandbox is required" in done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["observe", "free"])
def test_speculation_is_as_configured(mode: str, executable: str, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "run"
    done = run(services("http_rows.py", port, tmp_path), port, out, "browser.sandbox=never", f"browser.speculation={mode}")
    assert done.returncode == 0, done.stdout + done.stderr
    writes = [effect["kind"] for act in of(journal(out), "acted") for effect in act.get("effects", ()) if effect["method"] == "POST"]
    assert writes and set(writes) == {"blocked" if mode == "observe" else "request"}


def test_a_file_that_declares_no_services_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "services.yaml").write_text("- ready: http://127.0.0.1:8000/\n")
    done = run(tmp_path / "services.yaml", 8000, tmp_path / "run")
    assert done.returncode == 2 and "declares invalid services" in done.stderr and "Traceback" not in done.stderr


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_where_a_replay_is_cheaper_it_is_chosen_in_environments_that_fork_too(runsc: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "exact.cli", "run", "miniwob/click-checkboxes?seed=1", "--out", str(tmp_path / "run")),
            *(argument for setting in (*SMALL, "browser.sandbox=required") for argument in ("--set", setting)),
        ],
        capture_output=True, text=True, timeout=300, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    events = journal(tmp_path / "run")
    replays = [came["seconds"] for came in back(events) if came["route"] == "replay"]
    if of(events, "kept") and median(replays) > UNMEASURED["fork"]:
        pytest.skip(f"a replay takes {median(replays):.2f} s on this machine now: it is not cheaper than a snapshot")
    assert {came["route"] for came in back(events)} <= {"reuse", "advance", "replay"}
    assert not of(events, "kept"), "what nobody restores is not kept"


@pytest.fixture
def rows(executable: str) -> Iterator[int]:
    """Start the application on this machine outside of any sandbox, and return its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SITES / "http_rows.py"), str(port)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield port
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_browser_on_a_site_outside_forks_where_a_sandbox_is_required_and_no_write_is_explored(
    rows: int, runsc: str, tmp_path: Path
) -> None:
    done = run(None, rows, tmp_path / "run", "browser.sandbox=required")
    assert done.returncode == 0, done.stdout + done.stderr
    events = journal(tmp_path / "run")
    assert max(arrival["environments"] for arrival in of(events, "arrived")) >= 3
    held = [act for act in of(events, "acted") if act.get("wrote")]
    assert held and all(effect["kind"] == "blocked" for act in held for effect in act["effects"])
