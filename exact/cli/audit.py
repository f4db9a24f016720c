"""`exact audit`: look for secrets in a whole run folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo
from exact.errors import JournalError, UsageError
from exact.text import counted

if TYPE_CHECKING:
    from exact.secrecy import Secret


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option(
    "--secret-env", "variables", multiple=True, metavar="NAME", help="Environment variable that holds a further secret. Repeatable."
)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="Site file whose secrets are looked for too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_storage("run")
def audit(run: Path, variables: tuple[str, ...], site: Path | None, as_json: bool) -> int:
    """Look for secrets in all files of RUN. Exit with code 1 if a file holds one, and print the place.

    Looked for are the secrets of the run's log-ins, headers, accounts, sessions and models, as far as their values can be read here, in any
    case and encoding; and texts with the shape of a private key, a bearer token, a key of a service or basic credentials. Secrets are never
    printed.
    """
    from exact.runs.audit import audit as places
    from exact.runs.folder_check import check_folder
    from exact.secrecy import Scrubber, Secret

    if not run.is_dir():
        raise UsageError(f"there is no run folder {run}")
    check_folder(run)
    if missing := [name for name in variables if not os.environ.get(name)]:
        raise UsageError(f"--secret-env {missing[0]}: it is not set: export {missing[0]}=...")
    scrubber = Scrubber((*(Secret(name, os.environ[name]) for name in variables), *(_of_site(site) if site else ()), *_of_run(run)))
    found = list(places(run, scrubber))
    if as_json:
        echo(json.dumps({"run": str(run), "secrets": len(scrubber.secrets), "found": [place._asdict() for place in found]}))
    else:
        for place in found:
            echo(f"{run / place.file}:{place.line}: {'the secret ' if place.known else 'the shape of a '}{place.what}")
        known = counted(len(scrubber.secrets), "known value")
        echo(f"{counted(len(found), 'place')} with a secret; looked for {known} and for secrets by their shape")
    return 1 if found else 0


def _of_run(run: Path) -> Iterator[Secret]:
    """Yield the secrets that the run, or the runs of a benchmark, name. Raises UsageError if one cannot be read."""
    from exact.config import load_recorded
    from exact.runs.journal.store import RunFolder
    from exact.runs.secrets import known_secrets

    for path in sorted({run, *(each.parent for each in run.glob("agents/*/run.json"))}):
        if (path / "run.json").exists():
            try:
                yield from known_secrets(RunFolder(path).manifest.tasks, load_recorded(path))
            except JournalError as error:
                raise UsageError(f"the secrets of {path} are not known: {error}") from error


def _of_site(path: Path) -> Iterator[Secret]:
    from exact.benchmarks.own import TaskEntry, own_task, read_site
    from exact.config import Config
    from exact.runs.secrets import known_secrets

    task = own_task(read_site(path), TaskEntry(id="audit", instruction="audit"), path.parent)
    yield from known_secrets((task,), Config())
