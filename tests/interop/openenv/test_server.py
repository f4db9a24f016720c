"""`exact serve` as its users have it: OpenEnv's own client, in a virtual environment that has its package."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".bench/venvs/openenv/bin/python"
VERIFIERS = ROOT / ".bench/venvs/verifiers/bin/python"
CLIENT = Path(__file__).with_name("client.py")

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no OpenEnv: shells/setup.sh --openenv")


def environ() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}


@contextmanager
def served(*args: str) -> Iterator[str]:
    """The address of an `exact serve`."""
    command = [str(PYTHON), "-m", "exact.cli", "serve", *args, "--port", "0"]
    with subprocess.Popen(command, env=environ(), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), line
        try:
            yield line.partition(": ")[0]
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served("toy", "--sessions", "3") as address:
        yield address


def run(url: str, what: str) -> dict[str, Any]:
    done = subprocess.run([str(PYTHON), str(CLIENT), url, what], env=environ(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_openenvs_client_gets_observations_and_typed_errors(url: str) -> None:
    found = run(url, "errors")
    named = {"goal", "url", "text", "axtree_txt", "pruned_html", "screenshot", "error", "last_action_error", "metadata"}
    assert named <= set(found["fields"])
    assert "VALIDATION_ERROR" in found["unknown_key"] and "CAPACITY_REACHED" in found["full"] and found["again"] is False
    assert "did you mean" in found["unknown_task"]
    error, refused, reward, done = found["refused"]
    assert "leads nowhere" in error and refused and reward == 0 and not done
    assert found["state"]["task_name"] == "chain" and found["state"]["session"]


def test_what_cannot_be_asked_for_is_answered_in_one_line_of_words(url: str) -> None:
    found = run(url, "answers")
    assert found.pop("same"), "the id that the state reports names the same task and seed"
    words = {
        "number": "unknown task '7'", "list": "is no text", "option": "did you mean 'task_name'", "seed": "invalid seed 'x'",
        "negative": "invalid seed '-1'", "two": "give one of them", "fork": "is no text", "long": "unknown task", "bid": "leads nowhere",
        "empty": "no action in ''", "before": "call reset first",
    }  # fmt: skip
    assert set(words) == set(found)
    for name, said in found.items():
        assert words[name] in said and "\n" not in said and len(said) < 600, name


def test_a_step_by_plain_http_is_refused_with_the_way_to_play(url: str) -> None:
    request = urllib.request.Request(f"{url}/step", b'{"action": {"action_str": "noop()"}}', {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        assert answer.code == 409 and "over the WebSocket at /ws" in json.load(answer)["detail"]


def test_refused_actions_reach_the_limit_of_steps() -> None:
    with served("toy/chain", "--max-steps", "3") as address:
        found = run(address, "refused")
    assert found["done"] == [False, False, True] and all(found["errors"]) and found["state"]["step_count"] == 3
    assert found["ends"] == [None, None, True], "this package's client sees the end too"


def test_screenshots_have_the_type_that_the_client_of_browsergym_reads() -> None:
    with served("miniwob", "--screenshots") as address:
        found = run(address, "pictured")
    height, width, colours = found["size"]
    assert height == found["again"] > 100 and width > 100 and colours == 3
    assert found["png"] == "iVBORw0K" and found["read"] == ["89504e47"] * 2
    assert not found["filled"] and not found["pressed"][0] and "the focus is at" in found["pressed"][1]


def test_a_server_that_is_killed_in_a_step_ends_a_training_in_one_line() -> None:
    with subprocess.Popen(
        [str(PYTHON), "-m", "exact.cli", "serve", f"{CLIENT.with_name('dying.py')}:Dying", "--port", "0"],
        env=environ(), cwd=ROOT, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            said = run(process.stdout.readline().partition(": ")[0], "killed")["said"]
        finally:
            process.terminate()
    assert process.returncode == -signal.SIGKILL, "the server was killed"
    assert said.startswith("EnvironmentFailure: the OpenEnv server does not answer") and "\n" not in said


def test_an_idle_session_gives_its_place_to_another_client() -> None:
    with served("toy", "--sessions", "1", "--idle", "1") as address:
        found = run(address, "idle")
    assert found["refused"] > 0 and found["said"], "the place was taken at first, and the session that was idle is gone"


@pytest.mark.parametrize(
    ("env", "goal"), [("trac/1", "ticket 9"), ("desktop/write-note", "Save"), ("browsergym/miniwob.click-test", "Click the button")]
)
def test_sites_desktops_and_browsergyms_tasks_are_served(env: str, goal: str) -> None:
    if why := missing(env.partition("/")[0]):
        pytest.skip(why)
    with served(env) as address:
        found = run(address, "played")
    assert goal.lower() in found["goal"].lower() and found["text"] and not found["error"] and not found["done"]


def missing(suite: str) -> str:
    """Return why the environments of a suite cannot be opened here; empty where they can."""
    if suite == "trac" and not (ROOT / ".bench/venvs/sites/bin/python").exists():
        return "no Trac: shells/setup.sh --sites"
    if suite == "desktop" and not all(map(shutil.which, ("Xvfb", "openbox", "mousepad"))):
        return "no desktop: shells/setup.sh --desktop"
    return ""


def test_openenvs_own_validation_passes(url: str) -> None:
    command = [str(PYTHON.with_name("openenv")), "validate", "--url", url, "--json"]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_our_client_searches_over_it_with_true_restores(url: str) -> None:
    found = run(url, "search")
    assert found["fidelity"] == "full" and found["verbs"] == ["go", "stop"] and found["goal"] == "Reach the exit."
    assert found["restored"] and found["end"] == [True, 1.0, 1.0]


def test_a_web_page_of_another_server_is_refused(url: str) -> None:
    request = urllib.request.Request(f"{url}/health", headers={"Origin": "http://evil.test"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        assert answer.code == 403
    with urllib.request.urlopen(f"{url}/health", timeout=20) as answer:
        assert json.load(answer)["status"] == "healthy"


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://evil.test:8000"}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "null"}])
def test_a_web_page_whose_name_leads_here_is_refused(url: str, headers: dict[str, str]) -> None:
    request = urllib.request.Request(f"{url}/health", headers={"Host": "evil.test:8000", **headers})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        assert answer.code == 403
    for allowed in ({"Host": "localhost:8000"}, {"Sec-Fetch-Site": "none"}):
        with urllib.request.urlopen(urllib.request.Request(f"{url}/health", headers=allowed), timeout=20) as answer:
            assert json.load(answer)["status"] == "healthy"


@pytest.mark.parametrize("path", ["/ws", "/metadata", "/schema", "/docs", "/openapi.json", "/mcp", "/none"])
@pytest.mark.parametrize("host", ["evil.test:8000", "127.0.0.1.evil.test", "localhost\r\nHost: evil.test"])
def test_no_route_answers_under_a_foreign_name(url: str, path: str, host: str) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{upgrade if path == '/ws' else ''}\r\n".encode())
        assert connection.recv(100).split()[1] in (b"400", b"403")


def test_routes_for_snapshots_say_what_is_wrong(url: str) -> None:
    request = urllib.request.Request(f"{url}/snapshot", b'{"session": "none"}', {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        assert answer.code == 404 and "there is no session" in json.load(answer)["detail"]


@pytest.mark.skipif(
    not VERIFIERS.exists(), reason="no verifiers: python -m venv .bench/venvs/verifiers, then its pip install 'verifiers[openenv]'"
)
def test_the_task_set_of_verifiers_plays_episodes(url: str) -> None:
    script = CLIENT.with_name("task_set.py")
    done = subprocess.run([str(VERIFIERS), str(script), url], capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    solved, lost = json.loads(done.stdout.splitlines()[-1])
    assert solved["rewards"] == {"openenv_reward": 1.0} and solved["turns"] == 4 and solved["errors"] == [False] * 4
    assert solved["goal"] == "Go on to the end." and solved["required"] == ["action_str"]
    assert lost["errors"][:4] == [False, True, False, False], "what is no action is said, and both forms of actions are read"
    assert lost["rewards"] == {"openenv_reward": 0.0}
