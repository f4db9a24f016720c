"""A small application in memory, and six ways in which environments break: what `exact check` is checked on.

A page with four fields and a list of saved rows. What is typed goes to the field with the focus; `save` sends a row to the server.
The faithful one passes every check. Each mutant breaks one promise, as real environments do.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, SideEffect, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Element, Observation
from exact.task import Outcome, Score, Task

Mutant = Literal["stale tree", "shared server row", "lost focus", "leak", "nondeterministic reset", "hung step"]
"""stale tree: a step shows the state before it. shared server row: all environments save to one server. lost focus: restoring forgets
where the focus was. leak: closing leaves a descriptor open. nondeterministic reset: each reset shows another number. hung step: saving
twice never returns."""

MUTANTS: tuple[Mutant, ...] = get_args(Mutant)

FIELDS = 4

ACTIONS = ActionSpace(
    [
        Verb(name="focus", form=(Parameter.ELEMENT,), help="Put the focus on a field."),
        Verb(name="key", form=(), help="Type an x into the field with the focus."),
        Verb(name="save", form=(), help="Send a row to the server."),
    ]
)


@dataclass(frozen=True)
class _Page:
    fields: tuple[str, ...] = ("",) * FIELDS
    focus: int = 0
    rows: tuple[str, ...] = ()
    number: int = 0


@dataclass
class _Server:
    rows: list[str] = field(default_factory=list)


class Specimen:
    """One environment of the application."""

    capabilities = Capabilities(fidelity="full", isolated=True)
    actions = ACTIONS

    def __init__(self, mutant: Mutant | None, server: _Server, resets: itertools.count[int], spilt: list[int]) -> None:
        self._mutant, self._server, self._resets, self._spilt = mutant, server, resets, spilt
        self._page: _Page | None = None
        self._saved: list[_Page] = []

    async def reset(self, task: Task) -> Observation:
        number = next(self._resets) if self._mutant == "nondeterministic reset" else 0
        self._page = _Page(number=number)
        if self._mutant != "shared server row":
            self._server.rows.clear()
        return self._observed(self._page)

    async def step(self, action: Action) -> Transition:
        before = self._here()
        effects: tuple[SideEffect, ...] = ()
        match action.name:
            case "focus":
                self._page = replace(before, focus=self._field(action))
            case "key":
                typed = list(before.fields)
                typed[before.focus] += "x"
                self._page = replace(before, fields=tuple(typed))
            case "save":
                effects = await self._save(before)
            case _:
                raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        shown = before if self._mutant == "stale tree" else self._here()
        return Transition(observation=self._observed(shown), effects=effects)

    async def _save(self, page: _Page) -> tuple[SideEffect, ...]:
        if self._mutant == "hung step" and len(page.rows) == 1:
            await asyncio.Event().wait()
        rows = self._server.rows if self._mutant == "shared server row" else list(page.rows)
        rows.append("/".join(page.fields))
        self._page = replace(page, fields=("",) * FIELDS, rows=tuple(rows))
        return (SideEffect(kind="request", method="POST", url="specimen://rows", status=200),)

    async def snapshot(self) -> Snapshot:
        page = self._here()
        self._saved.append(page)
        return Snapshot(id=str(len(self._saved) - 1), fidelity="full", fingerprint=self._observed(page).fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        page = self._saved[int(snapshot.id)]
        self._page = replace(page, focus=0) if self._mutant == "lost focus" else page
        return self._observed(self._page)

    async def evaluate(self, outcome: Outcome) -> Score:
        saved = bool(self._here().rows)
        return Score(value=float(saved), success=saved, raw=float(saved), reason="a row was saved" if saved else "no row was saved")

    async def close(self) -> None:
        if self._mutant == "leak" and self._page is not None:
            self._spilt.append(os.open(os.devnull, os.O_RDONLY))
        self._page = None

    def _here(self) -> _Page:
        if self._page is None:
            raise EnvironmentFailure("the specimen was not reset: call reset first")
        return self._page

    def _field(self, action: Action) -> int:
        id = action.elements[0]
        if id not in (valid := [str(i + 1) for i in range(FIELDS)]):
            raise ActionError(f"{action}: no such field: valid: {', '.join(valid)}")
        return int(id) - 1

    def _observed(self, page: _Page) -> Observation:
        fields = [Element(id=str(i), role="textbox", name=f"field {i}", value=text) for i, text in enumerate(page.fields, 1)]
        rows = [Element(id=str(i), role="StaticText", name=f"saved {row} ({page.number})") for i, row in enumerate(page.rows, FIELDS + 1)]
        head = Element(id="0", role="StaticText", name=f"page {page.number}")
        text = "\n".join(f'[{e.id}] {e.role} "{e.name}" {e.value or ""}'.rstrip() for e in (head, *fields, *rows))
        return Observation(text=text, fingerprint=hashlib.sha256(text.encode()).hexdigest()[:32], elements=(head, *fields, *rows))


class SpecimenFactory:
    """Opens specimens, faithful or of one mutant. `spilt`: the descriptors that a leaking one left open, for who cleans up."""

    def __init__(self, mutant: Mutant | None = None) -> None:
        self.mutant = mutant
        self.spilt: list[int] = []
        self._server, self._resets = _Server(), itertools.count()

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        server = self._server if self.mutant == "shared server row" else _Server()
        environment = Specimen(self.mutant, server, self._resets, self.spilt)
        try:
            yield environment
        finally:
            await environment.close()
