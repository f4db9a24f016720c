"""Five tasks on a text editor (mousepad) and a calculator (galculator). The seed draws their content."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from exact.environments.desktop import Check, Setup

EDITOR = ("mousepad", "--disable-server", "~/note.txt")
CALCULATOR = ("galculator",)
NOTE = "note.txt"

_THINGS = ("pears", "quinces", "candles", "nails", "stamps", "buttons", "spoons", "tiles")
_PLACES = ("attic", "cellar", "garden", "kitchen", "garage", "harbour", "market", "library")


class Problem(NamedTuple):
    """Content of a task for one seed."""

    instruction: str
    setup: Setup


def _write(draw: random.Random) -> Problem:
    text = f"bring {draw.randint(2, 99)} {draw.choice(_THINGS)}"
    check = Check(file=NOTE, equals=text)
    return Problem(
        f'Enter "{text}" into the text field, then click on the "File" menu and click on "Save".',
        Setup(applications=(EDITOR,), files={NOTE: ""}, checks=(check,)),
    )


def _replace(draw: random.Random) -> Problem:
    old, new = draw.sample(_PLACES, 2)
    lines = [f"{thing} in the {old}" for thing in draw.sample(_THINGS, 3)]
    wanted = "\n".join(line.replace(old, new) for line in lines)
    return Problem(
        f'Replace each "{old}" by "{new}" in the document and save it.',
        Setup(applications=(EDITOR,), files={NOTE: "\n".join(lines) + "\n"}, checks=(Check(file=NOTE, equals=wanted),)),
    )


def _delete(draw: random.Random) -> Problem:
    lines = [f"{thing} from the {draw.choice(_PLACES)}" for thing in draw.sample(_THINGS, 4)]
    gone = draw.choice(lines)
    return Problem(
        f'Delete the line "{gone}" from the document and save it. Leave the other lines as they are.',
        Setup(
            applications=(EDITOR,),
            files={NOTE: "\n".join(lines) + "\n"},
            checks=(Check(file=NOTE, equals="\n".join(line for line in lines if line != gone)),),
        ),
    )


def _multiply(draw: random.Random) -> Problem:
    one, other = draw.randint(12, 99), draw.randint(3, 9)
    return Problem(
        f"Multiply {one} by {other} with the calculator, so that it shows the result.",
        Setup(applications=(CALCULATOR,), checks=(Check(element="textbox", equals=str(one * other)),)),
    )


def _carry(draw: random.Random) -> Problem:
    one, other = draw.randint(120, 980), draw.randint(120, 980)
    return Problem(
        f"Add {one} and {other} with the calculator, write the result, and nothing else, into the document and save it.",
        Setup(applications=(EDITOR, CALCULATOR), files={NOTE: ""}, checks=(Check(file=NOTE, equals=str(one + other)),)),
    )


TASKS: Mapping[str, Callable[[random.Random], Problem]] = {
    "write-note": _write,
    "replace-word": _replace,
    "delete-line": _delete,
    "multiply": _multiply,
    "carry-over": _carry,
}
"""Tasks by the name in an id: `desktop/write-note?seed=3`."""
