"""Which runsc is taken; stand-ins that only tell their version."""

import os
from pathlib import Path

import pytest

from exact.environments.sandbox.runsc import Runsc, _may_mount, find_runsc
from exact.errors import EnvironmentFailure


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in front of PATH, without runsc in the cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("EXACT_RUNSC", raising=False)
    return tmp_path


def put(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'runsc version {version}'\necho 'spec: 1.0.2-dev'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["release-20240729.0", "0.0~20240729.0", "release-20260105.0-5-gabcdef"])
def test_a_new_enough_one_on_path_is_taken(place: Path, version: str) -> None:
    path = put(place / "bin" / "runsc", version)
    assert (find_runsc().path, find_runsc().version) == (path, version)


def test_an_old_one_is_refused_by_name(place: Path) -> None:
    path = put(place / "bin" / "runsc", "0.0~20221219.0")
    with pytest.raises(EnvironmentFailure) as refused:
        find_runsc()
    assert all(part in str(refused.value) for part in (str(path), "0.0~20221219.0", "20240729", "shells/setup.sh --sandbox"))


def test_the_one_in_the_cache_is_taken_before_an_old_one_on_path(place: Path) -> None:
    put(place / "bin" / "runsc", "0.0~20221219.0")
    path = put(place / "cache" / "exact" / "runsc", "0.0~20240729.0")
    assert find_runsc().path == path


def test_the_one_that_is_named_is_taken_or_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(place / "bin" / "runsc", "0.0~20240729.0")
    monkeypatch.setenv("EXACT_RUNSC", "/no/such/runsc")
    with pytest.raises(EnvironmentFailure, match=r"/no/such/runsc is runsc .none that runs."):
        find_runsc()


def test_without_one_the_way_to_one_is_reported(place: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="no runsc found: run shells/setup"):
        find_runsc()


def test_a_user_without_the_right_to_mount_gets_a_user_namespace() -> None:
    plain = Runsc(Path("/bin/runsc"), "", privileged=True).command(Path("/state"), "run")
    other = Runsc(Path("/bin/runsc"), "", privileged=False).command(Path("/state"), "run")
    assert plain[:4] == ["setpriv", "--pdeathsig", "KILL", "--"]
    assert other == ["unshare", "-Ur", *plain]
    assert plain[plain.index("--network") :][:2] == ["--network", "none"] and "--overlay2=all:memory" in plain


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(("capabilities", "may"), [("000001ffffffffff", True), ("00000000a80425fb", False)])
def test_root_of_a_container_without_cap_sys_admin_may_not_mount(tmp_path: Path, capabilities: str, may: bool) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\nCapPrm:\t0\nCapEff:\t{capabilities}\n")
    assert _may_mount(status) is may
