"""`exact calibrate`: what a value function's judgements were worth, and a curve that makes them probabilities."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exact.cli.newfile import NewFile

if TYPE_CHECKING:
    from exact.calibration.collect import Source
    from exact.calibration.label import LabelledState
    from exact.calibration.measure import Prediction


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--label", "count", type=click.IntRange(0), default=0, metavar="N", help="Also finds outcomes for N states drawn at random.")
@click.option("--seed", type=int, default=0, help="Of the drawing.")
@click.option("--fit", type=NewFile(), help="Writes the fitted curve here, for value.calibration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def calibrate(runs: tuple[Path, ...], count: int, seed: int, fit: Path | None, as_json: bool) -> None:
    """Compares the judgements in RUNs with outcomes: reliability, Brier score, and how well success is told from failure (AUC).

    States on committed paths have the benchmark's verdict for free, but they are a biased sample: only what was chosen. With --label
    N, states drawn at random are gone to in fresh environments, the policy finishes, and the benchmark judges. Labels are kept in
    RUN/labels.jsonl. "Refitted" is through a curve that was fitted to other tasks.
    """
    from exact.calibration.collect import committed, open_source
    from exact.runs.journal.store import RunFolder

    sources = [open_source(RunFolder.open(run)) for run in runs]
    if fit is not None:
        _refuse_calibrated(sources)
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for source in sources:
        labels = asyncio.run(_labels(source, count, seed, quiet=as_json))
        groups.setdefault((source.judge, "committed"), []).extend(committed(source))
        groups.setdefault((source.judge, "drawn"), []).extend(each.prediction() for each in labels if not each.reason)
    found = {key: judged for key, judged in groups.items() if judged}
    if not found:
        from exact.errors import UsageError

        raise UsageError("no judged state with an outcome: the attempts were not scored; try --label 50")
    if fit is not None:
        _write(fit, found)
    click.echo(json.dumps([_figures(*key, judged) for key, judged in found.items()]) if as_json else "\n".join(_lines(found)))


async def _labels(source: Source, count: int, seed: int, *, quiet: bool) -> list[LabelledState]:
    """Those that are kept, and as many new ones as are missing."""
    from exact.agents.agent import build_agent
    from exact.calibration.label import LabelledState, label
    from exact.runs.journal.store import append_line, read_lines
    from exact.runs.runner import open_models

    path = source.folder.path / "labels.jsonl"
    kept = list(read_lines(path, LabelledState))
    if count <= len(kept):
        return kept
    from exact.benchmarks.open import environment_kind, open_environments
    from exact.models.open import Models
    from exact.prompts.library import use_folder
    from exact.runs.environment_cache import EnvironmentCache

    config, benchmark = source.config, source.folder.manifest.benchmark
    opened_models = Models(config.models, folder=source.folder.path)
    models = open_models(config, opened_models)
    shared = EnvironmentCache(
        lambda task: environment_kind(task, benchmark=benchmark),
        lambda task: open_environments(task, config, benchmark=benchmark, notify=lambda text: click.echo(text, err=True)),
    )
    try:
        with use_folder(config.prompts):
            policy = build_agent(config, models.__getitem__).policy
            known, missing = {(each.task, each.node) for each in kept}, count - len(kept)
            async with shared:
                async for each in label(source, missing, environments=shared, policy=policy, seed=seed, known=known):
                    kept.append(each)
                    append_line(path, each)
                    if not quiet:
                        said = each.reason or ("success" if each.success else "failure")
                        click.echo(f"{len(kept)} of {count}: {each.task} state {each.node}, valued {each.value:.2f}: {said}", err=True)
    finally:
        await opened_models.close()
    return kept


def _refuse_calibrated(sources: Sequence[Source]) -> None:
    """Raises UsageError: a curve that is fitted to what came through another undoes that one."""
    from exact.errors import UsageError

    for source in sources:
        if curve := source.config.value.calibration:
            raise UsageError(
                f"the judgements in {source.folder.path} went through value.calibration {curve}: fit a curve to runs without one"
            )


def _write(path: Path, groups: dict[tuple[str, str], list[Prediction]]) -> None:
    """The curve of the drawn states where there are any, else of the committed ones. Raises UsageError for several value functions."""
    import msgspec

    from exact.calibration.measure import fit
    from exact.errors import UsageError

    judges = {judge for judge, _ in groups}
    if len(judges) != 1:
        raise UsageError(f"a curve is of one value function, not of {len(judges)}: name runs with the same one")
    [judge] = judges
    kind = "drawn" if (judge, "drawn") in groups else "committed"
    judged = groups[judge, kind]
    tasks = len({one.task for one in judged})
    path.write_bytes(msgspec.json.encode(fit(judged, f"{judge}, {len(judged)} {kind} states of {tasks} tasks")))


def _figures(judge: str, sample: str, judged: Sequence[Prediction]) -> dict[str, Any]:
    from exact.calibration.measure import auc, brier, interval, refitted, reliability

    again = refitted(judged)
    return {
        "value_function": judge,
        "sample": sample,
        "states": len(judged),
        "tasks": len({one.task for one in judged}),
        "success": sum(one.success for one in judged) / len(judged),
        "brier": interval(judged, brier),
        "brier_refitted": interval(again, brier) if again else None,
        "auc": interval(judged, auc),
        "reliability": [bin._asdict() for bin in reliability(judged)],
    }


def _lines(groups: dict[tuple[str, str], list[Prediction]]) -> Iterator[str]:
    for (judge, sample), judged in groups.items():
        found = _figures(judge, sample, judged)
        yield f"{judge}: {found['states']} {sample} states of {found['tasks']} tasks, {found['success']:.0%} of them came to success"
        for name, words in (("brier", "Brier score"), ("brier_refitted", "refitted"), ("auc", "AUC")):
            figure = found[name]
            shown = f"{figure[0]:.3f} [{figure[1]:.3f}, {figure[2]:.3f}]" if figure else "-  (needs states of both outcomes, of two tasks)"
            yield f"  {words:<12} {shown}"
        yield "  valued        states  mean   came to success"
        for bin in found["reliability"]:
            bar = "█" * round(20 * bin["rate"])
            yield f"  {bin['low']:.1f} to {bin['high']:.1f}    {bin['states']:>6}  {bin['value']:.2f}   {bin['rate']:>4.0%} {bar}"
        yield ""
