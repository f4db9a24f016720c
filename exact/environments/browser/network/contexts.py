"""Browser contexts: which of them a request comes from, by the frame or worker that CDP names, and the gate that it has."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from exact.environments.browser.network.gate import Gate
from exact.errors import EnvironmentFailure

_FRAME_TIMEOUT = 1.0
"""Seconds that a request of an unknown frame waits for its context to be found, before it is refused."""
_POLL = 0.02
"""Seconds between two attempts to find the context of a frame."""
_MOST_UNKNOWN = 64
"""Requests of unknown frames that wait at once. Further ones are refused, so that a page which churns frames delays no other."""
_MOST_ENDED = 10_000
"""Frames of pages that were ended which are remembered, while the browser still reports what they sent."""


class BrowserContexts:
    """The contexts of a browser, with their gates."""

    def __init__(self, *, shared: bool = False) -> None:
        """Begin without any. `shared`: the browser has other users too, whose contexts never have a gate."""
        self._shared, self._own = shared, set[str]()
        self._gates: dict[str, Gate] = {}
        """Gates by the CDP id of their context."""
        self._contexts: dict[str, str] = {}
        """CDP ids of contexts by target or frame."""
        self._ended: OrderedDict[str, None] = OrderedDict()
        """Frames of pages that were ended since they sent too many requests."""
        self._unknown = 0
        """Requests of unknown frames that wait."""
        self._queries: dict[str, asyncio.Task[None]] = {}
        """Queries for the frames of contexts, at most one for each."""

    def register(self, context: str, gate: Gate) -> None:
        """Set the gate of a context, by its CDP id."""
        self._gates[context] = gate
        self._own.add(context)

    def unregister(self, context: str) -> None:
        """Forget the gate of a context, and its frames."""
        gate = self._gates.pop(context, None)
        frames = [frame for frame, owner in self._contexts.items() if owner == context]
        if gate and gate.is_over:  # the browser reports what it sent for a while
            self._ended |= dict.fromkeys(frames)
            while len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        for frame in frames:
            del self._contexts[frame]

    def created(self, event: dict[str, Any]) -> None:
        """Note the context of a target that was created."""
        info = event["targetInfo"]
        target, context = info["targetId"], info.get("browserContextId", "")
        new, self._contexts[target] = target not in self._contexts, context
        if new and info["type"] == "page" and context in self._gates:
            self._gates[context].expect_popup(target, info.get("openerId", "") if info.get("canAccessOpener") else "")

    def destroyed(self, event: dict[str, Any]) -> None:
        """Forget a target that is gone."""
        context = self._contexts.pop(event["targetId"], "")
        if context in self._gates:
            self._gates[context].forget_popup(event["targetId"])

    def stop(self) -> None:
        """Stop all queries: the browser is being closed."""
        for task in self._queries.values():
            task.cancel()

    def known(self, frame: str) -> tuple[str, Gate | None]:
        """Return the context of a frame or worker and its gate, as far as they are known now; an empty context if it is not."""
        context = self._context_of(frame) or ""
        return context, self._gates.get(context)

    def is_over(self, frame: str) -> bool:
        """Return whether the page of a frame was ended, which ends its requests too."""
        gate = self.known(frame)[1]
        return frame in self._ended or bool(gate and gate.is_over)

    def is_foreign(self, frame: str) -> bool:
        """Return whether a frame is known not to be ours: its context never had a gate, or none of our pages has it."""
        if not self._shared:
            return False
        context = self._contexts.get(frame)
        if context is None and not self._queries:  # all our pages have answered, and none has the frame
            context = self._contexts[frame] = ""
        return context is not None and context not in self._own

    async def gate_of(self, frame: str) -> Gate | None:
        """Return the gate of a frame or worker. Wait a moment for an unknown one to be reported; return None if it is not."""
        if (context := self._context_of(frame)) is None and self._unknown < _MOST_UNKNOWN:
            self._unknown += 1
            try:
                context = await self._found(frame)
            finally:
                self._unknown -= 1
        return self._gates.get(context) if context is not None else None

    async def _found(self, frame: str) -> str | None:
        """Return the context of a frame once it is reported; None if it is not in time."""
        until = asyncio.get_running_loop().time() + _FRAME_TIMEOUT
        while (context := self._context_of(frame)) is None and asyncio.get_running_loop().time() < until:
            if not await self._query_frames(frame):
                await asyncio.sleep(_POLL)
        return context

    def _context_of(self, frame: str) -> str | None:
        """Return the context of a frame or worker; None if it is unknown."""
        if frame not in self._contexts and (found := next((c for c, gate in self._gates.items() if gate.frames.has(frame)), None)):
            self._contexts[frame] = found
        return self._contexts.get(frame)

    async def _query_frames(self, frame: str) -> bool:
        """Ask all contexts for their frames, without waiting for slow ones. Return whether a frame is known then."""
        for context, gate in self._gates.items():
            if context not in self._queries:
                self._queries[context] = asyncio.ensure_future(self._query_context(context, gate))
        if self._queries:
            await asyncio.wait(self._queries.values(), timeout=_POLL)
        return self._context_of(frame) is not None

    async def _query_context(self, context: str, gate: Gate) -> None:
        from playwright.async_api import Error

        try:
            await gate.frames.ask()
        except (Error, EnvironmentFailure):
            pass  # a page of that context is gone, which does not matter to the others
        finally:
            del self._queries[context]
