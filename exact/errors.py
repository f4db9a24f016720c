"""The error model: every failure that a caller may meet is one of these types.

Three questions decide the type. Whose fault is it: the user's (`UsageError`), the policy's (`ActionError`), or the
machinery's (`InfrastructureError`)? What may be done: tell the policy, retry elsewhere, or stop? And is anything lost?
An infrastructure failure is never a score.
"""

from __future__ import annotations

import difflib
import errno
import shutil
from collections.abc import Iterable
from pathlib import Path

_LITTLE = 2**18
"""Bytes: with less free nothing more can be kept."""


class ExactError(Exception):
    """Base of all errors of this package. The message states the fact, the value and the way out, in one line."""

    exit_code = 1


class UsageError(ExactError):
    """The caller asked for something that does not exist or does not fit. Exit code 2."""

    exit_code = 2


class EvaluatorError(ExactError):
    """An evaluator that raised, or gave what is no score: its author's to mend, and never a score. Exit code 2."""

    exit_code = 2
    task = ""
    """Id of the task whose attempt it was to judge, where that is known."""


class ActionError(ExactError):
    """An action that the environment's grammar or present state does not admit.

    The environment is as it was. The text goes back to the policy, so it names what is wrong and what is valid.
    """


class InfrastructureError(ExactError):
    """Something the task does not depend on failed. Retried or reported, never scored."""

    missing = ""
    """What did not answer, where that is known: `environment`, `model`, or `judge` for a model that the verdict asks."""


class EnvironmentFailure(InfrastructureError):
    """An environment that broke: browser gone, page crashed, server silent. Retried on a fresh environment."""

    missing = "environment"


class ModelError(InfrastructureError):
    """A model that did not answer: unreachable, refused, out of quota, timed out after all retries."""

    missing = "model"


class AnswerError(ModelError):
    """A model that answered, but with nothing that parses, also after being shown the parse error.

    Of a model that the agent asks it is the agent's own fault: an attempt in which nothing else can be done ends where it stands, and is
    scored. Of one that a verdict asks it is no score.
    """


class JournalError(InfrastructureError):
    """A journal that cannot be written, or that cannot be read beyond its torn last line."""


class UncertainCommit(ExactError):
    """A crash lies between the intent and the end of a real step, in an environment that cannot be rolled back."""


class BudgetExceeded(ExactError):
    """A reservation would pass a limit. `scope` and `kind` say which; the search ends with its best answer so far.

    `usage`: what was spent of it; `wanted`: what was asked for; `reserved`: whether only reservations of other work are in the way.
    """

    def __init__(
        self, scope: str, kind: str, limit: float, *, usage: float | None = None, wanted: float = 1.0, reserved: bool = False
    ) -> None:
        used = limit if usage is None else usage
        left = max(0.0, limit - used)
        rest = "is used up" if left <= 0 or usage is None else f"has {left:g} left where {wanted:g} are needed"
        super().__init__(f"the {scope}'s budget of {limit:g} {kind} {rest}")
        self.scope, self.kind, self.limit, self.usage, self.wanted, self.reserved = scope, kind, limit, used, wanted, reserved

    @property
    def remaining(self) -> float:
        """What was left of the limit."""
        return max(0.0, self.limit - self.usage)


def unknown(what: str, name: str, valid: Iterable[str], *, where: str = "", way_out: str = "") -> UsageError:
    """A UsageError for a name that is not there, with the nearest valid one. `where` it was named: a file, or the words it was part of."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"
    place = f" in {where}" if where not in ("", repr(name)) else ""
    return UsageError(f"unknown {what} {name!r}{place}: {hint}{' ' + way_out if way_out else ''}")


def no_space(error: Exception, place: Path) -> bool:
    """Whether it failed because the disk or the quota is used up. SQLite may call that an I/O error, so for others the disk is asked.

    `place`: a folder that is there.
    """
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return shutil.disk_usage(place).free < _LITTLE
