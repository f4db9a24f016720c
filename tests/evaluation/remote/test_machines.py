"""Lists of machines, and what `exact cluster` does with them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from exact.cli.main import main
from exact.errors import UsageError
from exact.evaluation.remote.machines import read_machines
from exact.models.providers import providers

LIST = "head: localhost\nnodes:\n  localhost: {browser: 2}\n  user@host1: {desktop: 2, gpu: 1}\nray: %s\ntoken_path: /keys/token\n"
JOBS = """
gpu1: {num_parallel: 3, main_api_providers: [azure_east, azure_west], run_tfiles: [evaluation_examples/test_small.json]}
gpu2: {num_parallel: 5, main_api_providers: [azure_east], run_tfiles: [evaluation_examples/test_chrome.json]}
"""
PROVIDERS = """
azure_east: {provider: azure, api_base: 'https://east.example', api_key: sk-never-copied-1, api_version: 2024-10-21}
azure_west: {provider: azure, api_base: 'https://west.example', api_key: sk-never-copied-2, api_version: 2024-10-21}
"""


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    """A list whose Ray is a program that writes down its arguments and settings."""
    ray = tmp_path / "ray"
    called = f"print(*sys.argv[1:], os.environ['RAY_AUTH_MODE'], file=open({str(tmp_path / 'called')!r}, 'a'))"
    ray.write_text(f"#!{sys.executable}\nimport os, sys\n{called}\n")
    ray.chmod(0o755)
    (tmp_path / "machines.yaml").write_text(LIST % ray)
    return tmp_path / "machines.yaml"


def test_a_dry_run_prints_what_runs_where_and_each_argument_stays_one(machines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "up", str(machines), "--dry-run"]) == 0
    head, node = capsys.readouterr().out.splitlines()
    assert shlex.split(head)[:3] == ["env", "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH=/keys/token"]
    words = shlex.split(node)
    assert words[:5] == ["ssh", "-o", "BatchMode=yes", "user@host1", "--"]
    there = shlex.split(words[5])
    assert "RAY_num_workers_soft_limit=64" in there, "Ray would end processes that the next attempt could use"
    assert "--address=localhost:6379" in there and "--num-gpus=1" in there
    assert json.loads(there[-1].removeprefix("--resources=")) == {"desktop": 2.0}


def test_a_machine_that_cannot_be_reached_is_told_by_name(
    machines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host host1 port 22: No route to host' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}{os.pathsep}{os.environ['PATH']}")
    assert main(["cluster", "up", str(machines)]) == 1
    said = capsys.readouterr().err
    assert said == "exact: user@host1: cannot be reached: ssh: connect to host host1 port 22: No route to host\n"
    started = (tmp_path / "called").read_text()
    assert started.startswith("start --head --port=6379") and '--resources={"browser": 2.0} token' in started
    assert main(["cluster", "status", str(machines)]) == 1
    assert capsys.readouterr().out == "localhost: up\n"
    assert main(["cluster", "status", str(machines), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "machines": ["localhost", "user@host1"],
        "faults": [said.strip().removeprefix("exact: ")],
    }
    assert main(["cluster", "down", str(machines), "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["commands"]) == 2


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "a;b", ""])
def test_what_is_no_name_of_a_machine_is_refused(host: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({"head": host}))
    with pytest.raises(UsageError, match="no name of a machine"):
        read_machines(tmp_path / "m.yaml")


def test_a_list_of_exact_s_manager_is_translated_without_its_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "given.yaml").write_text(PROVIDERS)
    (tmp_path / "files.yaml").write_text("gpu1: {api_key_fpath: /home/me/.keys, osworld_data_dir: /data/osworld_data}\n")
    words = ["--providers", str(tmp_path / "given.yaml"), "--files", str(tmp_path / "files.yaml"), "--out", str(tmp_path / "out")]
    assert main(["cluster", "jobs", str(tmp_path / "jobs.yaml"), *words]) == 0
    said = capsys.readouterr()
    found = read_machines(tmp_path / "out" / "machines.yaml")
    assert found.nodes == {"gpu1": {"desktop": 3.0}, "gpu2": {"desktop": 5.0}} and found.head == "gpu1"
    assert found.variables == {"EXACT_OSWORLD": "/data/osworld_data/evaluation_examples"}
    provider = providers(str(tmp_path / "out" / "providers.yaml"))["exact_jobs"]
    assert provider.kind == "azure" and [(each.base_url, each.weight) for each in provider.endpoints] == [
        ("https://east.example", 2.0), ("https://west.example", 1.0),
    ]  # fmt: skip
    assert "osworld/@small osworld/@chrome" in said.out and "--parallel 8" in said.out
    assert "set EXACT_KEY_AZURE_EAST on each machine" in said.err and "/home/me/.keys held keys" in said.err
    assert main(["cluster", "jobs", str(tmp_path / "jobs.yaml"), *words[:-1], str(tmp_path / "other"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["commands"]) == 3
    assert "sk-never" not in said.out + said.err + "".join(path.read_text() for path in (tmp_path / "out").iterdir())


def test_a_provider_that_the_list_names_and_no_file_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.yaml").write_text("gpu1: {num_parallel: 1, main_api_providers: [azure_eats]}\n")
    (tmp_path / "given.yaml").write_text(PROVIDERS)
    words = ["--providers", str(tmp_path / "given.yaml"), "--out", str(tmp_path / "out")]
    assert main(["cluster", "jobs", str(tmp_path / "jobs.yaml"), *words]) == 2
    assert "did you mean 'azure_east'?" in capsys.readouterr().err
