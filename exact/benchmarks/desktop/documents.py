"""Tasks on a viewer of pictures (eog) and one of papers (evince), with the text editor.

Tasks on a calculator (galculator), alone and with the text editor.
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
    THINGS,
    Draw,
    Problem,
    keys,
    lines,
    write,
)
from exact.environments.desktop import Check, Setup


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
