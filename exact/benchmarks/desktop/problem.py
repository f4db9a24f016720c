"""A task for one seed, and the words that seeds draw.

Tasks that the desktop's programs cannot do: only the action `fail` solves them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import NamedTuple

from exact.environments.desktop.setup import Setup
from exact.errors import ActionError
from exact.observation import Observation

NOTE = "note.txt"
EDITOR = ("mousepad", "--disable-server", f"~/{NOTE}")
CALCULATOR = ("galculator",)
FILES = ("pcmanfm", "--no-desktop")
TERMINAL = ("gnome-terminal",)
PICTURES = ("eog",)
PAPERS = ("evince",)

THINGS = ("pears", "quinces", "candles", "nails", "stamps", "buttons", "spoons", "tiles", "ropes", "lamps", "plums", "bricks")
PLACES = ("attic", "cellar", "garden", "kitchen", "garage", "harbour", "market", "library")
NAMES = ("Ada", "Bo", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jule")


class Problem(NamedTuple):
    """Content of a task for one seed."""

    instruction: str
    setup: Setup
    reference: tuple[str, ...] = ()
    """Actions that solve it. `<role>` and `<role name>` stand for the first such element."""


Draw = Callable[[random.Random], Problem]

SAVE = 'press "Control+s"'


def write(text: str) -> tuple[str, ...]:
    """Return the actions that write a text into the editor's document and save it."""
    return (f"fill <textbox> {json.dumps(text, ensure_ascii=False)}", SAVE)


def keys(text: str) -> tuple[str, ...]:
    """Return the clicks on the calculator's buttons."""
    return tuple(f"click <button {key}>" for key in text)


def resolved(written: str, seen: Observation) -> str:
    """Return an action of a reference with the ids of the observed elements. Raises ActionError if there is no such element."""

    def found(match: re.Match[str]) -> str:
        role, _, name = match[2].partition(" ")
        ids = [each.id for each in seen.elements if each.role == role and (not name or each.name == name)]
        if not ids:
            raise ActionError(f"{written}: there is no {match[2]} now")
        return f"{match[1]} [{ids[0]}]"

    return re.sub(r"^(\w+) <(.+?)>", found, written)


def lines(*parts: str) -> str:
    return "".join(f"{part}\n" for part in parts)


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
