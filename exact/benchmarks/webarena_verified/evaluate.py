"""The score of an attempt by the published evaluators, which run in a process by the interpreter of a separate virtual environment."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.errors import EnvironmentFailure, EvaluatorError, InfrastructureError
from exact.machine import Child
from exact.prompts.fence import one_line
from exact.task import Score
from exact.version import set_up

_PROGRAM = Path(__file__).with_name("evaluator_guest.py")
_SECONDS = 300.0
"""Seconds that the evaluators have for one attempt. Most of it is the start of their process."""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
"""Environment variables that the evaluators get: no keys and passwords."""
NO_ANSWER = "no final answer was given"


class RecordedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an attempt that the evaluators get."""

    task_id: int
    answer: str | None
    entries: Sequence[dict[str, Any]]
    """Entries of a HAR of the live episode."""
    environments: Mapping[str, str]
    """Addresses of the task's sites."""


class EvaluatorResult(msgspec.Struct, frozen=True):
    """The evaluators' result for an attempt."""

    status: Literal["success", "failure", "error"]
    reasons: tuple[str, ...]


async def evaluate(python: Path, attempt: RecordedAttempt) -> Score:
    """Return the score of an attempt, 1 or 0.

    Raises InfrastructureError if the evaluators fail at this task or do not end, EvaluatorError if their package does not work.
    """
    return score(attempt, await _run(python, attempt))


def score(attempt: RecordedAttempt, result: EvaluatorResult) -> Score:
    """Return the score that a result means. Raises InfrastructureError if the evaluators failed: other tasks can continue."""
    reason = one_line("; ".join(result.reasons), 400)
    if result.status == "error":
        raise InfrastructureError(f"the evaluators of webarena-verified failed at task {attempt.task_id}: {reason}").final()
    if result.status == "success":
        return Score(value=1.0, success=True)
    unanswered = attempt.answer is None
    return Score(value=0.0, success=False, reason=NO_ANSWER if unanswered else reason, unanswered=unanswered)


async def _run(python: Path, attempt: RecordedAttempt) -> EvaluatorResult:
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        process = await Child.start(python, "-W", "ignore", "-I", str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ)
    except OSError as error:
        raise EvaluatorError(f"the evaluators of webarena-verified do not start: {python}: {error.strerror}: install them again") from error
    try:
        async with asyncio.timeout(_SECONDS):
            out, said = await process.communicate(msgspec.json.encode(attempt) + b"\n")
    except TimeoutError as error:
        raise EnvironmentFailure(f"the evaluators of webarena-verified did not end within {_SECONDS:g} s: is the machine busy?") from error
    finally:
        await process.end()
    try:
        return msgspec.json.decode(out, type=EvaluatorResult)
    except msgspec.MsgspecError as error:
        last = next((line.strip() for line in reversed(said.decode("utf-8", "replace").splitlines()) if line.strip()), "they said nothing")
        raise EvaluatorError(
            f"the evaluators of webarena-verified gave no result (status {process.returncode}): {one_line(last)}: "
            + set_up("--webarena-verified again", "install webarena-verified there again")
        ) from error
