"""`exact resume`: go on with a run that was interrupted or that failed."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--repeat-uncertain", is_flag=True, help="Do again a real action that a crash cut short, though it may have happened.")
@click.option("--fail-unsolved", is_flag=True, help="Exit code 3 unless every task is solved.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a task instead of text.")
def resume(run: Path, repeat_uncertain: bool, as_json: bool, fail_unsolved: bool, junit: Path | None) -> int:
    """Go on with RUN where its journals end. No journalled model call or environment step is made again. A pause is lifted."""
    from exact.cli.attempt import attempt
    from exact.runs.journal.commands import lift
    from exact.runs.runner import reopen

    folder, config = reopen(run)
    for task in folder.manifest.tasks:
        lift(folder.task_folder(task) / "journal.jsonl")
    return attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain, fail_unsolved=fail_unsolved, junit=junit)
