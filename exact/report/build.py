"""Reports on disk: one page a task, and an index of the run.

A copy of a report for others: text that looks like a secret or personal is replaced, pictures are left out.

The rules prefer to remove too much. They work on the finished data, so that no part of a page is missed. They know forms, not meanings: a
name in plain words stays, so read a copy before you share it.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from exact.config import load_recorded
from exact.errors import JournalError, UsageError, no_space
from exact.report.model.data import Report
from exact.report.model.model import PICTURES, TEXTS, report
from exact.report.page import page, suite_page
from exact.report.suite import PairedGain, suite
from exact.runs.journal.store import RunFolder, scrubbed, write_whole
from exact.runs.secrets import known_secrets
from exact.secrecy.scrubber import Scrubber
from exact.task import Task

MEGABYTE = 1_000_000


def build_report(
    run: RunFolder,
    task: Task,
    *,
    out: Path | None = None,
    screenshots: bool = True,
    most: float | None = None,
    share: bool = False,
    words: Iterable[str] = (),
) -> Path:
    """Write a task's report (default: `report.html` beside its journal) from the journal and its blobs alone.

    A torn or unfinished journal gives a report of its contents. most: megabytes that the file may take; pictures shrink first, then long
    texts are cut. share: leave out screenshots and raw answers, and redact; `words` are removed too (default: `shared.html`). Raises
    JournalError if the journal is missing or the page cannot be written; UsageError if `most` is too small.
    """
    folder = run.journal_of(task).parent
    path = out or folder / ("shared.html" if share else "report.html")
    clean = _shareable(run, tuple(words)) if share else None
    write(path, fitted(run, task, screenshots=screenshots and not share, most=most, clean=clean))
    return path


def _shareable(run: RunFolder, words: tuple[str, ...]) -> Callable[[Report], Report]:
    """Return the function that makes a report fit to be shared. Known secrets, which runs of earlier versions may hold, are removed."""
    scrubber = Scrubber(known_secrets(run.manifest.tasks, load_recorded(run.path)))
    return lambda report: redacted(scrubbed(report, scrubber), words)


def fitted(
    run: RunFolder, task: Task, *, screenshots: bool = True, most: float | None = None, clean: Callable[[Report], Report] | None = None
) -> str:
    """Return a report's page that fits into `most` megabytes, if a limit is given.

    Raises UsageError if even a page without pictures is larger.
    """

    def built(pictures: int, texts: int) -> str:
        found = report(run, task, screenshots=screenshots and pictures > 0, room=(pictures, texts))
        return page(clean(found) if clean is not None else found)

    if most is None:
        return built(PICTURES, TEXTS)
    room = int(most * MEGABYTE)
    bare = len(built(0, 1).encode())
    left = room - bare
    if left < 0:
        raise UsageError(
            f"--max-size {most:g}: the report of {task.id} takes {bare / MEGABYTE:.2f} MB even without pictures and long texts"
        )
    texts = min(TEXTS, left // 4 if screenshots else left)
    text = built(min(PICTURES, (left - texts) * 9 // 10), texts * 9 // 10)
    return text if len(text.encode()) <= room else built(0, texts // 2)


def build_index(run: RunFolder) -> Path:
    """Write `index.html` of a run: one row a task, with links to the reports that exist."""
    path = run.path / "index.html"
    write(path, suite_page(suite([run])))
    return path


def build_suite(runs: Sequence[RunFolder], out: Path, *, gains: Sequence[PairedGain] = ()) -> Path:
    """Write the page of several runs. `gains`: over the first. Raises UsageError for fewer than two."""
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs: name another one")
    write(out, suite_page(suite(runs, beside=out.parent, gains=gains)))
    return out


def write(path: Path, text: str) -> None:
    """Write a page as a whole. Raises JournalError if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        way_out = "free some space, then `exact resume`" if no_space(error, path.parent) else "choose another output folder"
        raise JournalError(f"cannot write {path}: {error.strerror}: {way_out}") from error


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
