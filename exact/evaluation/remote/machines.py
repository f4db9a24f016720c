"""Lists of machines, and the commands that start and end Ray on them, over ssh."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exact.config import Strict
from exact.errors import UsageError
from exact.evaluation.remote.cluster import KEPT, MOST_KEPT
from exact.untrusted import read_yaml

_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*")
LOCAL = "localhost"
"""Machine that is this one: its commands run without ssh."""
LONGEST = 180
"""Seconds in which a command must end."""


class Machines(Strict, frozen=True, kw_only=True):
    """Content of a list of machines, in YAML."""

    head: str
    """Machine that the nodes connect to, as ssh names it. Its resources are those of `nodes`, if it is among them."""
    nodes: dict[str, dict[str, float]] = {}
    """Resources that machines declare: `browser`, `desktop`, `gpu` and others, by the name of the machine."""
    address: str = ""
    """Address of the head for the nodes. Empty: its name, without the user."""
    port: int = 6379
    ray: str = "ray"
    """Ray's command on the machines. An absolute path if it is not on the PATH of ssh."""
    token_path: str = ""
    """File on each machine that holds Ray's token, which keeps others from running code there. Empty: RAY_AUTH_TOKEN_PATH there."""
    variables: dict[str, str] = {}
    """Further environment variables of the nodes, such as EXACT_OSWORLD. Keys do not belong here: set them on the machines."""

    def __post_init__(self) -> None:
        for host in (self.head, *self.nodes):
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is no name of a machine: write HOST or USER@HOST")
        if bad := [name for name in self.variables if not re.fullmatch(r"[A-Za-z_]\w*", name)]:
            raise ValueError(f"{bad[0]!r} is no name of an environment variable")

    @property
    def joined(self) -> str:
        """Address that nodes and `--address` give."""
        return f"{self.address or self.head.rpartition('@')[2]}:{self.port}"

    @property
    def client(self) -> str:
        """Address for a machine outside of the cluster, by Ray's client on its usual port."""
        return f"ray://{self.address or self.head.rpartition('@')[2]}:10001"

    def up(self) -> list[MachineCommand]:
        """Return the commands that start the head, then each node."""
        own = self.nodes.get(self.head, {})
        words = ["start", "--head", f"--port={self.port}", "--include-dashboard=false", "--disable-usage-stats"]
        found = [self._on(self.head, *words, *_resources(own))]
        for host, held in self.nodes.items():
            if host != self.head:
                found.append(self._on(host, "start", f"--address={self.joined}", "--disable-usage-stats", *_resources(held)))
        return found

    def down(self) -> list[MachineCommand]:
        """Return the commands that end Ray on each node, then on the head."""
        return [self._on(host, "stop") for host in (*(host for host in self.nodes if host != self.head), self.head)]

    def status(self) -> list[MachineCommand]:
        """Return the commands that say whether Ray answers on each machine."""
        return [self._on(host, "status", f"--address={self.joined}") for host in dict.fromkeys((self.head, *self.nodes))]

    def _on(self, host: str, *words: str) -> MachineCommand:
        token = {"RAY_AUTH_TOKEN_PATH": self.token_path} if self.token_path else {}
        variables = {"RAY_AUTH_MODE": "token", **token, f"RAY_{KEPT}": str(MOST_KEPT), **self.variables}
        return MachineCommand(host, ("env", *(f"{name}={value}" for name, value in variables.items()), self.ray, *words))


class MachineCommand(NamedTuple):
    """A command on one machine."""

    host: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words if self.host == LOCAL else ("ssh", "-o", "BatchMode=yes", self.host, "--", shlex.join(self.words)))

    def run(self) -> str:
        """Run it, and return the fault in one line, with the machine's name; empty if there is none."""
        ssh = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", self.host, "--", shlex.join(self.words))
        try:
            done = subprocess.run(
                self.words if self.host == LOCAL else ssh,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return f"{self.host}: no answer in {LONGEST} s"
        except OSError as error:
            return f"{self.host}: cannot run {error.filename}: {error.strerror}"
        if done.returncode == 0:
            return ""
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        return f"{self.host}: {'cannot be reached: ' if done.returncode == 255 and self.host != LOCAL else ''}{lines[-1][:200]}"


def read_machines(path: Path) -> Machines:
    """Return a list of machines. Raises UsageError."""
    try:
        return msgspec.convert(plain_data(path), Machines)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}: write `head: HOST` and `nodes: {{HOST: {{browser: 8}}}}`") from error


def run_all(commands: list[MachineCommand]) -> list[str]:
    """Run commands, the first one before the others, and return the faults in their order."""
    if not commands:
        return []
    if fault := commands[0].run():
        return [fault]
    with ThreadPoolExecutor(16) as pool:
        return [fault for fault in pool.map(MachineCommand.run, commands[1:]) if fault]


def plain_data(path: Path) -> Any:
    """Return the data in a YAML file. Raises UsageError."""
    try:
        return read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: name a YAML file") from error


def _resources(held: Mapping[str, float]) -> list[str]:
    """Return Ray's options for the resources of a node. Its processors count only if the list says so."""
    custom = {name: amount for name, amount in held.items() if name not in ("cpu", "gpu")}
    words = [f"--num-cpus={held.get('cpu', 1):g}"]
    words += [f"--num-gpus={held['gpu']:g}"] if "gpu" in held else []
    return [*words, f"--resources={json.dumps(custom)}"] if custom else words
