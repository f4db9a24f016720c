"""Storage state files: a browser's cookies and the storage of origins, as Playwright writes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import msgspec

from exact.errors import UsageError


class Cookie(TypedDict):
    name: str
    value: str
    domain: str
    path: str
    expires: NotRequired[float]
    httpOnly: NotRequired[bool]
    secure: NotRequired[bool]
    sameSite: NotRequired[Literal["Strict", "Lax", "None"]]
    partitionKey: NotRequired[str]


class StorageEntry(TypedDict):
    name: str
    value: str


class OriginStorage(TypedDict):
    """Storage of one origin."""

    origin: str
    localStorage: NotRequired[list[StorageEntry]]


class StorageState(TypedDict):
    cookies: NotRequired[list[Cookie]]
    origins: NotRequired[list[OriginStorage]]


def read(path: Path) -> StorageState | None:
    """Read a storage state; None if there is no such file. Raises UsageError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=StorageState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"the storage state {path} does not read ({error}): delete it, and it is made again") from error


def write(path: Path, state: StorageState) -> None:
    """Write a storage state atomically, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.touch(mode=0o600)
    part.write_bytes(msgspec.json.encode(state))
    part.replace(path)
