"""Applications in a root, with mounts, variables and a user of their own."""

from pathlib import Path

import msgspec
import pytest

from exact.cli.main import main
from exact.config import BrowserConfig, Mount, SandboxConfig
from exact.environments.browser.fork.factory import forking
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.served import open_served_site
from exact.environments.process.worker import EnvironmentSpec
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.factory import sandboxed_factory
from exact.environments.sandbox.root import make_mount_point
from exact.environments.sandbox.sandboxes import Sandboxes
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Task

HERE = Path(__file__).parent
ROWS = HERE / "rows.py"
SYSTEM = tuple(Mount(source=place, target=place) for place in ("/usr", "/bin", "/lib", "/lib64") if Path(place).exists())
"""What a shell and a Python need of this machine."""
TASK = Task(id="t", instruction="", start="http://rows.test/", seed=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a root with a greeting only; everything else must be mounted."""
    (tmp_path / "root" / "srv").mkdir(parents=True)
    (tmp_path / "root" / "tmp").mkdir()
    (tmp_path / "root" / "tmp").chmod(0o1777)
    (tmp_path / "root" / "greeting").write_text("hello from the root\n")
    (tmp_path / "root" / "srv" / "rows.py").write_bytes(ROWS.read_bytes())
    return tmp_path / "root"


async def said(sandboxes: Sandboxes, config: SandboxConfig, script: str) -> list[str]:
    """Lines that a shell script says."""
    like = SandboxApplication.from_config(config).guest(reads=(), programs=())
    sandbox = await sandboxes.start(msgspec.structs.replace(like, args=("/bin/sh", "-c", script)))
    return (await sandbox.stdout.read()).decode().splitlines()


async def test_a_guest_sees_its_root_its_mounts_its_variables_and_its_user(sandboxes: Sandboxes, root: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mounted\n")
    mounts = (*SYSTEM, Mount(source=str(tmp_path / "data"), target="/deep/in/data"))
    config = SandboxConfig(root=str(root), mounts=mounts, env={"FLAVOUR": "sour"}, user="1234:99")
    script = "cat /greeting /deep/in/data; echo $FLAVOUR; id -u; id -g; ls -d /home /root /etc 2>/dev/null"
    assert await said(sandboxes, config, script) == ["hello from the root", "mounted", "sour", "1234", "99"]


async def test_writes_to_root_and_mounts_stay_inside(sandboxes: Sandboxes, root: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "shut").mkdir()
    places = (Mount(source=str(tmp_path / "open"), target="/open", writable=True), Mount(source=str(tmp_path / "shut"), target="/shut"))
    script = "echo x > /new; echo x > /open/new; echo x > /shut/new; ls /new /open /shut 2>/dev/null"
    lines = await said(sandboxes, SandboxConfig(root=str(root), mounts=(*SYSTEM, *places)), script)
    assert [line for line in lines if line] == ["/new", "/open:", "new", "/shut:"]
    assert [list(path.rglob("new")) for path in (root, tmp_path / "open", tmp_path / "shut")] == [[], [], []]


def files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*") if path.is_file()}


async def test_an_environment_lives_in_another_root_and_is_forked_there(runsc: str, root: Path) -> None:
    factory = EnvironmentSpec(f"{HERE.parent / 'process' / 'foreign.py'}:Counter", python=Path("/usr/bin/python3"))
    inside = SandboxConfig(root=str(root), mounts=SYSTEM)
    async with sandboxed_factory(factory, inside=inside) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        async with environments.fork(await environment.snapshot(), simulation=True) as other:
            assert other.observation.text == '[1] StaticText "1"'
    assert files(root) == {"greeting", "rows.py", "foreign.py", "guest.py"}


async def test_services_run_in_another_root_as_another_user_beside_the_browser(runsc: str, executable: str, root: Path) -> None:
    service = Service(command=("python3", "rows.py", "8000"), ready_url="http://127.0.0.1:8000/", folder="/srv")
    inside = SandboxConfig(root=str(root), mounts=SYSTEM, user="1234")
    setup = PageSetup(hosts={"rows.test": "127.0.0.1:8000"})
    environments = forking(BrowserConfig(screenshots=False), setup, services=[service], application=inside)
    async with environments as opened, opened.open(simulation=True) as one:
        await one.reset(TASK)
        await one.step(one.actions.parse('fill [3] "half"'))
        taken = await one.snapshot()
        await one.step(one.actions.parse("click [4]"))
        async with opened.fork(taken, simulation=True) as two:
            assert "Rows: half" in one.observation.text and "Rows: none" in two.observation.text


async def test_services_that_want_a_root_do_not_run_on_this_machine_instead() -> None:
    service = Service(command=("true",), ready_url="http://127.0.0.1:9/")
    with pytest.raises(EnvironmentFailure, match="there is none: browser"):
        async with open_served_site(BrowserConfig(sandbox="never"), PageSetup(), [service], application=SandboxConfig(root="/srv")):
            pass


def test_a_run_tells_services_what_they_run_in(runsc: str, executable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "services.yaml").write_text('[{"command": ["true"], "ready_url": "http://127.0.0.1:9/"}]')
    site = ("--url", "http://127.0.0.1:9/", "--goal", "Look.", "--services", str(file))
    assert main(("run", *site, "--out", str(tmp_path / "run"), "--set", "sandbox.user=postgres")) == 2
    assert "sandbox.user 'postgres' is not a user" in capsys.readouterr().err


def test_a_mount_point_is_made_inside_its_root_despite_symbolic_links(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (root / "data").symlink_to("../../..")
    make_mount_point(root, "/data/deep", tmp_path)
    make_mount_point(root, "/data/deep", tmp_path)
    assert (root / "deep").is_dir() and {path.name for path in tmp_path.iterdir()} == {"root"}
    (root / "file").touch()
    with pytest.raises(EnvironmentFailure, match="create an empty folder or file for it there"):
        make_mount_point(root, "/file/below", tmp_path)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (SandboxConfig(user="postgres"), "sandbox.user 'postgres' is not a user"),
        (SandboxConfig(mounts=(Mount(source="/usr", target="relative"),)), "target 'relative' is not an absolute path"),
        (SandboxConfig(mounts=(Mount(source="/usr", target="/a/../.."),)), "is not an absolute path below /"),
        (SandboxConfig(mounts=(Mount(source="/nowhere", target="/a"),)), "there is no /nowhere on this machine"),
        (SandboxConfig(mounts=(Mount(source="/usr", target="/nowhere"),)), "there is no /nowhere to mount at"),
    ],
)
def test_an_invalid_value_is_refused_by_its_key(config: SandboxConfig, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SandboxApplication.from_config(config)
