"""A desktop in gVisor for a process that is not exact's: `python -m exact.environments.desktop.vm.host WIDTH HEIGHT`.

Each line of stdin is a request, `{"op": "save", "name": "..."}` or `revert`; each line of stdout is its answer, with the `ports` of the
desktop's server, Chromium and VLC, or with an `error`. The first line of stdout answers the start. The end of stdin ends the desktop.
"""

from __future__ import annotations

import asyncio
import json
import sys

import msgspec

from exact.environments.base import Snapshot
from exact.environments.desktop.factory import desktop_factory
from exact.environments.desktop.vm.server import PORT
from exact.environments.desktop.vm.tunnel import open_tunnel
from exact.environments.process.worker import Worker
from exact.errors import ExactError
from exact.task import Task

PORTS = (PORT, 9222, 8080)
"""Ports of a machine of OSWorld: its server, Chromium's and VLC's."""
BLANK = Task(id="osworld/blank", instruction="", private={"desktop": "{}"})
"""Task of an empty desktop, which desktop_env sets up further."""


class HostRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of stdin."""

    op: str
    name: str


async def serve(width: int, height: int) -> None:
    """Answer requests until stdin ends. Raises ExactError if there can be no desktop."""
    lines = await _stdin()
    async with (
        desktop_factory(sandbox=True, width=width, height=height, actions="pyautogui", vm_port=PORT) as environments,
        environments.open(simulation=True) as desktop,
    ):
        assert isinstance(desktop, Worker)
        await desktop.reset(BLANK)
        saved: dict[str, Snapshot] = {"init_state": await desktop.snapshot()}
        said: dict[str, object] = {}
        while True:
            async with open_tunnel(desktop, PORTS) as tunnel:
                _say({"ports": tunnel.ports, **said})
                line = await lines.readline()
            if not line:
                return
            try:
                asked = msgspec.json.decode(line, type=HostRequest)
                if asked.op == "save":
                    saved[asked.name] = await desktop.snapshot()
                elif asked.name in saved:
                    await desktop.restore(saved[asked.name])
                else:
                    raise msgspec.ValidationError(f"there is no snapshot {asked.name!r}: there are {', '.join(saved)}")
                said = {}
            except msgspec.MsgspecError as error:
                said = {"error": str(error)}


def _say(told: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def main() -> int:
    """Serve one desktop. Return the exit status."""
    try:
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
    except ExactError as error:
        _say({"error": str(error)})
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
