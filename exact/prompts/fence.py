"""Fences that separate text from outside from a prompt's instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from exact.models.tokens import rough
from exact.text import inert, mark_of

MAX_CHARACTERS = 24_000
"""Maximum characters of a fenced text. A longer text is cut at its end, with a note."""

_BRACKETS = str.maketrans({**dict.fromkeys("⟦〚⟬⦗【", "["), **dict.fromkeys("⟧〛⟭⦘】", "]")})
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FENCED = re.compile(r"⟦(?P<mark>(?P<label>[^⟦⟧/\n][^⟦⟧\n]*) \w+)⟧\n(?P<body>.*?)\n⟦/(?P=mark)⟧(?P<below>(?:\n[^\n⟦]+){0,2})", re.S)
"""Matches a fence, with the two lines below it: the thought and the action of an example."""
_DECIDES = re.compile(r"\b(?:action|verdict|better|check|grade|real|lesson|expected|injection)\b", re.I)
"""Matches the words of lines that are read as a decision."""
_DRESS = " \t\r>*_#`\"'“”‘’-"
"""Characters around a line that do not tell it from another."""
_NUMBER, _MARKS = re.compile(r"\d+"), re.compile(r"[\"'“”‘’]")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PREFIX = re.compile(r"^\w+ 0: ")
"""Matches the number of a line of an example."""
_OF_SCALE = re.compile(r"[a-e] ")
"""Matches a line of a scale of grades, which an answer may give in place of the letter."""
LEAST_REPEATED = 6
"""Words from which a line that equals one of the instructions is a copy of it. Shorter ones, such as `Verdict: C`, may be an answer."""
_CUTS: ContextVar[list[str] | None] = ContextVar("cuts", default=None)


@contextmanager
def record_cuts() -> Iterator[list[str]]:
    """Record, inside the context, the cuts: a list of notes with the number of characters and the text that they belonged to."""
    found: list[str] = []
    token = _CUTS.set(found)
    try:
        yield found
    finally:
        _CUTS.reset(token)


def fence(text: str, label: str, limit: int = MAX_CHARACTERS) -> str:
    """Return the text between `⟦label mark⟧` and `⟦/label mark⟧`.

    The text cannot close its own fence: the fence's brackets, and similar ones, become plain brackets inside, and the mark is a digest of
    the text under the attempt's key. Invisible characters are written out. Half a surrogate pair, which a request cannot encode, becomes
    U+FFFD.
    """
    body = _SURROGATE.sub("�", shorten(inert(text.strip("\n")), limit, label).translate(_BRACKETS))
    mark = mark_of(body, label)
    return f"⟦{label} {mark}⟧\n{body}\n⟦/{label} {mark}⟧"


def shorten(text: str, limit: int, label: str = "text") -> str:
    """Return at most `limit` characters of a text, with the number of characters left out."""
    if len(text) <= limit:
        return text
    _note_cut(len(text) - limit, f"the {label}")
    return f"{text[:limit]}\n(... {len(text) - limit} characters left out)"


def one_line(text: str, limit: int = 200) -> str:
    """Return the text as one line of at most `limit` characters."""
    joined = " ".join(text.split())
    if len(joined) <= limit:
        return joined
    _note_cut(len(joined) - limit + 1, f"a line of {len(joined)}")
    return joined[: limit - 1] + "…"


def first_words(text: str, tokens: int) -> str:
    """Return the first words of a text, as one line of at most `tokens` tokens by a rough count, with a mark if there were more."""
    words, mark = text.split(), ""
    while words and (count := rough(" ".join(words) + mark)) > tokens:
        words, mark = words[: min(len(words) - 1, len(words) * tokens // count)], "…"
    if mark:
        _note_cut(len(" ".join(text.split()[len(words) :])), "a reflection")
    return " ".join(words) + mark


def _note_cut(characters: int, what: str) -> None:
    noted = _CUTS.get()
    if noted is not None:
        noted.append(f"{characters} characters of {what}")


def without_echo(answer: str, prompts: Iterable[str]) -> str:
    """Return an answer with spaces in place of the lines that repeat its prompts, so that they are not read as its decisions.

    Such a line begins with one of the instructions; or, above the answer's last line, it stands in the data between the prompts' fences, or
    is an example's action. The last line is the answer's own: prompts ask for the decision there, and a page must not be able to veto it.
    """
    lines = answer.split("\n")
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    if not any(len(line.split()) >= LEAST_REPEATED or (at < last and _DECIDES.search(line)) for at, line in enumerate(lines)):
        return answer
    data, examples, instructions = "", set[str](), set[str]()
    for prompt in prompts:
        for fenced in _FENCED.finditer(prompt):
            data += f"\n{fenced['body']}"
            if fenced["label"] == "error":  # it is of ours
                prompt += f"\n{fenced['body']}"
            if fenced["label"] == "example":
                examples.add(_bare(fenced["below"].rpartition("\n")[2]))
        own = _FENCED.sub(lambda each: "" if each["label"] == "example" else each["below"], prompt)
        instructions |= {bare for line in own.split("\n") if len((bare := _unnumbered(line)).split()) >= LEAST_REPEATED}
    data = " ".join(data.casefold().replace('\\"', '"').split())
    instructions |= {form for each in instructions if len((form := _PREFIX.sub("", each)).split()) >= LEAST_REPEATED}
    copied = tuple(each for each in instructions if not _OF_SCALE.match(each))

    def repeats(line: str, *, final: bool) -> bool:
        bare = _bare(line)
        return _unnumbered(line).startswith(copied) or (
            not final and _DECIDES.search(line) is not None and (bare in examples or _stands_in(bare, data))
        )

    def without(line: str) -> str:
        return _STRING.sub(lambda found: f'"{" " * (len(found[0]) - 2)}"' if _unnumbered(found[0]).startswith(copied) else found[0], line)

    return "\n".join(" " * len(line) if repeats(line, final=at == last) else without(line) for at, line in enumerate(lines))


def _bare(line: str) -> str:
    """Return a line without the characters around it, in lower case, with single spaces."""
    return " ".join(line.strip(_DRESS).casefold().split())


def _unnumbered(line: str) -> str:
    """Return a bare line without quotation marks, and with 0 in place of each number: a copied example may have others."""
    return _NUMBER.sub("0", _MARKS.sub("", _bare(line)))


def _stands_in(line: str, data: str) -> bool:
    """Return whether a line of two words or more stands in a text, and not inside of a word."""
    return " " in line and re.search(rf"(?<!\w){re.escape(line)}(?!\w)", data) is not None
