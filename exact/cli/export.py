"""`exact export`: export attempts as Playwright tests, graphs, drawings or animations, and runs as training data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from exact.cli.init import NewFile
from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.signals import run_async
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder
    from exact.task import Task

KINDS = {
    "playwright": (".py", "the committed path as a Playwright test"),
    "json": (".json", "every state and action with its statistics"),
    "graphml": (".graphml", "the same as a graph, for networkx, Gephi or yEd"),
    "dot": (".dot", "the tree for Graphviz"),
    "svg": (".svg", "the tree as a drawing (requires Graphviz)"),
    "pdf": (".pdf", "the same as PDF (requires Graphviz)"),
    "png": (".png", "the same as PNG (requires Graphviz)"),
    "path": (".png", "the committed path and its siblings as PNG (requires Graphviz)"),
    "trajectory": (".svg", "the committed path as an SVG animation of screenshots"),
    "gif": (".webp", "the same as animated WebP; PNG or GIF if --out ends so"),
}
"""File name suffix and description of each kind that is made of one attempt."""
LEARNING = {
    "imitation": "committed paths of solved attempts as conversations",
    "exploratory": "the way of the search, with its steps back, as conversations",
    "preference": "better and worse actions of a state",
    "value": "states, and what they are worth",
    "policy": "states, and the share of visits of each action",
    "rollouts": "answers of the policy, exact in token ids, with rewards",
}
"""Description of each kind of training data, which is made of any number of runs."""

_WIDTH = 14
_CLEAR = "\r\033[K"
_HELP = "\n\n".join(
    "\b\n" + title + "\n" + "\n".join(f"{kind:{_WIDTH}}{text}" for kind, text in kinds.items())
    for title, kinds in (
        ("Of each attempt, beside its journal:", {kind: text for kind, (_, text) in KINDS.items()}),
        ("Training data, one JSON object a line (--out FILE):", LEARNING),
    )
)


@click.command(epilog=_HELP)
@click.argument("kind", type=click.Choice([*KINDS, *LEARNING]), metavar="KIND")
@click.argument("runs", type=RunFolderPath(), nargs=-1, required=True, metavar="RUN...")
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed: 'miniwob/click-*'.")
@click.option("--out", type=NewFile(), help="File to write to: the training data, or the export of a single task; - for standard output.")
@click.option("--format", "form", metavar="FORMAT", help="Training data: conversational, prompt-completion, chat or verifiers.")
@click.option(
    "--outcome", type=click.Choice(["solved", "failed", "any"]), help="Training data: attempts by their score. Conversations: solved."
)
@click.option("--min-steps", type=click.IntRange(0), default=0, metavar="N", help="Training data: fewest committed actions.")
@click.option("--max-steps", type=click.IntRange(1), metavar="N", help="Training data: most answers of a conversation.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Training data: most tokens of a record, by an estimate.")
@click.option(
    "--max-backtracking", type=click.FloatRange(0, 1), default=1.0, metavar="SHARE", help="Exploratory: most answers that step back."
)
@click.option("--per-site", type=click.IntRange(1), metavar="N", help="Training data: most attempts of one site.")
@click.option(
    "--exclude",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Training data: file of tasks to leave out, as a test keeps them for itself.",
)
@click.option("--margin", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Preference: least difference of values.")
@click.option("--view", metavar="CONFIG", help="Training data: configuration that says how states are shown. Default: the run's.")
@click.option("--pictures/--no-pictures", default=None, help="Training data: with screenshots or without. Default: as the view says.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each file, or the manifest of training data.")
@on_storage("runs")
def export(kind: str, runs: tuple[Path, ...], pattern: str | None, out: Path | None, as_json: bool, **settings: Any) -> None:
    """Export each attempt of a RUN as KIND and print the paths, or all RUNs as training data.

    A RUN may be the folder of a benchmark for training data. Its file appears when it is whole, with FILE.manifest.json beside it, which
    lists its contents, their source, and the left-out attempts with the reasons.
    """
    if kind in LEARNING:
        _training_data(kind, runs, pattern, out, as_json=as_json, **settings)
    else:
        _attempts(kind, runs, pattern, out, as_json)


def _attempts(kind: str, runs: tuple[Path, ...], pattern: str | None, out: Path | None, as_json: bool) -> None:
    from exact.cli.report import started_tasks
    from exact.config import load_recorded
    from exact.errors import UsageError
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder, write_whole
    from exact.runs.secrets import known_secrets

    folders = [RunFolder.open(run) for run in runs]
    tasks = [(folder, task) for folder in folders for task in started_tasks(folder, pattern)]
    if out is not None and len(tasks) != 1:
        raise UsageError(f"--out names one file, but {len(tasks)} tasks match: select one with --task")
    for folder, task in tasks:
        reading = Reading(folder.task_folder(task) / "journal.jsonl", load_recorded(folder.path), folder.blobs)
        folder.protect(known_secrets(folder.manifest.tasks, reading.config))  # a run of an earlier version may hold some
        content = folder.scrubber.data(run_async(_content(kind, task, reading, out)))
        if out == Path("-"):
            sys.stdout.buffer.write(content)
            continue
        name = {"trajectory": "trajectory", "gif": "trajectory", "playwright": "test_path", "path": "path"}.get(kind, "tree")
        path = out or folder.task_folder(task) / f"{name}{KINDS[kind][0]}"
        write_whole(path, content)
        echo(json.dumps({"task": task.id, "path": str(path)}) if as_json else path)


async def _content(kind: str, task: Task, reading: Reading, out: Path | None) -> bytes:
    from exact.search.inspect.export import to_graphml, to_json

    match kind:
        case "playwright":
            from exact.report.export.playwright import playwright_test

            return playwright_test(task, reading).encode()
        case "json":
            return to_json(reading.state.search.tree)
        case "graphml":
            return to_graphml(reading.state.search.tree)
        case "trajectory":
            from exact.report.export.animation import trajectory

            return trajectory(reading).encode()
        case "gif":
            from exact.report.export.picture import moving_picture

            return moving_picture(reading, out.suffix if out and out.suffix else ".webp")
    from exact.report.export.picture import dot, drawn

    text = dot(reading.state.search.tree, frozenset(reading.state.live.path), path=kind == "path")
    return text.encode() if kind == "dot" else await drawn(text, "png" if kind == "path" else kind)  # type: ignore[arg-type]


def _training_data(
    kind: Any, runs: tuple[Path, ...], pattern: str | None, out: Path | None, *, form: str | None, outcome: str | None,
    exclude: Path | None, view: str | None, pictures: bool | None, margin: float, as_json: bool, **limits: Any,
) -> None:  # fmt: skip
    import msgspec

    from exact.cli.report import fits
    from exact.config import load
    from exact.errors import UsageError, unknown
    from exact.learning.attempts import run_folders
    from exact.learning.export import Request, export
    from exact.learning.filters import Filters, test_tasks
    from exact.learning.formats import Format
    from exact.learning.records import CONVERSATIONS

    if out is None or out == Path("-"):
        raise UsageError(f"{kind} is training data, which goes to a file with a manifest beside it: name it with --out {kind}.jsonl")
    form = form or "conversational"
    if form not in get_args(Format):
        raise unknown("format", form, get_args(Format))
    chosen_outcome: Any = outcome or ("solved" if kind in CONVERSATIONS else "any")
    filters = Filters(outcome=chosen_outcome, excluded=test_tasks(exclude) if exclude else (), **limits)
    request = Request(
        kind=kind, form=form, filters=filters, view=load(view) if view else None, pictures=pictures, margin=margin  # type: ignore[arg-type]
    )  # fmt: skip
    is_shown = sys.stderr.isatty()

    def progress(text: str) -> None:
        if is_shown:
            echo(text, mark=_CLEAR, err=True, nl=False)

    known = [task.id for folder in run_folders(runs) for task in folder.manifest.tasks]
    if pattern is not None and not any(fits(id, pattern) for id in known):
        raise unknown("task", pattern, known)

    def chosen(run: RunFolder) -> list[Task]:
        return [task for task in run.manifest.tasks if pattern is None or fits(task.id, pattern)]

    manifest = export(request, runs, out, chosen=chosen, progress=progress)
    if is_shown:
        echo(mark=_CLEAR, err=True, nl=False)
    echo(json.dumps(msgspec.to_builtins(manifest)) if as_json else "\n".join(_summary(out, manifest)))


def _summary(out: Path, manifest: Any) -> list[str]:
    from exact.text import counted

    attempts = sum(len(run.attempts) for run in manifest.runs)
    lines = [
        f"{out}: {counted(manifest.records, 'record')} of {manifest.attempts} of {counted(attempts, 'attempt')}, "
        f"about {manifest.tokens:,} tokens, {manifest.trained_tokens:,} of them to learn"
    ]
    lines += [f"left out: {count} x {reason}" for reason, count in sorted(manifest.left_out.items(), key=lambda each: -each[1])]
    lines += [f"left out: {counted(manifest.duplicates, 'duplicate')}"] * bool(manifest.duplicates)
    lines += [f"not readable: {count} x {reason}" for reason, count in sorted(manifest.skipped.items(), key=lambda each: -each[1])]
    damaged = [(run.run, each) for run in manifest.runs for each in run.attempts if each.damage]
    lines += [f"damaged: {run} {each.task}: {each.damage}; {counted(each.records, 'record')} of what is before it" for run, each in damaged]
    return lines
