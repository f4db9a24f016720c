"""The control messages of a sandbox. They come from where hostile pages run, so they are checked before they are used."""

from __future__ import annotations

from typing import Annotated

import msgspec

Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class ControlMessage(msgspec.Struct, frozen=True):
    """One message from `init_process.py`, which describes them. The fields of other messages are None."""

    ready: str | None = None
    held: bool | None = None
    open: Number | None = None
    took: Number | None = None
    bytes: Size | None = None
    digest: str | None = None
    size: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    sha256: str | None = None
    made: tuple[str, ...] | None = None
    failed: str | None = None
    died: str | None = None
    status: int | None = None
    last: str = ""

    def __post_init__(self) -> None:
        if self.took is not None and self.bytes is None:
            raise ValueError("`took` without `bytes`")
        if self.digest is not None and (self.size is None or self.sha256 is None):
            raise ValueError("`digest` without `size` or `sha256`")
        if self.died is not None and self.status is None:
            raise ValueError("`died` without `status`")
        kinds = (self.ready, self.held, self.open, self.took, self.digest, self.made, self.failed, self.died)
        if all(each is None for each in kinds):
            raise ValueError("an unknown message")


def control_message(data: bytes) -> ControlMessage:
    """Return a message. Raises ValueError for what is none."""
    try:
        return msgspec.json.decode(data, type=ControlMessage)
    except RecursionError as error:
        raise ValueError("a message that is nested too deeply") from error
