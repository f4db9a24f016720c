"""Dialogs of pages (alert, confirm, prompt, beforeunload): seen as elements, and answered by actions.

While one is open its page stands still and can be asked nothing: what was under way there waits for the answer, as does whoever acts.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from exact.action import Action
from exact.environments.browser.page.ids import Ids, NodeLocation
from exact.errors import ActionError
from exact.observation import Element

if TYPE_CHECKING:
    from playwright.async_api import Dialog

T = TypeVar("T")
_LEAVE = "This page asks whether it may be left: what was entered may be lost."
_PLACE = -10
"""Backend ids of nodes are positive; those of dialogs go down from here, the same for each: a restored environment counts none anew."""
_PARTS = ("alertdialog", "textbox", "ok", "cancel")


class DialogView(NamedTuple):
    """What is seen of the dialog that is open."""

    elements: tuple[Element, ...]
    url: str
    """Of the page that opened it."""
    digest: str
    """Hex SHA-256 of what tells the state apart, the way here included: the page behind cannot be looked at."""


class Dialogs:
    """Those of one environment's pages, one at a time."""

    def __init__(self, mode: Literal["ask", "accept", "dismiss"]) -> None:
        self.mode = mode
        self._open: Dialog | None = None
        self._next: list[Dialog] = []
        """Of other pages, which came while it was open."""
        self._text: str | None = None
        """What stands in the field of a prompt."""
        self._ids: dict[str, str] = {}
        """Of its parts."""
        self._way = ""
        self._came = asyncio.Event()
        self._behind: set[asyncio.Future[Any]] = set()
        """What goes on once it is answered."""
        self._answering = 0

    @property
    def is_open(self) -> bool:
        return self._open is not None or self._answering > 0

    @property
    def is_asked(self) -> bool:
        """Whether an agent is to answer."""
        return self._open is not None

    def clear(self) -> None:
        """Forget all: the pages are gone."""
        self._open, self._next, self._text, self._way = None, [], None, ""
        self._came.clear()
        for task in self._behind:
            task.cancel()
        self._behind = set()

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """Nobody is asked meanwhile: a page that asks whether it may be left is left."""
        mode, self.mode = self.mode, "accept"
        try:
            yield
        finally:
            self.mode = mode

    async def opened(self, dialog: Dialog) -> None:
        """A page opened one. It is answered at once where nobody is to be asked."""
        from playwright.async_api import Error

        if self.mode == "ask" and self._open is not None:
            self._next.append(dialog)
            return
        if self.mode == "ask":
            self._open, self._text = dialog, dialog.default_value if dialog.type == "prompt" else None
            self._came.set()
            return
        self._answering += 1
        try:
            with suppress(Error):  # closed meanwhile
                await (dialog.dismiss() if self.mode == "dismiss" else dialog.accept(dialog.default_value or None))
        finally:
            self._answering -= 1

    async def race(self, work: Awaitable[T], *, keep_running: bool = False) -> T | None:
        """What work gives, or None where a dialog came first: the work is given up then, or `keep_running` behind the dialog."""
        task, came = asyncio.ensure_future(work), asyncio.ensure_future(self._came.wait())
        try:
            await asyncio.wait({task, came}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if keep_running:
                self._behind.add(task)
                task.add_done_callback(lambda done: done.cancelled() or done.exception())  # what it failed with, the next look tells
            return None
        finally:
            came.cancel()
            if not task.done() and task not in self._behind:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def shown(self, ids: Ids, tab: int, mask: Any, way: str) -> DialogView:
        """What is seen. `way`: what tells the state behind it apart."""
        assert self._open is not None
        if not self._way:
            self._way = way
        dialog, kind = self._open, self._open.type
        message = _said(dialog, mask)
        found = {part: ids.of(NodeLocation(tab, 0, _PLACE - i, "")) for i, part in enumerate(_PARTS)}
        self._ids = {id: part for part, id in found.items()}
        elements = [Element(id=found["alertdialog"], role="alertdialog", name=message, states=("modal",))]
        if kind == "prompt":
            elements.append(Element(id=found["textbox"], role="textbox", name="answer", value=mask(self._text or ""), depth=1))
        elements.append(Element(id=found["ok"], role="button", name="Leave" if kind == "beforeunload" else "OK", depth=1))
        if kind != "alert":
            elements.append(Element(id=found["cancel"], role="button", name="Stay" if kind == "beforeunload" else "Cancel", depth=1))
        digest = hashlib.sha256("\0".join((self._way, kind, message, self._text or "")).encode()).hexdigest()
        return DialogView(tuple(elements), dialog.page.url if dialog.page else "", digest)

    async def act(self, action: Action, fill: Any, mask: Any) -> None:
        """An action in the dialog that is open. Raises ActionError where it is none."""
        match action.name, self._ids.get(action.elements[0], "") if action.elements else "":
            case ("accept", _) | ("click", "ok"):
                await self._answer(True)
            case ("dismiss", _) | ("click", "cancel"):
                await self._answer(False)
            case "answer", _:
                self._prompted("answer")
                self._text = fill(str(action.args[0]))
                await self._answer(True)
            case "fill", "textbox":
                self._text = fill(str(action.args[1]))
            case _:
                text = _said(self._open, mask)[:200] if self._open else ""
                said = f" and says {text!r}" if text else ""
                raise ActionError(
                    f"{action.key} does not fit: a dialog is open{said}: accept it, dismiss it, or answer it if it asks for a text"
                )

    def _prompted(self, what: str) -> None:
        if self._open is None or self._open.type != "prompt":
            raise ActionError(f"{what} does not fit: this dialog asks for no text: accept or dismiss it")

    async def _answer(self, yes: bool) -> None:
        """Close it, then let what waited behind it come to its end, or to the next dialog."""
        from playwright.async_api import Error

        dialog, self._open, behind = self._open, None, self._behind
        assert dialog is not None
        self._behind, self._way = set(), ""
        self._came.clear()
        with suppress(Error):  # its page is gone
            await (dialog.accept(self._text) if yes and dialog.type == "prompt" else dialog.accept() if yes else dialog.dismiss())
        if self._next:
            await self.opened(self._next.pop(0))
        if behind:
            await self.race(asyncio.gather(*behind, return_exceptions=True), keep_running=True)


def _said(dialog: Dialog, mask: Any) -> str:
    """What it says, as an agent may read it."""
    return str(mask(" ".join((dialog.message or (_LEAVE if dialog.type == "beforeunload" else "")).split())))
