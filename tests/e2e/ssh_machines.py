"""Machines that are reached by ssh, on this machine: a real sshd in network, process and mount namespaces of its own for each.

It needs root, `ip`, `unshare` and OpenSSH's server.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.ray_nodes import possible

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
NAMESPACES = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
SERVER = """
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
"""
CLIENT = """
Host {name}
  HostName {address}
  User root
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""


def ssh_possible() -> str:
    """Return why such machines cannot be made here; empty where they can."""
    if not Path(SSHD).exists() or not shutil.which("ssh-keygen"):
        return "no OpenSSH server: apt-get install openssh-server"
    if reason := possible():
        return reason
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "namespaces of processes are not allowed here"


@dataclass
class SshMachines:
    """A network of machines, and the ssh that reaches them by name."""

    id: str
    subnet: str
    machines: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Folder that all machines see: keys and settings."""
        return Path(f"/run/exact-{self.id}")

    @property
    def variables(self) -> dict[str, str]:
        """Environment of commands whose ssh knows the machines, and whose Ray has the token."""
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": f"{self.folder}/token"}

    def address(self, name: str) -> str:
        return f"{self.subnet}.{[*self.machines].index(name) + 1}"

    def make_network(self) -> None:
        self.folder.mkdir(mode=0o700)
        for key in ("host", "user"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/{key}")
        (self.folder / "token").write_text(secrets.token_hex(32))
        ssh = self.folder / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/config "$@"\n')
        ssh.chmod(0o700)
        _run("ip", "link", "add", f"b{self.id}", "type", "bridge")
        _run("ip", "addr", "add", f"{self.subnet}.254/24", "dev", f"b{self.id}")
        _run("ip", "link", "set", f"b{self.id}", "up")

    def add(self, name: str) -> None:
        """Start a machine and wait until its sshd answers."""
        number, space = len(self.machines) + 1, f"{self.id}-{name}"
        address, inner, outer = f"{self.subnet}.{number}", f"i{number}{self.id}", f"o{number}{self.id}"
        _run("ip", "netns", "add", space)
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
        _run("ip", "link", "set", outer, "master", f"b{self.id}", "up")
        for words in (
            f"addr add {address}/24 dev {inner}",
            f"link set {inner} up",
            "link set lo up",
            f"route add default via {self.subnet}.254",
        ):
            _run("ip", "-n", space, *words.split())
        settings = self.folder / f"sshd-{name}"
        settings.write_text(SERVER.format(address=address, folder=self.folder))
        with (self.folder / "config").open("a") as file:
            file.write(CLIENT.format(name=name, address=address, folder=self.folder))
        inside = f"hostname {name} && mount -t tmpfs none /tmp && mkdir -p /run/sshd && exec {SSHD} -D -f {settings}"
        self.machines[name] = subprocess.Popen(["ip", "netns", "exec", space, *NAMESPACES, "sh", "-c", inside])
        for _ in range(100):
            if subprocess.run([self.folder / "ssh", name, "true"], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"{name} does not answer")

    def end(self, name: str) -> None:
        """End a machine with all of its processes, as if it had lost power."""
        self.machines[name].kill()
        self.machines[name].wait()

    def close(self) -> None:
        for name in self.machines:
            self.end(name)
            subprocess.run(["ip", "netns", "del", f"{self.id}-{name}"], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", f"b{self.id}"], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def ssh_machines(*names: str) -> Iterator[SshMachines]:
    """Make machines that are reached by ssh, and end them with everything that runs on them."""
    made = SshMachines(secrets.token_hex(3), f"10.{secrets.randbelow(40) + 200}.{secrets.randbelow(200)}")
    try:
        made.make_network()
        for name in names:
            made.add(name)
        yield made
    finally:
        made.close()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
