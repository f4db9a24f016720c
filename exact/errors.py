"""The error model: every failure that a caller may meet is one of these types.

Three questions decide the type. Who is at fault: the user (`UsageError`), the policy (`ActionError`), or the machinery
(`InfrastructureError`)? What can be done: report it to the policy, retry elsewhere, or stop? Is anything lost? An infrastructure failure is
never a score.
"""

from __future__ import annotations

import difflib
import errno
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from exact.text import inert

_LITTLE = 2**18
"""Free bytes below which a disk counts as full."""
_LONG_NAME = 200
"""Maximum characters of an unknown name that an error repeats and looks for a near one of."""


class ExactError(Exception):
    """Base of all errors of this package. The message states the fact, the value and the way out, in one line.

    It may quote a server, a page or a file, so characters that are not seen are written out: a traceback does not act on a terminal either.
    """

    exit_code = 1
    missing = ""
    """The cause, if known, as in `ResultLine.missing`."""
    resumable = True
    """Whether resuming the run may help once the cause is fixed. False if only a new run can."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(inert(each) if isinstance(each, str) else each for each in args))

    def final(self) -> Self:
        """Mark this error as one that resuming cannot help, and return it."""
        self.resumable = False
        return self


class UsageError(ExactError):
    """A request for something that does not exist or does not fit. Exit code 2."""

    exit_code = 2


class PartError(ExactError):
    """A policy, value function, memory or other part of the user that raised, or gave a result outside its contract.

    Its author has to correct it. It ends its own attempt, is not retried, and is never a score.
    """

    missing = "part"
    task = ""
    """Id of the task whose attempt it ended, if known."""


class EvaluatorError(PartError):
    """An evaluator that raised, or returned something that is not a score. Its author has to correct it. Exit code 2."""

    exit_code = 2


class ActionError(ExactError):
    """An action that the environment's grammar or present state does not admit.

    The state of the environment is unchanged. The text goes back to the policy, so it names the fault and the valid forms.
    """

    form: str = ""
    """Sentence that asks for the form of an answer, with no word of the page in it. Empty unless an answer was read."""
    only_form: bool = False
    """Whether the answer lacks the form and nothing else, so that `form` alone goes back to the model."""


class SecretRefused(ActionError):
    """A secret in an action whose target may not have it: a page of another origin, or a tool. Nothing was typed or called."""


class ToolError(ActionError):
    """A tool that raised, or gave no answer in time. Of a tool that reads, nothing was changed."""


class InfrastructureError(ExactError):
    """A failure of something that the task does not depend on. Retried or reported, never scored."""


class EnvironmentFailure(InfrastructureError):
    """A broken environment: browser gone, page crashed, server silent. Retried on a fresh environment."""

    missing = "environment"


class ModelError(InfrastructureError):
    """A model that did not answer: unreachable, refused, out of quota, timed out after all retries."""

    missing = "model"


class AnswerError(ModelError):
    """A model whose answer cannot be parsed, even after it was shown the parse error.

    For a model of the agent it is the agent's own fault: an attempt that cannot go on ends in its present state and is scored. If the model
    scores the task, the attempt has no score.
    """

    form: str = ""
    """Sentence that asks for the form of the answer, with no word of the page or of the answer in it."""
    tells: bool = False
    """Whether the fault goes back to the model too, in a fence: where an object does not fit the schema."""


class PromptRefused(AnswerError):
    """A prompt that the provider's content filter refuses. Another prompt may pass, so it is a property of the state, not an outage."""


class JournalError(InfrastructureError):
    """A journal that cannot be written, or that cannot be read beyond its torn last line."""


class UncertainCommit(ExactError):
    """A crash between the intent and the end of a live step, in an environment that cannot be rolled back. It ends its own attempt."""

    missing = "commit"


class BudgetExceeded(ExactError):
    """A reservation that would exceed a limit. The search ends with its best answer so far.

    scope, kind: the limit that was exceeded. usage: amount spent of it. wanted: amount asked for. reserved: whether only reservations of
    other work are in the way.
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
        """The unspent part of the limit."""
        return max(0.0, self.limit - self.usage)


def unknown(what: str, name: str, valid: Iterable[str], *, where: str = "", way_out: str = "") -> UsageError:
    """Return a UsageError for an unknown name, with the nearest valid one, also if the suite was left out.

    what: kind of name. where: the file or text that named it. way_out: appended to the message.
    """
    names = sorted(valid)
    name = name if len(name) <= _LONG_NAME else f"{name[:_LONG_NAME]}..."
    ends = {each.rpartition("/")[2]: each for each in reversed(names)}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    near = near or [ends[each] for each in difflib.get_close_matches(name, ends, n=1, cutoff=0.6)]
    near = near or ([each for each in names if each.startswith(name)] if name else [])
    beside = [each for each in names if each.startswith(f"{name.rpartition('/')[0]}/")] or names
    hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(beside[:12])}{', ...' if len(beside) > 12 else ''}"
    place = f" in {where}" if where not in ("", repr(name)) else ""
    return UsageError(f"unknown {what} {name!r}{place}: {hint}{' ' + way_out if way_out else ''}")


def no_space(error: Exception, folder: Path) -> bool:
    """Return whether an error was caused by a full disk or an exhausted quota.

    SQLite may report that as an I/O error, so for errors other than OSError the free space is checked. folder: an existing folder.
    """
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return shutil.disk_usage(folder).free < _LITTLE
