"""`exact train`: train a model on exports or against live environments, or calibrate a value function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exact.cli.init import NewFile
from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.text import counted
from exact.version import set_up

if TYPE_CHECKING:
    from exact.calibration.collect import LabelledState, Source
    from exact.calibration.measure import Prediction
    from exact.learning.train.sft import TrainedModel

_PIP = "pip install 'exact-agent[train]' in a virtual environment of its own"
_MEASURES = {
    "brier": ("Brier score", "a state"),
    "brier_refitted": ("refitted", "states of two tasks"),
    "ece": ("ECE", "a state"),
    "auc": ("AUC", "states of both outcomes"),
    "auc_within": ("AUC in a task", "a task with states of both outcomes"),
}
"""Words for each measure, and its requirements."""


@click.group()
def train() -> None:
    """Train a chat model (sft on exports, grpo against the environments of an OpenEnv server), or the built-in agent's own model.

    `calibration` compares the estimates of a value function with outcomes, and fits a curve that makes them probabilities.
    """
    import importlib.util

    if click.get_current_context().invoked_subcommand in ("builtin", "calibration"):
        return  # they need numpy alone
    missing = [name for name in ("torch", "transformers", "trl", "peft", "datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} not installed: {set_up('--train', _PIP)}, then call that environment's `exact train`")


_CONFIG = click.option(
    "--config", "path", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True, help="Settings, as YAML."
)
_SET = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Setting in place of the file's. Repeatable.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@train.command()
@_CONFIG
@_SET
@_JSON
def sft(path: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Train on exports; only the learned answers count in the loss."""
    from exact.learning.train.settings import SFTSettings, read_settings
    from exact.learning.train.sft import train as run

    _told(run(read_settings(path, SFTSettings, overrides)), "loss", as_json)


@train.command()
@_CONFIG
@_SET
@_JSON
def grpo(path: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Train by rewards in the environments of a server, such as `exact serve miniwob/click-test`."""
    from exact.learning.train.grpo import train as run
    from exact.learning.train.settings import GRPOSettings, read_settings

    def report(figures: dict[str, float]) -> None:
        echo(
            " ".join(
                f"{name} {figures[name]:.4g}" for name in ("step", "reward", "reward_std", "loss", "entropy", "kl") if name in figures
            ),
            err=True,
        )

    _told(run(read_settings(path, GRPOSettings, overrides), report), "reward", as_json)


@train.command()
@_CONFIG
@_SET
@_JSON
def builtin(path: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Train the model of the learned agent: search training tasks with their rewards, fit, and search again.

    Rewards are read on the training tasks and seeds of the split alone.
    """
    from exact.learning.builtin.machine import use_common_kernels

    use_common_kernels()  # before numpy is loaded
    from exact.learning.builtin.rounds import BuiltinSettings
    from exact.learning.builtin.rounds import train as run
    from exact.learning.train.settings import read_settings

    settings = read_settings(path, BuiltinSettings, overrides)
    found = run(settings, lambda text: echo(text, err=True))
    if as_json:
        echo(json.dumps({"folder": settings.out, "trained_with_reward": True, "rounds": [each._asdict() for each in found]}))
        return
    for each in found:
        echo(
            f"round {each.round}: first episode {each.first:.2f}, any episode {each.found:.2f}, {counted(each.states, 'state')}, "
            f"{counted(each.steps, 'step')}"
        )
    echo(f"{settings.out}/round-{len(found)}.npz: trained with rewards of {counted(found[-1].tasks * len(found), 'episode')}")


def _told(trained: TrainedModel, figure: str, as_json: bool) -> None:
    values = [float(log[figure]) for log in trained.history]
    if as_json:
        echo(json.dumps({"folder": str(trained.folder), "rows": trained.rows, "left_out": trained.left_out, "history": trained.history}))
        return
    first, last = values[: len(values) // 5 + 1], values[-(len(values) // 5 + 1) :]
    echo(
        f"{trained.folder}: {counted(len(values), 'step')}, {counted(trained.rows, 'row')} ({trained.left_out} too long), "
        f"{figure} {sum(first) / len(first):.3g} at first, {sum(last) / len(last):.3g} at last"
    )


@train.command(short_help="Compare values with outcomes, and fit a curve.")
@click.argument("runs", nargs=-1, required=True, type=RunFolderPath(), metavar="RUN...")
@click.option(
    "--label", "count", type=click.IntRange(0), default=0, metavar="N", help="Also determine the outcomes of N states drawn at random."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random draw.")
@click.option("--fit", type=NewFile(), help="File to write the fitted curve to, for value.calibration.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@on_storage("runs")
def calibration(runs: tuple[Path, ...], count: int, seed: int, fit: Path | None, as_json: bool) -> None:
    """Compare the estimates of the value function in RUNs with outcomes.

    The tables show the reliability, the Brier score, the expected calibration error (ECE), and how well the estimates separate success from
    failure (AUC), also among states of the same task, which is their use in search. "Refitted" is the Brier score after a curve that was
    fitted to other tasks.

    States on committed paths take the outcome of their attempt, but they are a biased sample, because search chose them. With --label N,
    states drawn at random are restored in fresh environments, the policy finishes the task, and the benchmark evaluates it. These labels
    are saved in RUN/labels.jsonl.
    """
    from exact.calibration.collect import committed, open_source
    from exact.runs.journal.store import RunFolder

    sources = [open_source(RunFolder.open(run)) for run in runs]
    if fit is not None:
        _refuse_calibrated(sources)
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for source in sources:
        labels = run_async(_labels(source, count, seed, quiet=as_json))
        groups.setdefault((source.judge, "committed"), []).extend(committed(source))
        groups.setdefault((source.judge, "drawn"), []).extend(each.prediction() for each in labels if not each.reason)
    predictions = {key: group for key, group in groups.items() if group}
    if not predictions:
        from exact.errors import UsageError

        raise UsageError("no evaluated state has an outcome, because no attempt was scored: try --label 50")
    if fit is not None:
        _write(fit, predictions)
    echo(json.dumps([_figures(*key, group) for key, group in predictions.items()]) if as_json else "\n".join(_lines(predictions)))


async def _labels(source: Source, count: int, seed: int, *, quiet: bool) -> list[LabelledState]:
    """Return the saved labels, after adding as many as are missing."""
    from exact.agents.agent import build_agent
    from exact.calibration.collect import LabelledState, label
    from exact.runs.journal.store import append_line, read_lines
    from exact.runs.runner import open_models

    path = source.folder.path / "labels.jsonl"
    labels = list(read_lines(path, LabelledState))
    if count <= len(labels):
        return labels
    from exact.benchmarks.open import environment_kind, open_environments
    from exact.cli.trust import require_trust
    from exact.models.open import Models
    from exact.prompts.library import use_folder
    from exact.runs.environment_cache import EnvironmentCache

    require_trust(source.folder.path)
    config, benchmark = source.config, source.folder.manifest.benchmark
    opened_models = Models(config.models, folder=source.folder.path)
    models = open_models(config, opened_models)
    shared = EnvironmentCache(
        lambda task: environment_kind(task, benchmark=benchmark),
        lambda task: open_environments(task, config, benchmark=benchmark, notify=lambda text: echo(text, err=True)),
    )
    try:
        with use_folder(config.prompts):
            policy = build_agent(config, models.__getitem__).policy
            known, missing = {(each.task, each.node) for each in labels}, count - len(labels)
            async with shared:
                async for each in label(source, missing, environments=shared, policy=policy, seed=seed, known=known):
                    labels.append(each)
                    append_line(path, each)
                    if not quiet:
                        outcome = each.reason or ("success" if each.success else "failure")
                        echo(f"{len(labels)} of {count}: {each.task} state {each.node}, value {each.value:.2f}: {outcome}", err=True)
    finally:
        await opened_models.close()
    return labels


def _refuse_calibrated(sources: Sequence[Source]) -> None:
    """Raise UsageError if a run used a calibration: a curve fitted to calibrated values would undo it."""
    from exact.errors import UsageError

    for source in sources:
        if curve := source.config.value.calibration:
            raise UsageError(
                f"the values in {source.folder.path} are calibrated by value.calibration {curve}: fit a curve to runs without one"
            )


def _write(path: Path, groups: dict[tuple[str, str], list[Prediction]]) -> None:
    """Write the curve of the drawn states, or of the committed ones if none were drawn.

    Raises UsageError if the runs have several value functions.
    """
    import msgspec

    from exact.calibration.measure import fit
    from exact.errors import UsageError

    value_functions = {value_function for value_function, _ in groups}
    if len(value_functions) != 1:
        raise UsageError(f"one curve cannot fit {len(value_functions)} value functions: name runs with the same one")
    [value_function] = value_functions
    kind = "drawn" if (value_function, "drawn") in groups else "committed"
    predictions = groups[value_function, kind]
    tasks = len({one.name for one in predictions})
    path.write_bytes(msgspec.json.encode(fit(predictions, f"{value_function}, {len(predictions)} {kind} states of {tasks} tasks")))


def _figures(value_function: str, sample: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    from exact.calibration.measure import auc, auc_within, brier, ece, interval, refitted, reliability

    calibrated = refitted(predictions)
    return {
        "value_function": value_function,
        "sample": sample,
        "states": len(predictions),
        "tasks": len({one.name for one in predictions}),
        "success": sum(one.success for one in predictions) / len(predictions),
        "brier": interval(predictions, brier),
        "brier_refitted": interval(calibrated, brier) if calibrated else None,
        "ece": interval(predictions, ece),
        "auc": interval(predictions, auc),
        "auc_within": interval(predictions, auc_within),
        "reliability": [bin._asdict() for bin in reliability(predictions)],
    }


def _lines(groups: dict[tuple[str, str], list[Prediction]]) -> Iterator[str]:
    for (value_function, sample), predictions in groups.items():
        figures = _figures(value_function, sample, predictions)
        states = f"{counted(figures['states'], f'{sample} state')} of {counted(figures['tasks'], 'task')}"
        yield f"{value_function}: {states}, {figures['success']:.0%} of them led to success"
        for name, (words, needed) in _MEASURES.items():
            figure = figures[name]
            shown = f"{figure[0]:.3f} [{figure[1]:.3f}, {figure[2]:.3f}]" if figure else f"-  (requires {needed})"
            yield f"  {words:<13} {shown}"
        yield "  value         states  mean   led to success"
        for bin in figures["reliability"]:
            bar = "█" * round(20 * bin["rate"])
            yield f"  {bin['low']:.1f} to {bin['high']:.1f}    {bin['states']:>6}  {bin['value']:.2f}   {bin['rate']:>4.0%} {bar}"
        yield ""
