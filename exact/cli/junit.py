"""Results of a run as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from exact.cli.outcome import is_solved
from exact.errors import UsageError
from exact.runs.journal.store import ResultLine, write_whole

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
    """Write the file atomically. Raises UsageError where it cannot be written."""
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
        why = line.score_reason or line.reason
        return f"score {line.score:g}{f': {why}' if why else ''}"
    if line.status == "judged":
        return f"no evaluator; the agent's own value is {line.value if line.value is not None else 'unknown'}"
    return f"{line.status}: {line.reason}"


def _text(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
