"""The data set of WebArena-Verified: what exact reads of a task. Its evaluators read the rest in their own package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from exact.benchmarks.webarena_verified.install import HARD, TASKS, data_set
from exact.environments.browser.network.har_entry import Kept
from exact.errors import UsageError

T = TypeVar("T")


class Expected(msgspec.Struct, frozen=True):
    """What an evaluator compares with, as far as it decides what is recorded."""

    task_type: str = ""
    headers: dict[str, Any] | None = None
    response_cookies: dict[str, Any] | None = None
    response_content: dict[str, Any] | None = None


class TaskEvaluator(msgspec.Struct, frozen=True):
    """One evaluator of a task: of the answer, or of the traffic."""

    evaluator: Literal["AgentResponseEvaluator", "NetworkEventEvaluator"]
    expected: Expected


class VerifiedTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task."""

    task_id: int
    sites: tuple[str, ...]
    start_urls: tuple[str, ...]
    intent: str
    intent_template_id: int
    eval: tuple[TaskEvaluator, ...]

    @property
    def kind(self) -> str:
        """The type of the task: `retrieve`, `mutate` or `navigate`."""
        return next((each.expected.task_type for each in self.eval if each.expected.task_type), "").lower()

    @property
    def kept(self) -> Kept:
        """The parts of the traffic that its evaluators read beyond addresses, forms and headers."""
        wanted = [each.expected for each in self.eval]
        cookies = {name for each in wanted for name in each.response_cookies or ()}
        sent = [str(value) for each in wanted for name, value in (each.headers or {}).items() if name.lower() == "cookie"]

        def is_named(name: str) -> bool:
            return any(re.search(rf"(?<![\w-]){re.escape(name)}=", text) for text in sent)

        return Kept(
            cookies=cookies.__contains__, sent_cookies=is_named if sent else None, json=any(each.response_content for each in wanted)
        )


class _Subset(msgspec.Struct, frozen=True):
    """Named part of the data set."""

    task_ids: tuple[int, ...]


class DataSet:
    """The data set, read when it is needed. Each property may raise UsageError."""

    @cached_property
    def tasks(self) -> Mapping[str, VerifiedTask]:
        """The tasks by number."""
        return {str(each.task_id): each for each in _read(self.path, tuple[VerifiedTask, ...])}

    @cached_property
    def hard(self) -> tuple[str, ...]:
        """The numbers of the hard tasks."""
        return tuple(map(str, _read(self._folder / HARD, _Subset).task_ids))

    @property
    def path(self) -> Path:
        """The path of the data set."""
        return self._folder / TASKS

    @cached_property
    def _folder(self) -> Path:
        return data_set()


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is no data set of webarena-verified: {error}: install it again") from error
