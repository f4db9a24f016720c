"""One's own application: the example's files, run as they stand."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_application"
SMALL = ("search.iterations=4", "search.k=3", "search.depth=2", "limits.actions=3", "limits.transitions=24", "browser.screenshots=false")


def exact(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exact.cli", *arguments]
    env = {**os.environ, "SHOP_PASSWORD": "open sesame", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def run(tasks: str, out: Path, *settings: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    return exact("run", tasks, "--out", str(out), *given, **environment)


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """The example's folder, with a port of its own."""
    folder = tmp_path / "application"
    shutil.copytree(EXAMPLE, folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for file in folder.glob("*.yaml"):
        file.write_text(file.read_text().replace("8765", port))
    return folder


@contextmanager
def shop(application: Path) -> Iterator[None]:
    """The example's application, running on this machine."""
    port = (application / "outside.yaml").read_text().partition("127.0.0.1:")[2][:5].strip("\"'")
    process = subprocess.Popen([sys.executable, str(application / "shop.py"), port], env={**os.environ, "SHOP_PASSWORD": "open sesame"})
    try:
        for _ in range(200):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            process.poll()
            if process.returncode is not None:
                raise RuntimeError("the shop ended")
            os.sched_yield()
        yield
    finally:
        process.kill()
        process.wait()


def outside(application: Path) -> str:
    file = application / "tasks.yaml"
    file.write_text(file.read_text().replace("site: site.yaml", "site: outside.yaml"))
    return f"{file}#order"


def events(out: Path) -> list[Any]:
    (found,) = (out / "tasks").rglob("journal.jsonl")
    return list(read_journal(found))


def written(out: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in out.rglob("*") if path.is_file())


def test_a_task_on_a_site_with_its_services_is_scored_by_a_function(executable: str, application: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run(f"{application / 'tasks.yaml'}#order", out, "browser.sandbox=never")
    assert done.returncode == 0, done.stderr
    (line,) = RunFolder.open(out).results()
    assert (line.task, line.status, line.score) == ("shop/order", "scored", 1.0)
    assert "open sesame" not in written(out)


def test_hooks_of_a_site_outside_are_used_by_a_run(executable: str, application: Path, tmp_path: Path) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    out = tmp_path / "run"
    with shop(application):
        done = run(outside(application), out, "limits.actions=2")
    assert done.returncode == 0, done.stderr
    (line,) = RunFolder.open(out).results()
    assert line.status == "scored" and not line.drifted
    explored = [event for event in events(out) if isinstance(event, ev.Acted) and any(effect.is_write for effect in event.effects)]
    assert explored, "writes are explored, for the site is brought back"
    assert "open sesame" not in written(out)


def test_a_site_with_services_is_found_from_any_folder(
    executable: str, application: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox hides the folder that `..` starts from."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    done = run("../application/tasks.yaml#order", tmp_path / "run", "limits.actions=1")
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = RunFolder.open(tmp_path / "run").results()
    assert (line.status, line.began) == ("scored", True)


def test_without_a_sandbox_a_site_with_hooks_is_reset_and_no_write_is_explored(executable: str, application: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with shop(application):
        done = run(outside(application), out, "browser.sandbox=never")
    assert done.returncode == 0, done.stderr
    assert "simulations send no writes" in done.stderr
    assert not [event for event in events(out) if isinstance(event, ev.Acted) and any(effect.is_write for effect in event.effects)]


def test_traffic_that_a_run_recorded_is_replayed_without_the_site(httpserver: HTTPServer, executable: str, tmp_path: Path) -> None:
    httpserver.expect_request("/").respond_with_data("<title>Here</title><a href=/there>There</a>", content_type="text/html")
    httpserver.expect_request("/there").respond_with_data("<title>There</title><p>Arrived", content_type="text/html")
    site = tmp_path / "site.yaml"
    site.write_text(json.dumps({"name": "site", "url": httpserver.url_for("/"), "browser": {"recording": {"path": "traffic.jsonl"}}}))
    given = [part for setting in ("search.iterations=2", "limits.actions=1", "limits.transitions=6") for part in ("--set", setting)]
    goal = ("--site", str(site), "--goal", 'Click "There"')
    assert exact("run", *goal, "--out", str(tmp_path / "one"), *given).returncode == 0
    assert (tmp_path / "traffic.jsonl").stat().st_mode & 0o777 == 0o600
    asked = len(httpserver.log)
    site.write_text(site.read_text().replace('"traffic.jsonl"', '"traffic.jsonl", "mode": "replay"'))
    done = exact("run", *goal, "--out", str(tmp_path / "two"), *given)
    assert done.returncode == 0, done.stderr
    assert len(httpserver.log) == asked, "nobody was asked again"
    committed = [event for event in events(tmp_path / "two") if isinstance(event, ev.Committed)]
    assert committed[0].observation is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("judge.py:ordered", "judge.py:orderd", "has no function 'orderd'"),
        ("judge.py:ordered", "nowhere.py:ordered", "there is no file"),
        ("evaluate: judge.py:ordered", "evaluate: {eval_type: []}", "evaluate"),
        ("instruction:", "instructoin:", "instructoin"),
        ("site: site.yaml", "site: sites.yaml", "cannot read"),
    ],
)
def test_a_file_that_is_wrong_says_where(application: Path, tmp_path: Path, old: str, new: str, words: str) -> None:
    file = application / "tasks.yaml"
    file.write_text(file.read_text().replace(old, new))
    done = run(f"{file}#order", tmp_path / "run")
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_task_that_is_not_there_names_the_nearest(application: Path, tmp_path: Path) -> None:
    done = run(f"{application / 'tasks.yaml'}#oder", tmp_path / "run")
    assert done.returncode == 2 and "did you mean 'order'" in done.stderr


def test_the_example_fits_on_a_screen() -> None:
    for file in ("tasks.yaml", "site.yaml", "outside.yaml", "judge.py"):
        assert len((EXAMPLE / file).read_text().splitlines()) < 40
