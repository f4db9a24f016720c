"""Dialogs of pages (alert, confirm, prompt, beforeunload): observed as elements and answered by actions.

While a dialog is open, its page is blocked: the browser answers nothing about it, and an action that was under way waits too.
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
Mode = Literal["ask", "accept", "dismiss", "leave"]
"""How dialogs are answered. `leave`: a page that asks before it is left is left, and dialogs that ask for a decision are dismissed."""
_DECISIONS = ("confirm", "prompt")
_LEAVE_MESSAGE = "This page asks whether it may be left: what was entered may be lost."
_FIRST_NODE = -10
"""Backend id of a dialog's first part; the ids of the others go down from here. Those of DOM nodes are positive."""
_PARTS = ("alertdialog", "textbox", "ok", "cancel")


class DialogView(NamedTuple):
    """The observation of an open dialog."""

    elements: tuple[Element, ...]
    url: str
    """URL of the page that opened the dialog."""
    digest: str
    """Hexadecimal SHA-256 that identifies the state: the dialog, and the path to it, since the blocked page cannot be observed."""


class Dialogs:
    """The dialogs of one environment's pages, one at a time."""

    def __init__(self, mode: Mode) -> None:
        """Create dialogs that an agent answers in mode `ask`, and that are answered at once in the other modes."""
        self.mode: Mode = mode
        self._open: Dialog | None = None
        self._next: list[Dialog] = []
        """Dialogs of other pages that appeared while one was open."""
        self._text: str | None = None
        """The text in the field of a prompt."""
        self._ids: dict[str, str] = {}
        """Names of the dialog's parts by element id."""
        self._path = ""
        self._appeared = asyncio.Event()
        self._suspended: set[asyncio.Future[Any]] = set()
        """Work that resumes once the dialog is answered."""
        self._answering = 0

    @property
    def is_open(self) -> bool:
        """Return whether a dialog is open or being answered."""
        return self._open is not None or self._answering > 0

    @property
    def is_asked(self) -> bool:
        """Return whether an open dialog waits for the agent's answer."""
        return self._open is not None

    def clear(self) -> None:
        """Forget all dialogs, and cancel the work that waits for them: the pages are gone."""
        self._open, self._next, self._text, self._path = None, [], None, ""
        self._appeared.clear()
        for task in self._suspended:
            task.cancel()
        self._suspended = set()

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """Accept all dialogs while the block runs, so that pages that ask before they are left are left."""
        mode, self.mode = self.mode, "accept"
        try:
            yield
        finally:
            self.mode = mode

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Answer all dialogs while the block runs: leave pages, and decide nothing on behalf of the agent, unless dialogs are accepted."""
        mode = self.mode
        self.mode = "accept" if mode == "accept" else "leave"
        try:
            yield
        finally:
            self.mode = mode

    async def answer_open(self) -> None:
        """Answer the dialogs that are open, in the same way as those that appear now."""
        dialogs = [self._open, *self._next] if self._open else []
        self._open, self._next, self._text, self._path = None, [], None, ""
        self._appeared.clear()
        for dialog in dialogs:
            await self.opened(dialog)

    async def opened(self, dialog: Dialog) -> None:
        """Handle a dialog that a page opened. Answer it at once if the agent is not asked."""
        from playwright.async_api import Error

        if self.mode == "ask" and self._open is not None:
            self._next.append(dialog)
            return
        if self.mode == "ask":
            self._open, self._text = dialog, dialog.default_value if dialog.type == "prompt" else None
            self._appeared.set()
            return
        self._answering += 1
        try:
            with suppress(Error):  # the page closed meanwhile
                refused = self.mode == "dismiss" or (self.mode == "leave" and dialog.type in _DECISIONS)
                await (dialog.dismiss() if refused else dialog.accept(dialog.default_value or None))
        finally:
            self._answering -= 1

    async def race(self, work: Awaitable[T], *, keep_running: bool = False) -> T | None:
        """Return the result of `work`, or None if a dialog appears first.

        The work is cancelled then, or resumes after the dialog with `keep_running`.
        """
        task, appeared = asyncio.ensure_future(work), asyncio.ensure_future(self._appeared.wait())
        try:
            await asyncio.wait({task, appeared}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if keep_running:
                self._suspended.add(task)
                task.add_done_callback(lambda done: done.cancelled() or done.exception())  # the next observation shows the failure
            return None
        finally:
            appeared.cancel()
            if not task.done() and task not in self._suspended:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def view(self, ids: Ids, tab: int, mask: Any, path: str) -> DialogView:
        """Return the observation of the open dialog.

        `tab`: its tab's number. `path`: the last state and action, which identify the state.
        """
        assert self._open is not None
        if not self._path:
            self._path = path
        dialog, kind = self._open, self._open.type
        message = _message(dialog, mask)
        found = {part: ids.of(NodeLocation(tab, 0, _FIRST_NODE - i, "")) for i, part in enumerate(_PARTS)}
        self._ids = {id: part for part, id in found.items()}
        elements = [Element(id=found["alertdialog"], role="alertdialog", name=message, states=("modal",))]
        if kind == "prompt":
            elements.append(Element(id=found["textbox"], role="textbox", name="answer", value=mask(self._text or ""), depth=1))
        elements.append(Element(id=found["ok"], role="button", name="Leave" if kind == "beforeunload" else "OK", depth=1))
        if kind != "alert":
            elements.append(Element(id=found["cancel"], role="button", name="Stay" if kind == "beforeunload" else "Cancel", depth=1))
        digest = hashlib.sha256("\0".join((self._path, kind, message, self._text or "")).encode()).hexdigest()
        return DialogView(tuple(elements), dialog.page.url if dialog.page else "", digest)

    async def act(self, action: Action, fill: Any, mask: Any) -> None:
        """Carry out an action in the open dialog. `fill` puts secrets into a text, `mask` takes them out. Raises ActionError."""
        match action.name, self._ids.get(action.elements[0], "") if action.elements else "":
            case ("accept", _) | ("click", "ok"):
                await self._answer(True)
            case ("dismiss", _) | ("click", "cancel"):
                await self._answer(False)
            case "answer", _:
                self._require_prompt("answer")
                self._text = fill(str(action.args[0]))
                await self._answer(True)
            case "fill", "textbox":
                self._text = fill(str(action.args[1]))
            case _:
                text = _message(self._open, mask)[:200] if self._open else ""
                said = f" and says {text!r}" if text else ""
                raise ActionError(
                    f"{action.key} does not fit: a dialog is open{said}: accept it, dismiss it, or answer it if it asks for a text"
                )

    def _require_prompt(self, what: str) -> None:
        if self._open is None or self._open.type != "prompt":
            raise ActionError(f"{what} does not fit: this dialog asks for no text: accept or dismiss it")

    async def _answer(self, yes: bool) -> None:
        """Close the dialog and wait for suspended work, until it ends or the next dialog appears."""
        from playwright.async_api import Error

        dialog, self._open, suspended = self._open, None, self._suspended
        assert dialog is not None
        self._suspended, self._path = set(), ""
        self._appeared.clear()
        with suppress(Error):  # the page is gone
            await (dialog.accept(self._text) if yes and dialog.type == "prompt" else dialog.accept() if yes else dialog.dismiss())
        if self._next:
            await self.opened(self._next.pop(0))
        if suspended:
            await self.race(asyncio.gather(*suspended, return_exceptions=True), keep_running=True)


def _message(dialog: Dialog, mask: Any) -> str:
    """Return the message with secrets masked."""
    return str(mask(" ".join((dialog.message or (_LEAVE_MESSAGE if dialog.type == "beforeunload" else "")).split())))
