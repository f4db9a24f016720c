"""The page of a training run: how its figures went, step by step. And other places that TRL logs to."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from exact.errors import UsageError

PAGE = "training.html"
_CURVES = {
    "reward": "Reward of an episode, mean of the step",
    "loss": "Loss",
    "completions/mean_length": "Tokens of an episode after its prompt, mean",
    "entropy": "Entropy of the sampled tokens, mean",
    "kl": "Divergence from the first model (KL)",
    "mean_token_accuracy": "Tokens that are likeliest, share",
    "reward_std": "Deviation of the rewards in a group",
    "logprob_gap": "Largest difference of a log-probability",
    "step_seconds": "Seconds of a step",
}
_WIDTH, _HEIGHT = 420, 150


class DrawnCurve(NamedTuple):
    """One figure of a training, as the page draws it."""

    title: str
    points: str
    """Positions as SVG's `points`."""
    least: str
    most: str
    first: str
    last: str
    steps: int


def curves(history: Sequence[Mapping[str, float]]) -> list[DrawnCurve]:
    """Return the curves of those figures that every step has."""
    return [_curve(title, [float(step[name]) for step in history]) for name, title in _CURVES.items() if _has(history, name)]


def _has(history: Sequence[Mapping[str, float]], name: str) -> bool:
    return bool(history) and all(name in step for step in history)


def _curve(title: str, values: Sequence[float]) -> DrawnCurve:
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    least, most = min(finite), max(finite)
    across, up = _WIDTH / max(1, len(values) - 1), _HEIGHT / ((most - least) or 1.0)
    drawn = [f"{number * across:.1f},{_HEIGHT - (value - least) * up:.1f}" for number, value in enumerate(values) if math.isfinite(value)]
    return DrawnCurve(title, " ".join(drawn), f"{least:.4g}", f"{most:.4g}", f"{values[0]:.4g}", f"{values[-1]:.4g}", len(values))


def training_page(name: str, history: Sequence[Mapping[str, float]]) -> str:
    """Return the page as one self-contained HTML file."""
    return _template().render(name=name, curves=curves(history), steps=len(history), width=_WIDTH, height=_HEIGHT)


@cache
def _template() -> jinja2.Template:
    text = files(__package__).joinpath("training.html.j2").read_text("utf-8")
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)


def reported(places: Sequence[str]) -> None:
    """Check that the packages of the places that are logged to are there. Raises UsageError."""
    for name in places:
        if importlib.util.find_spec(name) is None:
            raise UsageError(
                f"report_to: {name} is not installed: pip install {name} in this environment, or leave it out: {PAGE} has the curves"
            )


def reporter(figures: Mapping[str, float], report: Callable[[dict[str, float]], None], folder: Path, name: str) -> Any:
    """Return TRL's callback that adds `figures` to the log of each step, writes the page into `folder`, and calls `report`."""
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):  # type: ignore[misc]
        """Logs of a training."""

        def __init__(self) -> None:
            self._began = time.perf_counter()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
            """Add the figures to the step's log."""
            if not logs or "reward" not in logs:
                return
            began, self._began = self._began, time.perf_counter()
            state.log_history[-1].update(figures, step_seconds=self._began - began)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PAGE).write_text(training_page(name, [log for log in state.log_history if "reward" in log]), "utf-8")
            report(state.log_history[-1])

    return Reporter()
