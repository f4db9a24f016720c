"""Tasks on a calculator (galculator), alone and with the text editor."""

from __future__ import annotations

import random

from exact.benchmarks.desktop.problem import CALCULATOR, EDITOR, NOTE, THINGS, Draw, Problem, keys, lines, write
from exact.environments.desktop import Check, Setup


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
