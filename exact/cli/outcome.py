"""The outcome of one attempt in a terminal: one line, and below it the answer and the reasons.

Results of a run as JUnit XML, for continuous integration.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from exact.errors import UsageError
from exact.runs.journal.state import AGENT_STOPPED, EPISODE_ENDED
from exact.runs.journal.store import ResultLine, write_whole
from exact.text import counted, inert

ANSWER_LINES, REASON_LINES = 4, 2
"""Lines of an answer and of an evaluator's reason that are printed."""
SURE = 0.5
"""Lowest value from the agent itself that counts as solved if a task has no evaluator. In tables of success it never counts."""
_LINE = 160
"""Characters of a printed line."""
_REASON = 2_000
"""Characters of the reason of a failure, which states the way out at its end."""
_MARKS = {
    "scored": ("✗", "red"),
    "judged": ("•", "cyan"),
    "failed": ("!", "yellow"),
    "stopped": ("–", "yellow"),
    "needs_user": ("?", "yellow"),
}


def is_solved(line: ResultLine) -> bool:
    """Return whether an attempt counts as solved."""
    if line.status == "judged":
        return line.value is not None and line.value >= SURE
    return line.score is not None and line.score >= 1


def mark(line: ResultLine) -> str:
    """Return the coloured sign of an outcome."""
    sign, colour = ("✓", "green") if line.score is not None and line.score >= 1 else _MARKS.get(line.status, _MARKS["failed"])
    return click.style(sign, fg=colour)


def outcome(line: ResultLine) -> str:
    """Return how an attempt ended, in a word or two."""
    if line.score is not None:
        return f"score {line.score:g}"
    if line.status == "judged":
        return "says that it is done" if line.answer is not None else "ended" if line.reason == EPISODE_ENDED else "not finished"
    if line.status == "needs_user":
        return "needs a person"
    return line.status if line.began else "did not begin"


def figures(line: ResultLine) -> str:
    """Return the resources that an attempt took: actions, steps, seconds and money."""
    cost = f"  ${line.cost:.4f}" if line.cost else "" if line.cost == 0 else "  cost unknown"
    actions, steps = f"{counted(line.actions, 'action'):>10}", f"{counted(line.transitions, 'step'):>10}"
    return f"{actions}  {steps}  {line.seconds:6.1f} s{cost}"


def details(line: ResultLine, *, report: str = "") -> Iterator[str]:
    """Yield the answer, the evaluator's reason, and how the attempt ended, unless that reason says enough.

    Text of pages and models is made inert and cut. An empty answer that solved the task is left out. `report`: the place that holds all
    of it.
    """
    from exact.report.model.text import one_line

    if line.answer is not None and (line.answer.strip() or line.score != 1):
        yield from _labelled("answer", line.answer, ANSWER_LINES, report)
    if line.score_reason and line.score != 1:
        yield from _labelled("evaluator", line.score_reason, REASON_LINES, report)
    if line.followed or line.healed:
        yield f"    {counted(line.followed, 'action')} as in the earlier run, {counted(len(line.healed), 'place')} healed."
        yield from (f"    healed: {one_line(each, _REASON)}" for each in line.healed)
    if line.status == "judged":
        estimated = line.value is not None and line.value_function != "constant"
        own = f" The agent's own estimate is {line.value:.2f}." if estimated else ""
        yield f"    No evaluator has checked it.{own}"
    if line.status != "scored" and line.reason:
        yield f"    {one_line(line.reason, _REASON)}"
    elif line.score != 1 and (ended := _ended(line)):
        yield f"    ended: {one_line(ended, _LINE)}"


def _ended(line: ResultLine) -> str:
    """Return how an attempt ended. Empty if the agent or the site ended it and the evaluator says what was missing."""
    return "" if line.score_reason and line.reason in (AGENT_STOPPED, EPISODE_ENDED) else line.reason


def _labelled(label: str, text: str, most: int, place: str) -> Iterator[str]:
    """Yield a text in at most `most` lines, the first of them after a label."""
    lines = [inert(line, _LINE) for line in text.strip().splitlines() if line.strip()] or ["(empty)"]
    shown, rest = lines[:most], len(lines) - most
    yield f"    {label}: {shown[0]}"
    yield from (f"    {' ' * len(label)}  {line}" for line in shown[1:])
    if rest > 0 or any(len(line) > _LINE for line in text.splitlines()):
        more = f"{counted(rest, 'more line')}" if rest > 0 else "cut here"
        yield f"    {' ' * len(label)}  ({more}{f'; all of it: {place}' if place else ''})"


_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(lines: Sequence[ResultLine], name: str) -> bytes:
    """Return a test suite with a case for each attempt: unsolved is a failure, an infrastructure failure is an error."""
    failures, errors = (
        sum(not is_solved(line) and line.status != "failed" for line in lines),
        sum(line.status == "failed" for line in lines),
    )
    suite = ET.Element(
        "testsuite", name=_text(name), tests=str(len(lines)), failures=str(failures), errors=str(errors), skipped="0",
        time=f"{sum(line.seconds for line in lines):.3f}",
    )  # fmt: skip
    for line in lines:
        suite.append(_case(line))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def write_junit(lines: Sequence[ResultLine], name: str, path: Path) -> None:
    """Write the file atomically. Raises UsageError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, junit_xml(lines, name))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}: choose another --junit") from error


def _case(line: ResultLine) -> ET.Element:
    suite, _, task = line.task.partition("/")
    case = ET.Element("testcase", classname=_text(suite), name=_text(task or suite), time=f"{line.seconds:.3f}")
    if line.status == "failed":
        ET.SubElement(case, "error", message=_text(line.reason), type="infrastructure")
    elif not is_solved(line):
        ET.SubElement(case, "failure", message=_text(_why(line)), type=line.status)
    details = f"status: {line.status}\nscore: {line.score}\nown value: {line.value}\nactions: {line.actions}\nsteps: {line.transitions}\n"
    details += "".join(
        f"{label}: {text}\n" for label, text in (("answer", line.answer), ("evaluator", line.score_reason), ("reason", line.reason)) if text
    )
    ET.SubElement(case, "system-out").text = _text(details)
    return case


def _why(line: ResultLine) -> str:
    if line.score is not None:
        why = "; ".join(filter(None, (line.score_reason, _ended(line))))
        return f"score {line.score:g}{f': {why}' if why else ''}"
    if line.status == "judged":
        return f"no evaluator; the agent's own value is {line.value if line.value is not None else 'unknown'}"
    return f"{line.status}: {line.reason}"


def _text(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
