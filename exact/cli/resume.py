"""`exact resume`: resume a run that was interrupted or that failed."""

from __future__ import annotations

import os
from pathlib import Path

import click

from exact.cli.run_folder import RunFolderPath, on_storage


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option(
    "--repeat-uncertain", is_flag=True, help="Repeat a committed action that a crash interrupted, although it may have been executed."
)
@click.option(
    "--secrets",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML file of the secrets that the run does not store, EXACT_SECRET_NAME: value.",
)
@click.option("--fail-unsolved", is_flag=True, help="Exit with code 3 unless every task is solved.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each task.")
@on_storage("run", write=True)
def resume(run: Path, repeat_uncertain: bool, secrets: Path | None, as_json: bool, fail_unsolved: bool, junit: Path | None) -> int:
    """Resume RUN where its journals end.

    Recorded model calls and environment steps are not repeated. A paused search continues. Secrets that stood in the site file are not
    stored: they are read from the environment variables that the error names, or from --secrets.
    """
    from exact.cli.attempt import attempt
    from exact.cli.trust import require_trust
    from exact.runs.concealed import read_secrets, require_secrets
    from exact.runs.journal.commands import lift
    from exact.runs.runner import reopen
    from exact.runs.sole import sole

    folder, config = reopen(run)
    require_trust(run)
    if secrets is not None:
        os.environ.update(read_secrets(secrets))
    require_secrets(folder.manifest.tasks, config)
    with sole(folder.path):
        for task in folder.manifest.tasks:
            lift(folder.task_folder(task) / "journal.jsonl")
    return attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain, fail_unsolved=fail_unsolved, junit=junit)
