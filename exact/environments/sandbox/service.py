"""A program that belongs to an environment: an application with its database, a server of pages."""

from __future__ import annotations

import msgspec

from exact.errors import UsageError
from exact.task import Task


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Started inside the sandbox before the browser, and so part of every snapshot."""

    command: tuple[str, ...]
    """Program and arguments. It runs as root of a sandbox that has loopback and nothing else, and writes to memory."""
    ready_url: str
    """Ready as soon as this address, on loopback, answers with a status below 500."""
    seconds: float = 60.0
    """How long it may take until then."""
    env: dict[str, str] = {}
    folder: str = "/"
    """Its working directory."""
    reads: tuple[str, ...] = ()
    """Files and folders that it needs although they lie in a home directory or under /tmp."""
    stateless: bool = False
    """Whether no request changes what it will answer: then a reset need not roll it back."""


def declared_services(task: Task) -> tuple[Service, ...]:
    """The services a task declares: its metadata's `services`, a JSON list of objects with the fields of Service. Raises UsageError."""
    text = task.metadata.get("services") or "[]"
    try:
        return msgspec.json.decode(str(text), type=tuple[Service, ...])
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"task {task.id} declares services that are none: {error}: write a JSON list of objects with command and ready_url"
        ) from error
