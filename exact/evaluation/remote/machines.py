"""Lists of machines, and the commands that start and end Ray on them, over ssh.

Machine lists of ExACT's manager, translated: `{machine: {num_parallel, main_api_providers, run_tfiles}}`, with its further files.

There a manager posted a shell script to each machine, which ran its own list of tasks. Here one benchmark has the tasks of all lists, and
each machine takes as many at once as its `num_parallel`. Keys that stand in the files are left out: each becomes an environment variable.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exact.config import Strict
from exact.errors import UsageError, unknown
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


PROVIDER = "exact_jobs"
"""Name of the provider whose endpoints are those of the lists."""


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Job of one machine."""

    num_parallel: int
    main_api_providers: tuple[str, ...] = ()
    run_tfiles: tuple[str, ...] = ()


class MachineFiles(msgspec.Struct, frozen=True):
    """Files of one machine, from files.yaml."""

    api_key_fpath: str = ""
    osworld_data_dir: str = ""


class GivenProvider(msgspec.Struct, frozen=True):
    """An endpoint, from providers.yaml."""

    provider: str
    api_base: str = ""
    api_key: str = ""
    api_version: object = ""
    """Version of Azure's API, which YAML reads as a date if it is not quoted."""
    token_provider_base: str = ""


class Translation(NamedTuple):
    """Translation of these lists into data for YAML, and the steps left to a person."""

    machines: dict[str, Any]
    providers: dict[str, Any]
    tasks: tuple[str, ...]
    """Patterns of tasks."""
    parallel: int
    notes: tuple[str, ...]


def translate(jobs: Path, files: Path | None, providers: Path | None, *, head: str = "") -> Translation:
    """Translate the lists. `head`: the machine that the others connect to; by default the first one. Raises UsageError."""
    machines = _read(jobs, dict[str, Job])
    if not machines:
        raise UsageError(f"{jobs} names no machine")
    places = _read(files, dict[str, MachineFiles]) if files else {}
    known = _read(providers, dict[str, GivenProvider]) if providers else {}
    held = {name: {"desktop": float(job.num_parallel)} for name, job in machines.items()}
    listed = Counter(name for job in machines.values() for name in job.main_api_providers)
    endpoints, notes = _endpoints(listed, known, providers)
    folders = {place.osworld_data_dir for name, place in places.items() if name in machines and place.osworld_data_dir}
    variables = {"EXACT_OSWORLD": _examples(folders.pop())} if len(folders) == 1 else {}
    if len(folders) > 1:
        notes.append("osworld_data_dir differs between machines: set EXACT_OSWORLD on each before `exact cluster up`")
    if paths := sorted({place.api_key_fpath for place in places.values() if place.api_key_fpath}):
        notes.append(f"{', '.join(paths)} held keys: source it on each machine before `exact cluster up`")
    tasks = tuple(dict.fromkeys(_pattern(path) for job in machines.values() for path in job.run_tfiles))
    return Translation(
        machines={"head": head or next(iter(machines)), "nodes": held, **({"variables": variables} if variables else {})},
        providers=endpoints,
        tasks=tasks,
        parallel=sum(job.num_parallel for job in machines.values()),
        notes=tuple(notes),
    )


def _endpoints(listed: Counter[str], known: Mapping[str, GivenProvider], where: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return the provider whose endpoints the lists name, each weighted by how often it was named, and notes on keys."""
    found, notes, kinds = list[dict[str, Any]](), list[str](), set[str]()
    given: dict[str, Any] = {}
    for name, count in listed.items():
        if not known:
            notes.append(f"provider {name} is described in providers.yaml, which was not given: add --providers")
            continue
        if name not in known:
            raise unknown("provider", name, known, where=str(where))
        each = known[name]
        kinds.add("azure" if each.provider.startswith("azure") else "openai")
        if not each.api_base:
            raise UsageError(f"provider {name} in {where} has no api_base")
        endpoint = {"base_url": each.api_base, "weight": float(count)}
        if each.token_provider_base:
            given["token"] = "azure"
        elif each.api_key not in ("", "empty", "EMPTY"):
            endpoint["api_key_env"] = f"EXACT_KEY_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"
            notes.append(f"set {endpoint['api_key_env']} on each machine to the key of {name}, which is not copied")
        given |= {"api_version": str(each.api_version)} if each.api_version else {}
        found.append(endpoint)
    if len(kinds) > 1:
        raise UsageError("main_api_providers name Azure and other servers, which take requests of two forms: translate one list for each")
    return ({PROVIDER: {"kind": kinds.pop(), **given, "endpoints": found}} if found else {}), notes


def _pattern(path: str) -> str:
    """Return the pattern of an index of OSWorld: test_all.json is `osworld/@all`."""
    return f"osworld/@{Path(path).stem.removeprefix('test_')}"


def _examples(folder: str) -> str:
    """Return OSWorld's folder of task files in ExACT's data folder."""
    return folder if Path(folder).name == "evaluation_examples" else f"{folder.rstrip('/')}/evaluation_examples"


def _read(path: Path, kind: Any) -> Any:
    try:
        return msgspec.convert(plain_data(path) or {}, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from error
