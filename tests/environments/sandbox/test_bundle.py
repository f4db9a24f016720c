import tempfile
from pathlib import Path
from typing import Any

import pytest

from exact.config import Mount
from exact.environments.sandbox import bundle
from exact.environments.sandbox.bundle import GuestSpec, interpreter_files, oci_configuration
from exact.environments.sandbox.host import home_folders

ACCOUNTS = Mount(source=str(Path(__file__).resolve()), target="/etc/passwd")


def mounts(guest: GuestSpec) -> dict[str, dict[str, Any]]:
    return {each["destination"]: each for each in oci_configuration(guest, {})["mounts"]}


def test_no_capability_is_given_and_none_can_be_gained() -> None:
    process = oci_configuration(GuestSpec(args=("true",)), {})["process"]
    assert process["capabilities"] == {} and process["noNewPrivileges"] is True


def test_variables_pass_by_an_allow_list() -> None:
    ours = {"PATH": "/opt/bin", "OPENAI_API_KEY": "secret", "HTTPS_PROXY": "http://proxy", "HOME": "/root"}
    found = oci_configuration(GuestSpec(args=("true",), env={"TZ": "UTC"}), ours)["process"]["env"]
    assert found == ["PATH=/opt/bin", "HOME=/tmp", "TZ=UTC"]


def test_homes_and_temporary_files_are_masked() -> None:
    masked = {where for where, each in mounts(GuestSpec(args=("true",))).items() if each["type"] == "tmpfs"}
    home = Path.home().resolve()
    assert {"/tmp", "/dev/shm", "/run"} <= masked
    assert masked & {str(each) for each in (home, *home.parents)}, "a home in a masked place is masked with it"


def test_files_that_a_guest_reads_are_bound_read_only_where_they_would_be_masked() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # not tmp_path, which is where TMPDIR says
        (inner := Path(made).resolve() / "inner").mkdir()
        found = mounts(GuestSpec(args=("true",), reads=(inner.parent, inner, Path("/usr/bin"))))
    bound = {where: each["options"] for where, each in found.items() if each["type"] == "bind" and where.startswith("/tmp/")}
    assert bound == {str(inner.parent): ["rbind", "ro"]}


def test_a_home_that_is_the_root_masks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert "/" not in home_folders()


def test_what_a_guest_may_change_is_writable_in_memory_also_inside_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("shop/lib", "python/shop"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("shop")
    reads, writable = (tmp_path / "shop" / "lib", tmp_path / "python"), (tmp_path / "link", tmp_path / "python" / "shop")
    found = mounts(GuestSpec(args=("true",), reads=reads, writable=writable))
    own = {Path(where): each for where, each in found.items() if each["type"] == "bind" and Path(where).is_relative_to(tmp_path)}
    bound = {where.relative_to(tmp_path).as_posix(): each["options"][1] for where, each in own.items()}
    assert bound == {"shop": "rw", "python": "ro", "python/shop": "rw"}


def test_data_of_the_host_and_private_settings_are_masked_unless_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "private_files", lambda: ("/etc/shells", "/etc/ssl"))
    found = mounts(GuestSpec(args=("true",)))
    assert (found["/etc/shells"]["source"], found["/etc/ssl"]["type"]) == (str(bundle._EMPTY), "tmpfs")
    assert bundle._EMPTY.stat().st_size == 0 and {"/opt", "/srv", "/var/lib", "/var/log"} <= found.keys()
    assert not {"/usr", "/etc", "/var", "/proc/sys"} & found.keys() and "/opt" not in mounts(GuestSpec(args=("true",), root=Path("/opt")))
    assert "/etc/shells" not in mounts(GuestSpec(args=("true",), reads=(Path("/etc/shells"),)))
    assert "/etc/passwd" in found and "/etc/passwd" not in mounts(GuestSpec(args=("true",), reads=(Path("/etc/passwd"),)))
    assert bundle.is_masked(Path("/opt/shop/data")) and not bundle.is_masked(Path("/usr/bin/python3"))


@pytest.mark.parametrize("needed", ["/usr", "/usr/local", "/"])
def test_private_files_stay_hidden_in_a_folder_that_an_interpreter_is_in(needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "private_files", lambda: ("/usr/local/etc", "/usr/local/x.key", "/etc/shadow"))
    assert set(bundle.private_files()) <= mounts(GuestSpec(args=("true",), reads=(Path(needed),))).keys()
    assert "/usr/local/x.key" not in mounts(GuestSpec(args=("true",), writable=(Path("/usr/local"),))), "a person named it"


@pytest.mark.parametrize("guest", [GuestSpec(args=("true",), reads=(Path.home(),)), GuestSpec(args=("true",), mounts=(ACCOUNTS,))])
def test_no_path_has_two_mounts_of_which_the_sandbox_would_choose_one(guest: GuestSpec) -> None:
    found = oci_configuration(guest, {})["mounts"]
    assert len({each["destination"] for each in found}) == len(found)
    assert not guest.mounts or found[-1]["source"] == ACCOUNTS.source


@pytest.mark.parametrize("prefix", [".", ".local", "tools/venv"])
def test_of_an_interpreter_a_guest_sees_its_libraries_and_nothing_beside_them(prefix: str, tmp_path: Path) -> None:
    python = tmp_path / prefix / "bin" / "python3"
    for file in ("bin/python3", "lib/python3/os.py", "pyvenv.cfg", ".env", "pip.conf", "share/keyrings/login"):
        (place := tmp_path / prefix / file).parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    own = [path.relative_to(tmp_path / prefix).as_posix() for path in interpreter_files(python) if path.is_relative_to(tmp_path)]
    assert own == ["bin/python3", "pyvenv.cfg", "lib"]


def test_processes_are_limited() -> None:
    (limit,) = oci_configuration(GuestSpec(args=("true",), processes=7), {})["process"]["rlimits"]
    assert limit == {"type": "RLIMIT_NPROC", "soft": 7, "hard": 7}
