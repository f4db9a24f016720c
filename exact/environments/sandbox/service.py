"""Programs that belong to an environment, such as an application with its database or a server of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from exact.config.aliases import LONGEST
from exact.errors import UsageError
from exact.origins import is_web
from exact.task import Task


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that is started inside the sandbox before the browser, and is thus part of every snapshot."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Program and arguments. It runs as root of a sandbox whose only network is loopback, and its writes stay in memory."""
    ready_url: str
    """Address on loopback. The service is ready when it answers with a status below 500."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST)] = 60.0
    """Seconds that the start may take."""
    env: dict[str, str] = {}
    """Environment variables."""
    folder: str = "/"
    """Working directory. It may write there, as to everything that it sees: the writes stay in memory."""
    reads: tuple[str, ...] = ()
    """Further files and folders in home directories or under /tmp that it sees, besides those that `command` and `env` name."""
    stateless: bool = False
    """Whether no request changes its later responses. A reset then does not have to roll it back."""

    def __post_init__(self) -> None:
        if not is_web(self.ready_url):
            raise ValueError(f"the service's ready_url {self.ready_url!r} is no web address: write http://127.0.0.1:PORT/")


def located(service: Service, where: Path) -> Service:
    """Return a service with absolute paths without links and `..`, which its relative ones are from the folder `where`.

    The sandbox shows their targets, and not the folders on a way there by `..`. Raises UsageError for one that does not exist.
    """

    def at(said: str) -> str:
        path = Path(said).expanduser()
        if path.is_absolute():  # it may belong to another root than this machine's
            return str(path)
        if not (found := (where / path).resolve()).exists():
            raise UsageError(f"the service `{' '.join(service.command)}` needs {found}, which does not exist: correct its folder or reads")
        return str(found)

    return msgspec.structs.replace(service, folder=at(service.folder), reads=tuple(map(at, service.reads)))


def declared_services(task: Task) -> tuple[Service, ...]:
    """Return the services that a task declares: `services` in its metadata, a JSON list of objects with the fields of Service.

    Raises UsageError if that does not parse.
    """
    text = task.metadata.get("services") or "[]"
    try:
        return msgspec.json.decode(str(text), type=tuple[Service, ...])
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"task {task.id} declares invalid services: {error}: write a JSON list of objects with command and ready_url"
        ) from error
