"""The person who watches an attempt: asked by a callback, in a terminal or in the live view, whichever answers first.

Each question and each answer is journalled. Without an answer in time a write is refused. An attempt in which a person did more than to
agree is marked as touched, and has no benchmark score.

A wake-up call for every coroutine that waits for a change, such as an answer.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from exact.config import BrowserConfig
from exact.environments.base import PersonQuestion
from exact.errors import ActionError
from exact.reflection.record import action_label
from exact.runs.journal import events as ev
from exact.runs.journal.state import GRANTED, AttemptState
from exact.runs.journal.store import Blobs
from exact.search.tree import Node

Ask = Callable[[PersonQuestion], Awaitable[str | bool | None]]
"""Asks a person. Returns True or "yes" to allow, a text to answer a question; anything else refuses. It is cancelled when it is late."""
_YES = ("yes", "y", "true", "allow")


class Signal:
    """Wakes every coroutine that is waiting when it fires. A coroutine that begins to wait later waits for the next firing."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self.count = 0
        """Number of times that it has fired."""

    def fire(self) -> None:
        """Wake all waiting coroutines."""
        self.count += 1
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self, since: int | None = None) -> None:
        """Wait until the signal fires. `since`: a count; if the signal has fired since then, return at once."""
        if since is not None and self.count != since:
            return
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiting)


class AttemptPerson:
    """The person of one attempt; see `exact.environments.base.Person`."""

    def __init__(
        self, state: AttemptState, config: BrowserConfig, record: Callable[[ev.AnyEvent], None], blobs: Blobs, *,
        ask: Ask | None, take_commands: Callable[[], None], changed: Signal, now: Callable[[], float],
        grants: Callable[[PersonQuestion], str | None] | None = None,
    ) -> None:  # fmt: skip
        """Make a person.

        `grants`: whether a yes from before the start is for a write: the reason if it is refused, empty for a yes, None for neither.
        `ask`: a callback, None where only viewers answer. `take_commands`: journals what viewers have sent. `changed`: fires when they have
        sent something.
        """
        self._state, self._config, self._record, self._blobs = state, config, record, blobs
        self._ask, self._take_commands, self._changed, self._now = ask, take_commands, changed, now
        self._turn, self._grants = asyncio.Lock(), grants

    @property
    def confirms_writes(self) -> bool:
        """Whether each write outside needs a yes, whatever the configuration says."""
        return self._grants is not None

    async def allows(self, question: PersonQuestion) -> str:
        """Return why a write or an action is not allowed; empty where it is."""
        if self._grants and self._state.live.ended:
            return ""  # the evaluator asks, and no agent
        why = self._grants(question) if self._grants else None
        if why is not None:
            id = uuid.uuid4().hex
            self._record(ev.PersonAsked(id=id, question=question))
            self._record(ev.PersonAnswered(id=id, answer="no" if why else "yes", by=GRANTED))
            return why
        said = await self._answered(question)
        if said is None:
            return "no yes came in time"
        return "" if said.strip().lower() in _YES else "a person refused it"

    async def allows_action(self, node: Node, edge: int) -> str:
        """Return why an action is not committed; empty where it is, or where actions need no yes."""
        marked = self._state.live.decided.marks if self._config.confirm_marked and self._state.live.decided is not None else ()
        if not (marked or self._config.confirm == "always") or node.edges[edge].action.name in ("stop", "ask_user", "person"):
            return ""
        text = self._label(node, edge)
        return await self.allows(PersonQuestion(kind="action", text=f"{text}, on a page that {' and '.join(marked)}" if marked else text))

    async def answer(self, question: PersonQuestion) -> str | None:
        """Return the answer to an agent's question; None where none came in time."""
        return await self._answered(question)

    async def _answered(self, question: PersonQuestion) -> str | None:
        """Journal a question, wait for the first answer, and journal that. Return None where none came in time."""
        async with self._turn:
            if question.kind == "write" and (decided := self._state.live.decided) is not None:
                text = self._label(self._state.search.tree.root, decided.decision.edges[0])
                question = msgspec.structs.replace(question, text=text)
            id, began = uuid.uuid4().hex, self._now()
            self._record(ev.PersonAsked(id=id, question=question))
            said, by = await self._first_answer(id, question)
            seconds = round(self._now() - began, 3)
            touched = said is None or question.kind == "question" or said.strip().lower() not in _YES
            self._record(ev.PersonAnswered(id=id, answer=said, by=by, touched=touched, seconds=seconds))
            return said

    async def _first_answer(self, id: str, question: PersonQuestion) -> tuple[str | None, str]:
        """Return the first answer and who gave it; None where none came in time."""
        asking = asyncio.ensure_future(self._ask(question)) if self._ask else None
        if asking is not None:
            asking.add_done_callback(lambda _: self._changed.fire())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.person_seconds):
                    while True:
                        self._take_commands()
                        if (sent := self._state.people.replies.get(id)) is not None:
                            return ("yes" if sent.command == "allow" else "no" if sent.command == "refuse" else sent.text), sent.by
                        if asking is not None and asking.done():
                            return _as_text(asking.result()), "callback"
                        await self._changed.wait()
            return None, ""
        finally:
            if asking is not None and not asking.done():
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    def _label(self, node: Node, edge: int) -> str:
        """Return an action with the names of its elements in place of their ids."""
        action = node.edges[edge].action
        with suppress(ActionError):
            return action_label(action, self._blobs.get_observation(node.observation))
        return action.key


def _as_text(said: str | bool | None) -> str | None:
    """Return what a callback said as text; None where it has no answer."""
    return said if said is None or isinstance(said, str) else "yes" if said else "no"
