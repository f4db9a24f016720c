import re
from pathlib import Path

import pytest

from exact.environments.sandbox.probe import probe_forking, suggest_fix
from exact.environments.sandbox.runsc import Runsc
from exact.errors import EnvironmentFailure

ROOT = Path(__file__).parents[3]
PLAIN = Runsc(Path("/bin/runsc"), "", privileged=False)


async def test_a_checkpoint_and_a_restore_prove_that_environments_fork(runsc: str) -> None:
    assert all(seconds > 0 for seconds in await probe_forking())


async def test_a_runsc_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "runsc"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo runsc version 0.0~20240729.0 || { echo error: no luck >&2; exit 3; }\n')
    program.chmod(0o755)
    monkeypatch.setenv("EXACT_RUNSC", str(program))
    with pytest.raises(EnvironmentFailure, match="error: no luck"):
        await probe_forking()


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("sys/kernel/apparmor_restrict_unprivileged_userns", "1", "/etc/apparmor.d/unshare"),
        ("sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ],
)
def test_the_setting_that_prevents_it_is_named(tmp_path: Path, setting: str, value: str, fix: str) -> None:
    (tmp_path / setting).parent.mkdir(parents=True)
    (tmp_path / setting).write_text(f"{value}\n")
    assert fix in suggest_fix(PLAIN, tmp_path)
    (tmp_path / setting).write_text("63000\n" if value == "0" else "0\n")
    assert "--security-opt seccomp=unconfined" in suggest_fix(PLAIN, tmp_path)


def test_the_dockerfile_says_how_to_run_a_container_as_doctor_does(tmp_path: Path) -> None:
    flags = re.findall(r"--security-opt \S+", suggest_fix(PLAIN, tmp_path))
    run = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "docker run" in line]
    assert len(flags) == 2 and run and all(flag.rstrip(",") in line for line in run for flag in flags)
