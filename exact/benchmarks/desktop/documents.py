"""Tasks on a viewer of pictures (eog) and one of papers (evince), with the text editor.

Tasks on a calculator (galculator), alone and with the text editor.

Tasks on a text editor (mousepad).
"""

from __future__ import annotations

import random

from exact.benchmarks.desktop.problem import (
    CALCULATOR,
    EDITOR,
    NAMES,
    NOTE,
    PAPERS,
    PICTURES,
    PLACES,
    SAVE,
    THINGS,
    Draw,
    Problem,
    keys,
    lines,
    write,
)
from exact.environments.desktop.setup import Check, Setup


def _picture(width: int, height: int, level: int) -> str:
    """Return a grey picture as a portable graymap, which is text."""
    row = " ".join([str(level)] * width)
    return f"P2\n{width} {height}\n255\n" + f"{row}\n" * height


def _paper(*pages: str) -> str:
    """Return a paper with a line of text on each page, as PDF."""
    count, font = len(pages), 3 + 2 * len(pages)
    kids = " ".join(f"{3 + 2 * at} 0 R" for at in range(count))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {count} /Kids [{kids}] >>"]
    for at, text in enumerate(pages):
        stream = f"BT /F1 18 Tf 40 160 Td ({text}) Tj ET"
        resources = f"/Resources << /Font << /F1 {font} 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] {resources} /Contents {4 + 2 * at} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    text, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return f"{text}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}"


def _written(viewer: tuple[str, ...], files: dict[str, str], instruction: str, answer: str, before: tuple[str, ...] = ()) -> Problem:
    checks = (Check(file=NOTE, equals=answer),)
    setup = Setup(applications=(EDITOR, viewer), files={NOTE: "", **files}, checks=checks)
    told = f"{instruction} Write it, and nothing else, into the document of the text editor and save it."
    return Problem(told, setup, (*before, *write(answer)))


def _size(draw: random.Random) -> Problem:
    width, height, name = draw.randint(20, 90), draw.randint(20, 90), draw.choice(THINGS)
    files = {f"{name}.pgm": _picture(width, height, 160)}
    instruction = f'How wide is the picture {name}.pgm, in pixels? The viewer shows its size as "width x height pixels".'
    return _written((*PICTURES, f"~/{name}.pgm"), files, instruction, str(width))


def _count(draw: random.Random) -> Problem:
    folder, names = draw.choice(PLACES), draw.sample(THINGS, draw.randint(2, 5))
    files = {f"{folder}/{name}.pgm": _picture(40, 30, 60 + 30 * at) for at, name in enumerate(names)}
    instruction = f"How many pictures lie in the folder {folder}, where the viewer shows one?"
    return _written((*PICTURES, f"~/{folder}/{names[0]}.pgm"), files, instruction, str(len(names)))


def _sentence(draw: random.Random) -> Problem:
    text = f"{draw.choice(NAMES)} keeps {draw.randint(2, 99)} {draw.choice(THINGS)} in the {draw.choice(PLACES)}."
    return _written((*PAPERS, "~/paper.pdf"), {"paper.pdf": _paper(text)}, "What does the only line of the paper say?", text)


def _sum(draw: random.Random) -> Problem:
    amount, name = draw.randint(100, 999), draw.choice(NAMES)
    files = {"bill.pdf": _paper(f"Bill for {name}", f"Total due: {amount} EUR")}
    instruction = "How much is due by the bill's second page? The number alone is asked for."
    return _written((*PAPERS, "~/bill.pdf"), files, instruction, str(amount), ('press "Control+PageDown"',))


DOCUMENT_TASKS: dict[str, Draw] = {
    "picture-width": _size,
    "count-pictures": _count,
    "copy-sentence": _sentence,
    "amount-due": _sum,
}


def _show(instruction: str, formula: str, result: int) -> Problem:
    setup = Setup(applications=(CALCULATOR,), checks=(Check(element="textbox", equals=str(result)),))
    return Problem(f"{instruction} with the calculator, so that it shows the result.", setup, keys(f"{formula}="))


def _multiply(draw: random.Random) -> Problem:
    one, other = draw.randint(12, 99), draw.randint(3, 9)
    return _show(f"Multiply {one} by {other}", f"{one}*{other}", one * other)


def _subtract(draw: random.Random) -> Problem:
    one, other = draw.randint(500, 999), draw.randint(100, 499)
    return _show(f"Subtract {other} from {one}", f"{one}-{other}", one - other)


def _divide(draw: random.Random) -> Problem:
    one, other = draw.randint(12, 99), draw.randint(3, 9)
    return _show(f"Divide {one * other} by {other}", f"{one * other}/{other}", one)


def _chain(draw: random.Random) -> Problem:
    one, two, three = draw.randint(11, 49), draw.randint(2, 9), draw.randint(11, 99)
    return _show(f"Multiply {one} by {two}, then add {three} to that,", f"{one}*{two}+{three}", one * two + three)


def _carried(instruction: str, before: str, formula: str, after: str) -> Problem:
    setup = Setup(applications=(EDITOR, CALCULATOR), files={NOTE: before}, checks=(Check(file=NOTE, equals=after),))
    return Problem(instruction, setup, (*keys(f"{formula}="), *write(after)))


def _carry(draw: random.Random) -> Problem:
    one, other = draw.randint(120, 980), draw.randint(120, 980)
    instruction = f"Add {one} and {other} with the calculator, write the result, and nothing else, into the document and save it."
    return _carried(instruction, "", f"{one}+{other}", str(one + other))


def _total(draw: random.Random) -> Problem:
    numbers = [draw.randint(11, 99) for _ in range(3)]
    rows = [f"{name} {number}" for name, number in zip(draw.sample(THINGS, 3), numbers, strict=True)]
    instruction = 'Add the numbers of the document up and write the sum as its last line ("total 123"). Save it.'
    return _carried(instruction, lines(*rows), "+".join(map(str, numbers)), lines(*rows, f"total {sum(numbers)}"))


def _bill(draw: random.Random) -> Problem:
    count, each, name = draw.randint(12, 48), draw.randint(3, 9), draw.choice(THINGS)
    before = lines(f"{count} {name}", f"{each} EUR each")
    instruction = 'Work out what all of them cost together, write it as the last line of the document ("123 EUR") and save it.'
    return _carried(instruction, before, f"{count}*{each}", before + f"{count * each} EUR\n")


def _change(draw: random.Random) -> Problem:
    price, paid = draw.randint(101, 499), 500
    before = lines(f"price {price}", f"paid {paid}")
    instruction = 'How much change is due? Write it as the last line of the document ("change 123") and save it.'
    return _carried(instruction, before, f"{paid}-{price}", before + f"change {paid - price}\n")


CALCULATOR_TASKS: dict[str, Draw] = {
    "multiply": _multiply,
    "subtract": _subtract,
    "divide": _divide,
    "two-steps": _chain,
    "carry-over": _carry,
    "add-total": _total,
    "write-bill": _bill,
    "give-change": _change,
}


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


def _lines(draw: random.Random) -> Problem:
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
    "count-lines": _lines,
    "correct-price": _price,
    "keep-lines": _only,
    "save-as": _save_as,
    "same-text": _two,
}
