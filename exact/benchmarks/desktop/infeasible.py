"""Tasks that cannot be done with what is there: only the action `fail` solves them."""

from __future__ import annotations

import random

from exact.benchmarks.desktop.problem import CALCULATOR, EDITOR, FILES, NAMES, NOTE, PLACES, THINGS, Draw, Problem
from exact.environments.desktop import Setup

_MAYBE = "If that cannot be done here, end the task by saying so."


def _infeasible(instruction: str, application: tuple[str, ...], **files: str) -> Problem:
    setup = Setup(applications=(application,), files={NOTE: "text\n", **files}, infeasible=True)
    return Problem(f"{instruction} {_MAYBE}", setup, ("fail",))


def _colour(draw: random.Random) -> Problem:
    colour = draw.choice(("red", "green", "blue"))
    return _infeasible(f"Make the word {draw.choice(THINGS)} in the plain text of {NOTE} {colour} and bold.", EDITOR)


def _video(draw: random.Random) -> Problem:
    return _infeasible(f"Play the film {draw.choice(PLACES)}.mp4 from the home folder in full screen.", FILES)


def _mail(draw: random.Random) -> Problem:
    return _infeasible(f"Send the document to {draw.choice(NAMES)} by e-mail.", EDITOR)


def _plot(draw: random.Random) -> Problem:
    return _infeasible(f"Draw the graph of x squared plus {draw.randint(2, 9)} with the calculator.", CALCULATOR)


INFEASIBLE_TASKS: dict[str, Draw] = {
    "colour-text": _colour,
    "play-film": _video,
    "send-mail": _mail,
    "draw-graph": _plot,
}
