"""A copy of a report for others: text that looks like a secret or personal is replaced, pictures are left out.

The rules prefer to remove too much. They work on the finished data, so that no part of a page is missed. They know forms, not meanings: a
name in plain words stays, so read a copy before you share it.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from exact.report.model.data import Report

_COMMON = frozenset({"root", "user", "admin", "localhost", "home", "runner", "ubuntu", "debian"})
"""Names of users and machines that identify no one."""
_MARK = "[{} removed]"
_NAMED = r"pass(?:word|wd|phrase)?|pwd|secret|api[_-]?key|access[_-]?token|auth(?:orization)?|session(?:id)?|csrf(?:token)?|cookie"
_RULES: tuple[tuple[str, str], ...] = (
    ("key", r"-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)"),
    ("key", r"\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[a-z]|hf|AKIA|ASIA|AIza)[-_]?[A-Za-z0-9_\-]{12,}"),
    ("token", r"\beyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?"),
    ("token", r"(?i)\b(?:bearer|basic|token)\s+[A-Za-z0-9+/_\-.=]{12,}"),
    ("secret", rf"(?i)\b(?:{_NAMED})[\"']?\s*[:=]\s*[\"']?[^\s\"'&;,}}]+"),
    ("e-mail address", r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,}"),
    ("card or account number", r"\b(?:\d[ \-]?){13,19}\b"),
    ("account number", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("telephone number", r"(?<![\w.])\+\d{1,3}[ \-.]?(?:\(?\d{1,4}\)?[ \-.]?){2,5}\d{2,4}\b"),
    ("address of a machine", r"\b(?:10|127|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2,3}\b"),
    ("secret", r"\b(?=[A-Za-z0-9+/_\-]*\d)(?=[A-Za-z0-9+/_\-]*[A-Za-z])[A-Za-z0-9+/_\-]{32,}={0,2}"),
)  # fmt: skip
_URL = re.compile(
    r"\b(?P<scheme>[a-z][a-z0-9+.\-]*://)(?:[^\s/@\"'<>]+@)?(?P<host>[^\s/?#\"'<>]+)(?P<path>[^\s?#\"'<>]*)(?P<rest>[?#][^\s\"'<>]*)?",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:/(?:home|Users|root|tmp|var/folders)|[A-Z]:\\Users)[/\\][^\s\"'<>:]*")
_TYPED = re.compile(
    r"""
    (?P<before>
        \banswer[ ]+
      | "text":[ ]?                                     # as a call of a tool is written
      | \b(?:fill|type|write|type_text|select)[ ]+      # as actions are written, in words, and in reflections:
        (?:\[[\w:.-]+\][ ]+)?                           # [3]
        (?:(?:[\w-]+[ ]+){1,3}(?:"(?:[^"\\\n]|\\.)*"[ ]+)?)?      # textbox "Search"
      | \b(?:fill|type|write|type_text|select)\b[^\n]*?(?="(?:[^"\\]|\\.)*"\s*(?:\n|\Z))      # with the text at the line's end
    )
    (?P<typed>
        "(?:[^"\\…]|\\.|…(?![ ]*(?:\n|\Z)))*"
      | '(?:[^'\\\n]|\\.)*'
      | \\"(?:(?!\\")[^\n])*\\"                          # in JSON
      | "[^\n]*                                        # cut: its end cannot be separated from what follows
    )
    """,
    re.X,
)
"""Text that an action types, and the text before it. An element's name beside its id is not typed, and stays."""


class Redactor:
    """Redactor of texts; counts the removed parts."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        """Configure the words to remove.

        words: texts to remove wherever they stand, in any case. The names of this machine and its user are always among them.
        """
        self.taken: Counter[str] = Counter()
        named = {word for word in (*words, *_own_names()) if len(word) > 2 and word not in _COMMON}
        self._rules: list[tuple[str, re.Pattern[str]]] = [(what, re.compile(rule)) for what, rule in _RULES]
        if named:
            alternatives = "|".join(re.escape(word) for word in sorted(named, key=len, reverse=True))
            self._rules.insert(0, ("name", re.compile(rf"(?i)(?<![\w])(?:{alternatives})(?![\w])")))

    def __call__(self, text: str) -> str:
        """Return a text redacted."""
        text = _TYPED.sub(lambda match: f'{match["before"]}"{self._mark("typed text")}"', text)
        text = _URL.sub(self._url, text)
        text = _PATH.sub(lambda _: self._mark("path"), text)
        for what, rule in self._rules:
            text = rule.sub(lambda _, what=what: self._mark(what), text)  # type: ignore[misc]
        return text

    def _mark(self, what: str) -> str:
        self.taken[what] += 1
        return _MARK.format(what)

    def _url(self, match: re.Match[str]) -> str:
        """Return an address without its user, query and fragment."""
        rest = f"?{self._mark('query')}" if match["rest"] else ""
        return f"{match['scheme']}{match['host']}{match['path']}{rest}"


def redacted(report: Report, words: Iterable[str] = ()) -> Report:
    """Return the report without pictures, marks and raw answers, every text redacted, with a line that counts the removed parts."""
    redactor = Redactor(words)
    nodes = [
        msgspec.structs.replace(node, picture="", calls=tuple(msgspec.structs.replace(call, raw=None) for call in node.calls))
        for node in report.nodes
    ]
    raw = {call.raw for node in report.nodes for call in node.calls} - {None}
    texts = tuple("" if number in raw else text for number, text in enumerate(report.texts))
    bare = msgspec.structs.replace(report, nodes=tuple(nodes), pictures={}, marks={}, texts=texts)
    clean = msgspec.convert(_walked(msgspec.to_builtins(bare), redactor), Report)
    counted = ", ".join(f"{count} x {what}" for what, count in redactor.taken.most_common()) or "nothing else"
    said = f"Shared copy: screenshots and raw answers are left out; removed: {counted}."
    return msgspec.structs.replace(clean, head=msgspec.structs.replace(clean.head, warnings=(said, *clean.head.warnings)))


def _walked(value: Any, redactor: Callable[[str], str]) -> Any:
    """Return a value of plain data with every string in it redacted; field names stay."""
    if isinstance(value, str):
        return redactor(value) if len(value) > 3 else value
    if isinstance(value, list | tuple):
        return [_walked(each, redactor) for each in value]
    if isinstance(value, dict):
        return {key: _walked(each, redactor) for key, each in value.items()}
    return value


def _own_names() -> Iterable[str]:
    """Return the names of this machine and of its user."""
    with suppress(KeyError, OSError):
        yield getpass.getuser()
    yield socket.gethostname()
    yield Path.home().name
