import asyncio
import urllib.error
import urllib.request
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from exact.benchmarks.miniwob import pages
from exact.benchmarks.miniwob.suite import BROWSERGYM, TASKS
from exact.environments import reward
from exact.errors import EnvironmentFailure, UsageError


async def fetch(url: str) -> tuple[int, bytes]:
    def read() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, b""

    return await asyncio.to_thread(read)


def test_the_tasks_are_the_pages_of_the_wheel() -> None:
    assert sorted(page.stem for page in (reward.miniwob_pages() / "miniwob").glob("*.html")) == list(TASKS)
    assert len(BROWSERGYM) == 125


def test_every_page_is_utf_8() -> None:
    for page in (reward.miniwob_pages() / "miniwob").glob("*.html"):
        page.read_text(encoding="utf-8")


def test_a_missing_wheel_is_answered_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(reward, "distribution", missing)
    with pytest.raises(UsageError, match=r"exact-agent\[miniwob\]"):
        reward.miniwob_pages()


def test_a_script_of_the_same_name_is_not_taken_for_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (reward.miniwob_pages() / "core/core.js").is_file()


async def test_a_served_file_is_the_file() -> None:
    async with pages.serve(reward.miniwob_pages()) as address:
        status, content = await fetch(f"http://{address}/core/core.js")
    assert (status, content) == (200, (reward.miniwob_pages() / "core/core.js").read_bytes())


@pytest.mark.parametrize("path", ["nothing.html", "core", "../secret.txt", "%2e%2e/secret.txt", "/etc/hostname"])
async def test_files_outside_the_pages_are_not_served(tmp_path: Path, path: str) -> None:
    (tmp_path / "pages/core").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    async with pages.serve(tmp_path / "pages") as address:
        assert await fetch(f"http://{address}/{path}") == (404, b"")


async def test_no_socket_is_open_after_the_server_has_ended() -> None:
    async with pages.serve(reward.miniwob_pages()) as address:
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /nothing HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(host, int(port))


async def test_one_connection_answers_many_requests() -> None:
    async with pages.serve(reward.miniwob_pages()) as address:
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for method, status in ((b"GET", b"200"), (b"HEAD", b"200"), (b"POST", b"405"), (b"GET", b"200")):
            writer.write(method + b" /core/core.css HTTP/1.1\r\nHost: reward.test\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.split()[1] == status
            length = int(head.lower().split(b"content-length: ")[1].split()[0])
            await reader.readexactly(length if method == b"GET" else 0)
        writer.close()


def test_flipped_rewards_change_one_line_of_one_file() -> None:
    before = (reward.miniwob_pages() / "core/core.js").read_bytes()
    after = pages.flip_rewards("core/core.js", before)
    changed = [(a, b) for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert len(changed) == 1 and changed[0][1].endswith(b"reward = -reward;")
    assert pages.flip_rewards("miniwob/click-test.html", before) == before


def test_pages_whose_rewards_cannot_be_flipped_are_refused() -> None:
    with pytest.raises(EnvironmentFailure, match=r"install miniwob 1\.1\.0"):
        pages.flip_rewards("core/core.js", b"another version")
