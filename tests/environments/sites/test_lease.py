"""A site that a reset changes for everybody is used by one process at a time."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.environments.sites.lease import leased_site
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.e2e.kills import EXACT

HOLD = """
import asyncio, sys, msgspec
from exact.environments.sites.lease import leased_site
from exact.task import Task

async def main():
    async with leased_site(msgspec.json.decode(sys.argv[1], type=Task)):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def task(id: str = "shop/order", base: str = "http://shop.test", **more: object) -> Task:
    site = {"reset": {"url": "http://127.0.0.1:9/reset"}, "base": base, **more}
    return Task(id=id, instruction="", metadata={"outside": json.dumps({"site": site})})


def started(held: Task) -> subprocess.Popen[str]:
    """Start a process that takes the lease of a task's site."""
    text = json.dumps({"id": held.id, "instruction": "", "metadata": held.metadata})
    return subprocess.Popen([sys.executable, "-c", HOLD, text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def holder(held: Task) -> subprocess.Popen[str]:
    """Start a process, and wait until it holds the lease of a task's site."""
    process = started(held)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


async def test_an_attempt_waits_until_the_process_that_has_the_site_is_killed(caplog: pytest.LogCaptureFixture) -> None:
    other = holder(task("shop/look", "http://SHOP.test/"))
    entered = asyncio.Event()

    async def attempt() -> None:
        async with leased_site(task()):
            entered.set()

    waiting = asyncio.create_task(attempt())
    await asyncio.sleep(0)
    with pytest.raises(EnvironmentFailure, match=rf"http://shop\.test is used by process {other.pid}.*exact resume"):
        async with leased_site(task(), limit=0):
            raise AssertionError
    assert not entered.is_set()
    other.kill()
    other.communicate()
    await asyncio.wait_for(waiting, 20)
    assert [f"process {other.pid}" in record.getMessage() for record in caplog.records] == [True]


async def test_attempts_of_one_process_share_a_site_and_the_last_one_releases_it() -> None:
    async with leased_site(task("shop/a")):
        async with leased_site(task("shop/b")):
            pass
        other = started(task())
        assert other.stderr is not None and "waiting for it" in await asyncio.to_thread(other.stderr.readline)
    assert other.stdout is not None and await asyncio.to_thread(other.stdout.readline) == "held\n"
    other.kill()
    other.communicate()


@pytest.mark.parametrize(
    "free",
    [
        task(base="http://other.test"),
        task(snapshot={"url": "http://127.0.0.1:9/s"}, fork={"url": "http://127.0.0.1:9/f"}),
        Task(id="shop/order", instruction=""),
    ],
    ids=["another site", "instances of its own", "no reset"],
)
async def test_what_disturbs_nobody_waits_for_nobody(free: Task) -> None:
    other = holder(task())
    async with leased_site(free, limit=0):
        other.kill()
    other.communicate()


@pytest.mark.parametrize(("every", "resets"), [(1, 4), (3, 2)])
def test_one_reset_is_enough_for_as_many_attempts_as_the_site_says(every: int, resets: int, httpserver: HTTPServer, tmp_path: Path) -> None:
    """Four tasks; the site counts its resets."""
    asked = list[str]()
    httpserver.expect_request("/reset", method="POST").respond_with_handler(lambda request: (asked.append("reset"), Response("done"))[1])
    httpserver.expect_request("/").respond_with_data("<title>shop</title><button>Go</button>", content_type="text/html")
    url, file = httpserver.url_for(""), tmp_path / "tasks.yaml"
    tasks = "".join(f"- {{id: t{number}, instruction: Click Go}}\n" for number in range(4))
    file.write_text(f"site: {{name: shop, url: '{url}/', outside: {{site: {{reset: '{url}/reset', every: {every}}}}}}}\ntasks:\n{tasks}")
    settings = ("search.algorithm=react", "limits.actions=1", "browser.sandbox=never", "reflection.kind=none")
    command = [*EXACT, "run", str(file), "--out", str(tmp_path / "run"), *(word for each in settings for word in ("--set", each))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(asked) == resets
