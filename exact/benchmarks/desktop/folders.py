"""Tasks on a file manager (pcmanfm) and a terminal."""

from __future__ import annotations

import random

from exact.benchmarks.desktop.problem import EDITOR, FILES, NOTE, PLACES, TERMINAL, THINGS, Draw, Problem, lines, write
from exact.environments.desktop.setup import Check, Setup


def _folder(draw: random.Random) -> Problem:
    name = draw.choice(PLACES)
    setup = Setup(applications=(FILES,), checks=(Check(file=name, kind="folder"),))
    reference = ('press "Control+Shift+n"', 'press "Control+a"', f'type "{name}"', 'press "Enter"')
    return Problem(f'Make a folder "{name}" in the home folder.', setup, reference)


def _rename(draw: random.Random) -> Problem:
    old, new = (f"{name}.txt" for name in draw.sample(PLACES, 2))
    checks = (Check(file=new, equals="text"), Check(file=old, kind="none"))
    setup = Setup(applications=(FILES,), files={old: "text\n"}, checks=checks)
    return Problem(
        f"Rename the file {old} to {new}.",
        setup,
        (f"click <cell {old}>", 'press "F2"', 'press "Control+a"', f'type "{new}"', 'press "Enter"'),
    )


def _remove(draw: random.Random) -> Problem:
    gone, *others = (f"{name}.txt" for name in draw.sample(PLACES, 3))
    checks = (Check(file=gone, kind="none"), *(Check(file=name, equals=name) for name in others))
    setup = Setup(applications=(FILES,), files={name: f"{name}\n" for name in (gone, *others)}, checks=checks)
    return Problem(
        f"Delete the file {gone} for good. Leave the others alone.",
        setup,
        (f"click <cell {gone}>", 'press "Shift+Delete"', "click <button Yes>"),
    )


def _copy(draw: random.Random) -> Problem:
    name, folder = f"{draw.choice(THINGS)}.txt", draw.choice(PLACES)
    checks = (Check(file=f"{folder}/{name}", equals="text"), Check(file=name, equals="text"))
    setup = Setup(applications=(FILES,), files={name: "text\n", f"{folder}/.keep": ""}, checks=checks)
    reference = (f"click <cell {name}>", 'press "Control+c"', f"double_click <cell {folder}>", 'press "Control+v"', "wait")
    return Problem(f'Copy the file {name} into the folder "{folder}".', setup, reference)


def _move(draw: random.Random) -> Problem:
    name, folder = f"{draw.choice(THINGS)}.txt", draw.choice(PLACES)
    checks = (Check(file=f"{folder}/{name}", equals="text"), Check(file=name, kind="none"))
    setup = Setup(applications=(FILES,), files={name: "text\n", f"{folder}/.keep": ""}, checks=checks)
    reference = (f"click <cell {name}>", 'press "Control+x"', f"double_click <cell {folder}>", 'press "Control+v"', "wait")
    return Problem(f'Move the file {name} into the folder "{folder}".', setup, reference)


def _look_inside(draw: random.Random) -> Problem:
    folder, names = draw.choice(PLACES), draw.sample(THINGS, draw.randint(2, 5))
    files = {f"{folder}/{name}.txt": "text\n" for name in names}
    setup = Setup(applications=(EDITOR, FILES), files={NOTE: "", **files}, checks=(Check(file=NOTE, equals=str(len(names))),))
    instruction = f'How many files does the folder "{folder}" hold? Write the number, and nothing else, into the document and save it.'
    return Problem(instruction, setup, (f"double_click <cell {folder}>", *write(str(len(names)))))


def _shell(instruction: str, files: dict[str, str], checks: tuple[Check, ...], command: str) -> Problem:
    setup = Setup(applications=(TERMINAL,), files=files, checks=checks, sandboxed=True)
    return Problem(instruction, setup, (f"type {_quoted(command)}", 'press "Enter"', "wait"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _directories(draw: random.Random) -> Problem:
    one, other = draw.sample(PLACES, 2)
    return _shell(
        f'Use the terminal to make a folder "{one}" in the home folder, and in it a folder "{other}".', {},
        (Check(file=f"{one}/{other}", kind="folder"),), f"mkdir -p {one}/{other}",
    )  # fmt: skip


def _lines_of(draw: random.Random) -> Problem:
    count = draw.randint(120, 480)
    text = "".join(f"{draw.choice(THINGS)} {at}\n" for at in range(count))
    return _shell(
        "Use the terminal to find out how many lines log.txt has, and write the number, and nothing else, into count.txt.",
        {"log.txt": text}, (Check(file="count.txt", equals=str(count)),), "wc -l < log.txt > count.txt",
    )  # fmt: skip


def _find(draw: random.Random) -> Problem:
    thing = draw.choice(THINGS)
    rows = [f"{draw.choice([each for each in THINGS if each != thing])} {at}" for at in range(60)]
    for at in draw.sample(range(60), 3):
        rows[at] = f"{thing} {at}"
    return _shell(
        f'Use the terminal to write all lines of log.txt that hold "{thing}" into found.txt.', {"log.txt": lines(*rows)},
        (Check(file="found.txt", equals="\n".join(row for row in rows if thing in row)),), f"grep {thing} log.txt > found.txt",
    )  # fmt: skip


def _largest(draw: random.Random) -> Problem:
    numbers = draw.sample(range(1000, 9999), 80)
    return _shell(
        "Use the terminal to find the largest number in numbers.txt, and write it, and nothing else, into largest.txt.",
        {"numbers.txt": lines(*map(str, numbers))}, (Check(file="largest.txt", equals=str(max(numbers))),),
        "sort -n numbers.txt | tail -n 1 > largest.txt",
    )  # fmt: skip


def _user(draw: random.Random) -> Problem:
    name = f"{draw.choice(PLACES)}.txt"
    return _shell(
        f"Use the terminal to write the name of the present user, and nothing else, into {name}.", {},
        (Check(file=name, equals="user"),), f"whoami > {name}",
    )  # fmt: skip


FOLDER_TASKS: dict[str, Draw] = {
    "make-folder": _folder,
    "rename-file": _rename,
    "delete-file": _remove,
    "copy-file": _copy,
    "move-file": _move,
    "count-files": _look_inside,
    "nested-folders": _directories,
    "count-log": _lines_of,
    "find-lines": _find,
    "largest-number": _largest,
    "user-name": _user,
}
