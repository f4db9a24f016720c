"""`exact cluster`: start and end Ray on a list of machines, and translate machine lists of ExACT."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.terminal import echo
from exact.text import counted

if TYPE_CHECKING:
    from exact.evaluation.remote.machines import MachineCommand

_LIST = click.argument("machines", type=click.Path(path_type=Path), metavar="MACHINES.yaml")
_DRY = click.option("--dry-run", is_flag=True, help="Print the commands, and run none.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def cluster() -> None:
    """Start and end Ray on machines that you reach by ssh, for `exact bench --engine ray`.

    MACHINES.yaml names the head and the resources of each node: `head: host0`, `nodes: {host1: {browser: 8}, host2: {desktop: 2, gpu: 1}}`.
    """


@cluster.command()
@_LIST
@_DRY
@_JSON
def up(machines: Path, dry_run: bool, as_json: bool) -> int:
    """Start Ray on the head, then on all nodes."""
    from exact.evaluation.remote.machines import read_machines, run_all

    found = read_machines(machines)
    if dry_run:
        return _shown(found.up(), as_json)
    code = _told(found.up(), run_all(found.up()), as_json)
    if code == 0 and not as_json:
        echo(f"{counted(len(found.up()), 'machine')} up: exact bench SUITE --agent AGENT --engine ray --address {found.joined}")
        echo(f"From a machine outside of the cluster: --address {found.client}")
    return code


@cluster.command()
@_LIST
@_DRY
@_JSON
def down(machines: Path, dry_run: bool, as_json: bool) -> int:
    """End Ray on all nodes, then on the head, with every program that runs on it."""
    from exact.evaluation.remote.machines import read_machines

    commands = read_machines(machines).down()
    if dry_run:
        return _shown(commands, as_json)
    return _told(commands, [fault for command in commands if (fault := command.run())], as_json)


@cluster.command()
@_LIST
@_DRY
@_JSON
def status(machines: Path, dry_run: bool, as_json: bool) -> int:
    """Print which machines answer."""
    from exact.evaluation.remote.machines import read_machines

    commands = read_machines(machines).status()
    if dry_run:
        return _shown(commands, as_json)
    faults = []
    for command in commands:
        if fault := command.run():
            faults.append(fault)
        elif not as_json:
            echo(f"{command.host}: up")
    return _told(commands, faults, as_json)


@cluster.command()
@click.argument("jobs", type=click.Path(path_type=Path), metavar="JOBS.yaml")
@click.option("--files", type=click.Path(path_type=Path), help="ExACT's files.yaml.")
@click.option("--providers", type=click.Path(path_type=Path), help="ExACT's providers.yaml.")
@click.option("--head", default="", metavar="HOST", help="Machine that the others connect to. Default: the first one.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), default=Path(), help="Folder for machines.yaml and providers.yaml. Default: here."
)
@_JSON
def jobs(jobs: Path, files: Path | None, providers: Path | None, head: str, out: Path, as_json: bool) -> int:
    """Translate a machine list of ExACT's manager: {machine: {num_parallel, main_api_providers, run_tfiles}}.

    It writes machines.yaml, providers.yaml and bench.args, the arguments of `exact bench`, one a line; and it prints the commands that do
    the same as the list. No key is copied.
    """
    import yaml

    from exact.errors import UsageError
    from exact.evaluation.remote.machines import PROVIDER, translate

    found = translate(jobs, files, providers, head=head)
    out.mkdir(parents=True, exist_ok=True)
    for name, data in (("machines.yaml", found.machines), ("providers.yaml", found.providers)):
        if data:
            if (out / name).exists():
                raise UsageError(f"{out / name} exists: choose another --out")
            (out / name).write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    lists = shlex.quote(str(out / "machines.yaml"))
    settings = [f"models.providers={out / 'providers.yaml'}", f"models.policy.provider={PROVIDER}"] if found.providers else []
    address = f"{found.machines['head'].rpartition('@')[2]}:6379"
    words = [*found.tasks, *(word for each in settings for word in ("--set", each))]
    words += ["--engine", "ray", "--address", address, "--parallel", str(found.parallel)]
    (out / "bench.args").write_text("".join(f"{word}\n" for word in words), "utf-8")
    then = [f"exact cluster up {lists}", shlex.join(["exact", "bench", *words, "--agent", "AGENT.yaml"]), f"exact cluster down {lists}"]
    if as_json:
        echo(json.dumps({"commands": then, "notes": found.notes}))
        return 0
    for note in found.notes:
        echo(f"exact: {note}", err=True)
    for command in then:
        echo(command)
    return 0


def _shown(commands: list[MachineCommand], as_json: bool) -> int:
    """Print commands that are not run."""
    if as_json:
        echo(json.dumps({"commands": [str(command) for command in commands]}))
    else:
        for command in commands:
            echo(str(command))
    return 0


def _told(commands: list[MachineCommand], faults: list[str], as_json: bool) -> int:
    """Print the faults of commands that were run, and return the exit code."""
    if as_json:
        echo(json.dumps({"machines": [command.host for command in commands], "faults": faults}))
    else:
        for fault in faults:
            echo(f"exact: {fault}", err=True)
    return 1 if faults else 0
