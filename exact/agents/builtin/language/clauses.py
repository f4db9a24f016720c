"""Splitting of an instruction into clauses: a verb and the words that belong to it.

Part of the built-in agent, which is not a language model.

Dates in text: recognition and parsing.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

import msgspec

from exact.agents.builtin.language.lexical import vocabulary

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "(?:" + "|".join(f"{name[:3].title()}(?:{name[3:]})?" for name in MONTHS) + ")"
WRITTEN_DATE = rf"{_NAME}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_NAME}\.?,? \d{{4}}"
"""Regular expression for dates with the name of the month."""
_SLASHED, _ISO = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")


@functools.lru_cache(maxsize=1024)
def parse_date(text: str) -> tuple[int, int, int] | None:
    """Return the year, month and day of a date, or None for any other text.

    Accepted forms are month/day/year, ISO 8601, and dates with the name of the month.
    """
    plain = text.strip()
    if match := _SLASHED.fullmatch(plain):
        return int(match[3]), int(match[1]), int(match[2])
    if match := _ISO.fullmatch(plain):
        return int(match[1]), int(match[2]), int(match[3])
    if not re.fullmatch(WRITTEN_DATE, plain):
        return None
    day, year = sorted(map(int, re.findall(r"\d+", plain)))
    return year, next(n for n, name in enumerate(MONTHS, 1) if name[:3].title() in plain), day


ClauseKind = Literal["click", "select", "unselect", "fill", "find", "drag", "hover", "scroll", "answer"]

ACTION_VERBS = vocabulary(
    "delete remove reply forward send share like star buy book add order retweet mute block save archive print generate sort open close "
    "expand collapse submit focus"
)
"""Verbs that are likely to be the label of an element to click."""

VERBS: dict[str, ClauseKind] = {
    **dict.fromkeys(vocabulary("click press hit tap push clicking pressing hitting go"), "click"),
    **dict.fromkeys(vocabulary("select choose pick check mark tick selecting choosing checking"), "select"),
    **dict.fromkeys(vocabulary("uncheck deselect unselect untick"), "unselect"),
    **dict.fromkeys(vocabulary("enter type retype write input fill put set paste insert change typing entering"), "fill"),
    **dict.fromkeys(
        vocabulary("find locate search look switch navigate browse use using read copy solve calculate compute evaluate determine work"),
        "find",
    ),
    **dict.fromkeys(vocabulary("drag move"), "drag"),
    **dict.fromkeys(ACTION_VERBS, "click"),
    "hover": "hover",
    "scroll": "scroll",
}
"""Kinds of subgoal by user-interface verb. Any other verb that begins a sentence is taken as the label of an element to click."""

_TOKEN = re.compile(
    r"\"([^\"]*)\"|“([^”]*)”|(?<!\w)'([^']*)'(?!\w)|(" + WRITTEN_DATE + r"|(?:[@#$.]|(?<![\w-])-(?=\d))?\w+(?:[.:/'’@-]\w+)*%?|[^\w\s])"
)
_QUESTION = vocabulary("how what which who where when why is are does")
_CONTEXT = vocabulary("for in on from with if after before given")
_JOIN = frozenset({",", "and", "then", ";", "or", "&", "also", "please", ":"})


class Token(msgspec.Struct, frozen=True):
    """A word, a punctuation mark, or a whole quoted string without its quotes."""

    text: str
    quoted: bool = False

    @property
    def lower(self) -> str:
        """Text in lower case. Empty for quoted strings, which are never read as grammar."""
        return "" if self.quoted else self.text.casefold()


class Clause(msgspec.Struct):
    """A verb and the tokens that follow it, up to the next clause."""

    verb: str
    kind: ClauseKind
    body: list[Token]


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, in order."""
    found = []
    for match in _TOKEN.finditer(text):
        quote = next((group for group in match.groups()[:3] if group is not None), None)
        found.append(Token(quote, True) if quote is not None else Token(match[4]))
    return found


def split_clauses(some: list[Token]) -> list[Clause]:
    """Return the clauses, in order.

    A means (`by clicking X`) replaces the clause that it serves. A purpose (`to mark it`) stays with its means.
    """
    found: list[Clause] = []
    for n, token in enumerate(some):
        before = some[n - 1] if n else None
        if before is None or before.lower in (".", "!", "?"):
            _begin_sentence(found, token)
        elif (
            before.lower == ","
            and found
            and found[-1].verb in _CONTEXT | {"using", "use"}
            and token.lower not in VERBS
            and _ends_at_first_comma(found[-1])
        ):
            found[-1].body.pop()
            _begin_sentence(found, token)
        elif token.lower in VERBS and _starts_clause(found, token, before, some[n + 1 : n + 2]):
            if before.lower == "by" and found and found[-1].kind in ("click", "select"):
                found.pop()
            found.append(Clause(token.lower, VERBS[token.lower], []))
        elif found and not (token.lower in (".", "!", "?") and _ends_sentence(some, n)):
            found[-1].body.append(token)
    for clause in found:
        while clause.body and clause.body[-1].lower in _JOIN | {"to", "by", "when", "done", "finished", "once"}:
            clause.body.pop()
    return found


def _ends_at_first_comma(clause: Clause) -> bool:
    """Return whether the clause's last token is its first comma."""
    return sum(1 for token in clause.body if token.lower == ",") == 1


def _begin_sentence(found: list[Clause], token: Token) -> None:
    word = token.lower
    if word in VERBS:
        found.append(Clause(word, VERBS[word], []))
    elif word in _QUESTION:
        found.append(Clause(word, "answer", []))
    elif word in _CONTEXT:
        found.append(Clause(word, "find", []))
    elif word and word.isalpha() and word not in ("please", "then", "now", "the", "your"):
        found.append(Clause(word, "click", []))
    else:
        found.append(Clause("", "find", [token]))


def _starts_clause(found: list[Clause], token: Token, before: Token, after: list[Token]) -> bool:
    if after and after[0].lower == "submit":
        return True
    if before.lower == "to":
        return bool(found) and (found[-1].kind == "find" or token.lower == "find")
    return before.lower in _JOIN or before.lower == "by"


def _ends_sentence(some: list[Token], n: int) -> bool:
    return n + 1 >= len(some) or some[n + 1].text[:1].isupper() or some[n + 1].quoted
