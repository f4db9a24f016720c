"""What each kind of sandbox that exact makes sees of this machine, and what it may use."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

import exact
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.fork.factory import forking
from exact.environments.browser.page.setup import PageSetup
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.process.worker import EnvironmentSpec
from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.factory import sandboxed_factory
from exact.environments.sandbox.sandboxes import Sandboxes
from exact.environments.sandbox.service import Service
from exact.environments.sites.site import Outside
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Task

from .conftest import COUNTER, ask

CHECKOUT = Path(exact.__file__).parents[1]


def browser(folder: Path) -> AbstractAsyncContextManager[EnvironmentFactory]:
    return forking(BrowserConfig(), PageSetup(), outside=Outside())


def services(folder: Path) -> AbstractAsyncContextManager[EnvironmentFactory]:
    shutil.copy(Path(__file__).with_name("rows.py"), folder / "shop")
    rows = Service(
        command=(sys.executable, str(folder / "shop" / "rows.py"), "8000", str(folder / "shop" / "rows.sqlite")),
        ready_url="http://127.0.0.1:8000/",
    )
    return forking(BrowserConfig(), PageSetup(), services=(rows,))


def own(folder: Path) -> AbstractAsyncContextManager[EnvironmentFactory]:
    (folder / "shop" / "mine.py").write_text("class Make:\n    def __init__(self, **more):\n        pass\n")
    return sandboxed_factory(EnvironmentSpec(f"{folder / 'shop' / 'mine.py'}:Make"))


@asynccontextmanager
async def desktop(folder: Path) -> AsyncIterator[EnvironmentFactory]:
    if lack := absent():
        pytest.skip(lack)
    async with desktop_factory(sandbox=True) as made:
        yield made


KINDS: dict[str, Callable[[Path], AbstractAsyncContextManager[EnvironmentFactory]]] = {
    "browser": browser, "services": services, "own": own, "desktop": desktop
}  # fmt: skip
QUESTIONS = {
    "the hashes of passwords": "[p for p in ('/etc/shadow', '/etc/gshadow') if os.path.exists(p) and os.path.getsize(p)]",
    "an account's settings": "[n for n in os.listdir('/root')"
    " if n not in ('.pyenv', '.cache', '.local')] if os.path.isdir('/root') else []",
    "homes": "[n for n in os.listdir('/home') for n in os.listdir('/home/' + n)] if os.path.isdir('/home') else []",
    "logs, mails and data": "[d for d in ('log', 'mail', 'spool', 'backups', 'opt', 'www', 'lib') for n in"
    " (os.listdir('/var/' + d) if os.path.isdir('/var/' + d) else []) if n != 'xkb']",
    "other programs' folders": "[d for d in ('/opt', '/srv', '/mnt', '/media', '/boot') if os.path.isdir(d) and os.listdir(d)]",
    "files at the top": "[n for n in os.listdir('/') if os.path.isfile('/' + n) and os.path.getsize('/' + n)]",
    "a checkout's history and keys": "[n for n in (os.listdir(CHECKOUT)"
    " if os.path.isdir(CHECKOUT) else []) if n[0] == '.' and n not in ('.venv', '.bench')]",
    "another checkout": "os.path.exists(OTHER)",
    "settings with credentials": "[p for p in ('pip.conf', 'npmrc', 'gitconfig', 'environment', 'fstab', 'ssh', 'apt', 'cron.d') if"
    " os.path.isfile('/etc/' + p) and os.path.getsize('/etc/' + p) or os.path.isdir('/etc/' + p) and os.listdir('/etc/' + p)]",
    "accounts": "[p.pw_name for p in __import__('pwd').getpwall() if p.pw_name not in ('root', 'nobody', 'user')]",
    "groups": "[g.gr_name for g in __import__('grp').getgrall() if g.gr_name not in ('root', 'tty', 'nogroup', 'user') or len(g.gr_mem)]",
    "the machine's id": "[p for p in ('/etc/machine-id', '/var/lib/dbus/machine-id', '/sys/class/dmi/id/product_uuid',"
    " '/sys/devices/virtual/dmi/id/board_serial') if os.path.exists(p) and open(p).read().strip()]",
    "the machine's names": "[n for p in ('hostname', 'hosts', 'resolv.conf') for n in open('/etc/' + p).read().split()"
    " if n not in ('environment', 'localhost', '127.0.0.1', '::1', 'ip6-localhost', 'ip6-loopback')]",
    "its name in the kernel": "[n for n in (os.uname().nodename, open('/proc/sys/kernel/hostname').read().strip()) if n != 'environment']",
    "keys in variables": "[n for n in os.environ if 'KEY' in n or 'TOKEN' in n or 'SECRET' in n]",
    "other processes": "[p for p in os.listdir('/proc') if p.isdigit() and int(p) > 60]",
    "a server of the host": "__import__('socket').socket().connect_ex(('127.0.0.1', PORT)) == 0",
    "disks": "[n for n in os.listdir('/dev') if n.startswith(('sd', 'nvme', 'vd', 'mem', 'kmsg'))]",
}
"""What a guest finds, where it should find nothing."""
NOTHING = {"[]", "False", "PermissionError"}


@asynccontextmanager
async def guest_of(kind: str, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[GuestSpec]:
    """Give the specification of the first guest that a kind of factory starts, while the factory is open."""
    started = list[GuestSpec]()

    async def start(self: Sandboxes, guest: GuestSpec) -> None:
        started.append(guest)
        raise EnvironmentFailure("this is enough")

    async with KINDS[kind](folder) as factory:
        with patch.context() as patched, pytest.raises((EnvironmentFailure, UsageError)):
            patched.setattr(Sandboxes, "start", start)
            async with factory.open(simulation=True) as environment:
                await environment.reset(Task(id="t", instruction="", start="http://127.0.0.1:8000/"))
        yield started[0]


@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_of_sandbox_sees_the_hosts_data_or_takes_its_processes_and_memory(
    sandboxes: Sandboxes, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-1234")
    (tmp_path / "shop").mkdir()
    (other := tmp_path / "elsewhere" / "notes.txt").parent.mkdir()
    other.write_text("private")
    async with guest_of(kind, tmp_path, monkeypatch) as like:
        code = f"CHECKOUT, OTHER, PORT = {str(CHECKOUT)!r}, {str(other)!r}, {unused_tcp_port}\n"
        asking = code + COUNTER.replace('{"seen": seen, "os": os}', '{"seen": seen, "os": os, **globals()}')
        guest = msgspec.structs.replace(like, args=(like.args[0], "-I", "-S", "-c", asking), memory=400 << 20, processes=40)
        assert like.processes < 10_000 and like.memory <= 16 << 30
        with __import__("socket").create_server(("127.0.0.1", unused_tcp_port)):
            sandbox = await sandboxes.start(guest)
            found = {name: await ask(sandbox, question) for name, question in QUESTIONS.items()}
        assert await ask(sandbox, "1 + 1") == "2", await sandbox.why()
        assert {name: said for name, said in found.items() if said not in NOTHING} == {}
        bomb = "[pid for _ in range(200) for pid in [os.fork()] if pid or __import__('signal').pause() or True]"
        assert await ask(sandbox, bomb) == "BlockingIOError"
        assert await ask(sandbox, "seen.append([bytearray(b'x' * (1 << 20)) for _ in range(4000)])") in (
            "",
            "BlockingIOError",
            "MemoryError",
        )
        assert "was killed" in await sandbox.why()


@pytest.mark.parametrize(("place", "seen"), [("chromium", "chromium"), ("browser/chromium", "browser")])
async def test_a_browser_that_lies_in_a_home_is_seen_without_the_rest_of_the_home(
    sandboxes: Sandboxes, place: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = (tmp_path / "person").resolve()
    (own := home / place).parent.mkdir(parents=True)
    own.write_bytes(b"\x7fELF")
    own.chmod(0o755)
    monkeypatch.setenv("EXACT_RUNSC", str(sandboxes.runsc.path))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("EXACT_BROWSER", str(own))
    async with guest_of("browser", tmp_path, monkeypatch) as guest:
        assert [path for path in guest.reads if path.is_relative_to(home)] == [home / seen]
