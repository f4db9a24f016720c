"""Tasks on a text editor (mousepad)."""

from __future__ import annotations

import random

from exact.benchmarks.desktop.problem import EDITOR, NAMES, NOTE, PLACES, SAVE, THINGS, Draw, Problem, lines, write
from exact.environments.desktop import Check, Setup


def _edit(instruction: str, before: str, after: str) -> Problem:
    """Return a task whose document must become another one."""
    setup = Setup(applications=(EDITOR,), files={NOTE: before}, checks=(Check(file=NOTE, equals=after),))
    return Problem(instruction, setup, write(after))


def _write(draw: random.Random) -> Problem:
    text = f"bring {draw.randint(2, 99)} {draw.choice(THINGS)}"
    setup = Setup(applications=(EDITOR,), files={NOTE: ""}, checks=(Check(file=NOTE, equals=text),))
    instruction = f'Enter "{text}" into the text field, then click on the "File" menu and click on "Save".'
    return Problem(instruction, setup, (f'fill <textbox> "{text}"', "click <menuitem File>", "click <menuitem Save>"))


def _replace(draw: random.Random) -> Problem:
    old, new = draw.sample(PLACES, 2)
    before = lines(*(f"{thing} in the {old}" for thing in draw.sample(THINGS, 3)))
    return _edit(f'Replace each "{old}" by "{new}" in the document and save it.', before, before.replace(old, new))


def _delete(draw: random.Random) -> Problem:
    rows = [f"{thing} from the {draw.choice(PLACES)}" for thing in draw.sample(THINGS, 4)]
    gone = draw.choice(rows)
    instruction = f'Delete the line "{gone}" from the document and save it. Leave the other lines as they are.'
    return _edit(instruction, lines(*rows), lines(*(row for row in rows if row != gone)))


def _append(draw: random.Random) -> Problem:
    *rows, new = draw.sample(THINGS, 4)
    return _edit(f'Add "{new}" as the last line of the document and save it.', lines(*rows), lines(*rows, new))


def _title(draw: random.Random) -> Problem:
    title, rows = f"For the {draw.choice(PLACES)}", draw.sample(THINGS, 3)
    return _edit(f'Add "{title}" as a new first line of the document and save it.', lines(*rows), lines(title, *rows))


def _sort(draw: random.Random) -> Problem:
    rows = draw.sample(THINGS, 5)
    rows = rows if rows != sorted(rows) else rows[::-1]
    return _edit("Bring the lines of the document into alphabetical order and save it.", lines(*rows), lines(*sorted(rows)))


def _capitals(draw: random.Random) -> Problem:
    rows = draw.sample(THINGS, 3)
    instruction = "Write the second line of the document in capital letters and save it."
    return _edit(instruction, lines(*rows), lines(rows[0], rows[1].upper(), rows[2]))


def _swap(draw: random.Random) -> Problem:
    rows = draw.sample(NAMES, 4)
    instruction = f"Let {rows[0]} and {rows[3]} change places in the list, and save the document."
    return _edit(instruction, lines(*rows), lines(rows[3], rows[1], rows[2], rows[0]))


def _number(draw: random.Random) -> Problem:
    rows = draw.sample(NAMES, 4)
    instruction = 'Number the lines of the document ("1. ", "2. " and so on before each name) and save it.'
    return _edit(instruction, lines(*rows), lines(*(f"{at}. {name}" for at, name in enumerate(rows, 1))))


def _count(draw: random.Random) -> Problem:
    rows = draw.sample(THINGS, draw.randint(3, 8))
    instruction = "Add a last line to the document that holds the number of its lines so far, and save it."
    return _edit(instruction, lines(*rows), lines(*rows, str(len(rows))))


def _price(draw: random.Random) -> Problem:
    names, old, new = draw.sample(THINGS, 3), draw.randint(10, 49), draw.randint(50, 99)
    rows = [f"{name}: {old + at} EUR" for at, name in enumerate(names)]
    instruction = f"The {names[1]} cost {new} EUR now. Correct the document and save it."
    return _edit(instruction, lines(*rows), lines(rows[0], f"{names[1]}: {new} EUR", rows[2]))


def _only(draw: random.Random) -> Problem:
    place, other = draw.sample(PLACES, 2)
    rows = [f"{thing}, {where}" for thing, where in zip(draw.sample(THINGS, 5), (place, other, place, other, other), strict=True)]
    instruction = f"Keep only the lines about the {place} in the document and save it."
    return _edit(instruction, lines(*rows), lines(*(row for row in rows if row.endswith(place))))


def _save_as(draw: random.Random) -> Problem:
    name, text = f"{draw.choice(PLACES)}.txt", draw.choice(THINGS)
    checks = (Check(file=name, equals=text), Check(file=NOTE, equals="draft"))
    setup = Setup(applications=(EDITOR,), files={NOTE: "draft\n"}, checks=checks)
    instruction = f'Replace the text by "{text}" and save it under the new name {name} in the home folder. {NOTE} stays as it is.'
    return Problem(
        instruction,
        setup,
        (f'fill <textbox> "{text}"', 'press "Control+Shift+s"', 'press "Control+a"', f'type "{name}"', "click <button Save>"),
    )


def _two(draw: random.Random) -> Problem:
    one, other = draw.sample(NAMES, 2)
    second = ("mousepad", "--disable-server", "~/copy.txt")
    setup = Setup(
        applications=(second, EDITOR),
        files={NOTE: f"{one}\n", "copy.txt": f"{other}\n"},
        checks=(Check(file=NOTE, equals=other), Check(file="copy.txt", equals=other)),
    )
    return Problem(f"Give {NOTE} the text that copy.txt has, and save it.", setup, ('press "Control+a"', f'type "{other}"', SAVE))


EDITOR_TASKS: dict[str, Draw] = {
    "write-note": _write,
    "replace-word": _replace,
    "delete-line": _delete,
    "append-line": _append,
    "add-title": _title,
    "sort-lines": _sort,
    "capital-letters": _capitals,
    "swap-lines": _swap,
    "number-lines": _number,
    "count-lines": _count,
    "correct-price": _price,
    "keep-lines": _only,
    "save-as": _save_as,
    "same-text": _two,
}
