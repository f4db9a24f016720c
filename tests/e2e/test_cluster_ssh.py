"""`exact cluster` starts and ends Ray on machines by a real ssh, and a benchmark runs there from a machine without a Ray."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.kills import EXACT
from tests.e2e.ray_nodes import RAY
from tests.e2e.ssh_machines import SshMachines, ssh_machines, ssh_possible

pytest.importorskip("ray", reason="Ray is not installed: shells/setup.sh --extras")
pytestmark = pytest.mark.skipif(bool(ssh_possible()), reason=ssh_possible() or "-")


@pytest.fixture
def machines() -> Iterator[SshMachines]:
    with ssh_machines("one", "two") as made:
        yield made


def test_a_cluster_goes_up_is_used_is_told_of_a_lost_machine_and_goes_down(machines: SshMachines, tmp_path: Path) -> None:
    listed, out = tmp_path / "machines.yaml", tmp_path / "bench"
    one = {"head": "one", "address": machines.address("one"), "nodes": {"one": {"browser": 1}, "two": {"browser": 1}}}
    listed.write_text(yaml.safe_dump(one | {"ray": str(RAY), "token_path": str(machines.folder / "token")}))

    def exact(*words: object) -> subprocess.CompletedProcess[str]:
        command = [*EXACT, *map(str, words)]
        return subprocess.run(command, env=machines.variables, capture_output=True, text=True, check=False, timeout=300)

    up = exact("cluster", "up", listed)
    assert up.returncode == 0, up.stderr
    status = exact("cluster", "status", listed)
    assert (status.returncode, status.stdout) == (0, "one: up\ntwo: up\n"), status.stderr

    address = up.stdout.splitlines()[-1].rpartition(" ")[2]
    assert address == f"ray://{machines.address('one')}:10001"
    done = exact(
        "bench", "miniwob/click-test?seed=0..3", "--agent", "react", "--engine", "ray", "--address", address, "--out", out, "--no-reports"
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["score"] for line in (out / "results.jsonl").read_text().splitlines()] == [1.0] * 4

    machines.end("two")
    lost = exact("cluster", "status", listed)
    assert lost.returncode == 1 and lost.stdout == "one: up\n" and lost.stderr.startswith("exact: two: cannot be reached"), lost.stderr
    down = exact("cluster", "down", listed)
    assert down.returncode == 1 and down.stderr.count("\n") == 1 and "two: cannot be reached" in down.stderr
    left = subprocess.run([machines.folder / "ssh", "one", "pgrep -c raylet"], capture_output=True, text=True, check=False)
    assert left.stdout.strip() == "0"
