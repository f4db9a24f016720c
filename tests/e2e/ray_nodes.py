"""A cluster of Ray on this machine: a head here, and nodes in network namespaces, each with temporary files and a home of its own.

Used by a test and by bench/scale.py. It needs root, `ip` and `unshare`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.processes import left, marked

MARK = "LC_EXACT_TEST_RUN"
RAY = Path(sys.executable).with_name("ray")


def possible() -> str:
    """Return why nodes cannot be made here; empty where they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if missing := [each for each in ("ip", "unshare", "mount") if not shutil.which(each)]:
        return f"{missing[0]} is not installed"
    if not RAY.exists() or find_spec("grpc") is None:
        return "Ray or its client is not installed: shells/setup.sh --extras"
    tried = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


@dataclass
class RayNodes:
    """The head of a cluster and its nodes."""

    folder: Path
    """Folder for Ray's own files on the head."""
    subnet: str
    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the nodes, such as keys, which the head does not have."""
    nodes: list[str] = field(default_factory=list)

    @property
    def here(self) -> str:
        """Address of this machine on the cluster's network."""
        return f"{self.subnet}.254"

    @property
    def address(self) -> str:
        """Address of the cluster."""
        return f"{self.here}:6399"

    @property
    def client_address(self) -> str:
        """Address for Ray's client, which needs no Ray on the machine that it runs on."""
        return f"ray://{self.here}:10001"

    @property
    def variables(self) -> dict[str, str]:
        """Environment of everything that belongs to the cluster."""
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": f"{self.name}-4711-token-of-the-test", "RAY_USAGE_STATS_ENABLED": "0"}
        return {**os.environ, **token, MARK: self.name, "RAY_TMPDIR": str(self.folder), "RAY_DEDUP_LOGS": "0"}

    def mark(self, node: str) -> str:
        """Return the setting that the processes of a node have."""
        return f"{MARK}={self.name}-{node}"

    def start_head(self) -> None:
        self._ray(
            "start", "--head", f"--node-ip-address={self.here}", "--port=6399", f"--temp-dir={self.folder}",
            "--ray-client-server-port=10001",
            "--include-dashboard=false", "--num-cpus=0", "--object-store-memory=100000000", "--disable-usage-stats",
        )  # fmt: skip

    def add(self, node: str, resources: Mapping[str, float]) -> None:
        """Start a node in namespaces of its own."""
        number, space = len(self.nodes) + 1, f"{self.name}-{node}"
        inner, outer = f"x{number}{self.name[-6:]}i", f"x{number}{self.name[-6:]}o"
        _sh("ip", "netns", "add", space)
        self.nodes.append(node)
        _sh("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
        _sh("ip", "link", "set", outer, "master", self._bridge, "up")
        for words in (
            ("addr", "add", f"{self.subnet}.{number}/24", "dev", inner),
            ("link", "set", inner, "up"),
            ("link", "set", "lo", "up"),
        ):
            _sh("ip", "-n", space, *words)
        start = (
            f"mount -t tmpfs none /tmp && mkdir -p /tmp/home {self.folder} && cd /tmp/home && exec {RAY} start --address={self.address} "
            f"--node-ip-address={self.subnet}.{number} --num-cpus=0 --object-store-memory=100000000 --disable-usage-stats "
            f"--resources='{json.dumps(dict(resources))}'"
        )
        variables = {**self.variables, **self.environment, MARK: f"{self.name}-{node}", "HOME": "/tmp/home", "TMPDIR": "/tmp"}
        command = ["ip", "netns", "exec", space, "unshare", "--mount", "--uts", "sh", "-c", f"hostname {node} && {start}"]
        for tries in range(3):  # Ray gives up after 30 s, which a busy machine may take
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)
            if done.returncode == 0:
                return
            self.kill(node)
            assert tries < 2, done.stdout + done.stderr

    def kill(self, node: str) -> None:
        """End a node's Ray and its workers by `kill -9`, as if its machine had lost power; its browsers are not killed."""
        for process, command in marked(self.mark(node)).items():
            if "chrom" not in command.partition(" ")[0]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def browsers(self, seconds: float = 0.0) -> list[str]:
        """Return the browsers of all nodes that are alive after at most so long."""
        deadline = time.monotonic() + seconds
        while True:
            found = [command for node in self.nodes for command in marked(self.mark(node)).values() if "chrom" in command.partition(" ")[0]]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    @property
    def _bridge(self) -> str:
        return f"b{self.name[-8:]}"

    def _ray(self, *words: str) -> None:
        done = subprocess.run([RAY, *words], env=self.variables, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def _make_network(self) -> None:
        _sh("ip", "link", "add", self._bridge, "type", "bridge")
        _sh("ip", "addr", "add", f"{self.here}/24", "dev", self._bridge)
        _sh("ip", "link", "set", self._bridge, "up")

    def _end(self) -> None:
        """End every process of the cluster, by its mark, and remove the network."""
        for setting in (*(self.mark(node) for node in self.nodes), f"{MARK}={self.name}"):
            for process in marked(setting):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            left(setting, 10)
        for node in self.nodes:
            subprocess.run(["ip", "netns", "del", f"{self.name}-{node}"], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self._bridge], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def ray_nodes(nodes: Mapping[str, Mapping[str, float]], environment: Mapping[str, str] | None = None) -> Iterator[RayNodes]:
    """Start a cluster whose nodes declare these resources, and end it with everything that runs on it."""
    id = secrets.token_hex(4)
    cluster = RayNodes(Path(f"/tmp/er-{id}"), f"10.{secrets.randbelow(90) + 100}.{secrets.randbelow(200)}", f"er{id}", environment or {})
    try:
        cluster._make_network()
        cluster.start_head()
        for node, resources in nodes.items():
            cluster.add(node, resources)
        yield cluster
    finally:
        cluster._end()


def _sh(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
