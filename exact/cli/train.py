"""`exact train`: train a model on exports, or against live environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.version import set_up

if TYPE_CHECKING:
    from exact.learning.train.sft import TrainedModel

_PIP = "pip install 'exact-agent[train]' in a virtual environment of its own"


@click.group()
def train() -> None:
    """Train a chat model (sft on exports, grpo against the environments of an OpenEnv server), or the built-in agent's own model."""
    import importlib.util

    if click.get_current_context().invoked_subcommand == "builtin":
        return  # it needs numpy alone
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
    """Train the model of the learned built-in agent: search training tasks with their rewards, fit, and search again.

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
        echo(f"round {each.round}: first episode {each.first:.2f}, any episode {each.found:.2f}, {each.states} states, {each.steps} steps")
    echo(f"{settings.out}/round-{len(found)}.npz: trained with rewards of {found[-1].tasks * len(found)} tasks and seeds")


def _told(trained: TrainedModel, figure: str, as_json: bool) -> None:
    values = [float(log[figure]) for log in trained.history]
    if as_json:
        echo(json.dumps({"folder": str(trained.folder), "rows": trained.rows, "left_out": trained.left_out, "history": trained.history}))
        return
    first, last = values[: len(values) // 5 + 1], values[-(len(values) // 5 + 1) :]
    echo(
        f"{trained.folder}: {len(values)} steps, {trained.rows} rows ({trained.left_out} too long), "
        f"{figure} {sum(first) / len(first):.3g} at first, {sum(last) / len(last):.3g} at last"
    )
