"""Spending of an attempt: the budgets of the task, of the present search and of each piece of work, and the failures on the way.

A chat model whose answers are journalled before they are used, and never asked for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from exact.budget import Budget, Kind
from exact.config import Config, Limits, ScopeLimits
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Image, Message, Text, WrappedModel
from exact.models.meter import metered, total
from exact.parts import awaited, calling, misfit
from exact.runs.journal import events as ev
from exact.runs.journal.store import Blobs
from exact.search.base import Batched, Compared, Result, Rolled, Selection, Valued
from exact.search.rules.afford import affordable
from exact.search.tree import Tree

_PAID: tuple[Kind, ...] = ("money", "calls", "tokens", "transitions", "evaluations")
"""Kinds that an iteration costs, beside time."""
SHARED: tuple[Kind, ...] = ("money", "calls", "tokens")
"""Kinds whose caps hold for all goals of a session together."""
MOST_CHANGES = 3
"""Actions in a row that do not count, since each was refused on a page that had changed by itself. A page may never stop changing."""


class Spending:
    """Nested budgets of an attempt, its calls, and its failures.

    The present search ends with the next commit. Work that is still in flight then counts in the budget that it began with.
    """

    def __init__(self, config: Config, tree: Tree) -> None:
        self._config, self._tree = config, tree
        self._search_limits, self._iteration_limits = limits(config.search.limits), limits(config.search.iteration)
        self.task = Budget(limits(config.limits))
        self.search = self._new_search()
        """Budget of the present search."""
        self.search_began = 0.0
        """Start of the present search, in seconds since the journal was opened."""
        self.elapsed = 0.0
        """Seconds since the journal was opened, at the last event that is no ask."""
        self.calls: dict[str, ev.Called] = {}
        """Model calls, by key."""
        self.cost_known = True
        """False once the price of a call was unknown."""
        self.unaccounted = 0
        """Requests to models that were given up on. Their cost is in no sum."""
        self.late = 0
        """Results that came after their selection was closed."""
        self.drifted = 0
        """Arrivals at another state than the node's."""
        self.restores = 0
        """Arrivals at a node by another route than `reuse` and `advance`."""
        self.informed = 0
        """Evaluations by an oracle that hold the benchmark's score."""
        self.failures = 0
        """Calls and environments that failed."""
        self.lasting_failures = set[str]()
        """Reasons of the failures that resuming cannot help."""
        self._changes = 0
        """Actions in a row that were refused since the state had changed by itself."""
        self._scopes: dict[int, Budget] = {}
        """Budgets of open selections, by id."""
        self._first = 0
        """Id of the first selection of the present search."""
        self._iterations = 0
        """Iterations of the tree that are counted in the search's budget."""

    @property
    def is_unsteady(self) -> bool:
        """Whether so many actions in a row were refused, since the state had changed by itself, that further ones count."""
        return self._changes >= MOST_CHANGES

    def scope(self, selection: int) -> Budget:
        """Return the budget of a selection's work; -1: the task's. Work of an earlier search counts in the task's."""
        return self._scopes.get(selection) or (self.search if selection >= self._first else self.task)

    def apply(self, event: ev.AnyEvent) -> None:
        """Count what an event spent, after the search has applied it."""
        if not isinstance(event, ev.Asked):  # so that an ask follows from the other events alone
            self.elapsed = event.t
        match event:
            case ev.Opened() | ev.Reset():
                self._begin(event)
            case ev.Asked(answer=Selection(id=id)):
                self._scopes[id] = Budget(self._iteration_limits, scope="iteration", parent=self.search)
            case ev.Acted() | ev.RolledStep():
                self.scope(event.selection).spend("transitions", int(not (isinstance(event, ev.Acted) and event.ahead)))
            case ev.Arrived():
                self.drifted += event.match == "drifted"
                self.restores += event.route not in ("reuse", "advance")
                self.scope(event.selection).spend("transitions", event.transitions)
            case ev.Prepared():
                self.task.spend("transitions", event.transitions)
            case ev.Judged():
                self.task.spend("evaluations", int(event.bought))
            case ev.Told() | ev.Late():
                self._count_result(event)
            case ev.Committed():
                self._count_commit(event)
            case ev.Called() | ev.Unaccounted():
                self._count_call(event)
            case ev.Failed():
                self._count_failure(event)
        self._count_iterations(event)

    def _begin(self, event: ev.Opened | ev.Reset) -> None:
        """Begin the attempt, with what earlier goals of the session took in the caps that hold for all of them; or its first search."""
        if isinstance(event, ev.Reset):
            self.search_began = event.t
        elif event.spent:
            session = Budget({kind: cap for kind, cap in limits(self._config.limits).items() if kind in SHARED}, scope="session")
            session.spent = {kind: event.spent.get(kind, 0.0) for kind in SHARED}
            self.task.parent = session

    def _count_result(self, event: ev.Told | ev.Late) -> None:
        """Count the evaluations in an agent's answer."""
        self.late += isinstance(event, ev.Late)
        if isinstance(event, ev.Late) or not event.reused:
            self.scope(event.selection).spend("evaluations", evaluations_in(event.result))
            self.informed += benchmark_scores_in(event.result)

    def _count_commit(self, event: ev.Committed) -> None:
        refused = bool(event.refused)
        self._changes = 0 if not event.changed else self._changes + refused
        self.task.spend("actions", int(not event.changed or (refused and self._changes > MOST_CHANGES)))
        self.task.spend("transitions", int(not event.promoted and (refused or not event.changed)))

    def _count_call(self, event: ev.Called | ev.Unaccounted) -> None:
        tokens, money, usage = 0, 0.0, event.usage
        if isinstance(event, ev.Called):
            self.calls[event.key] = event
            self.scope(event.selection).spend("calls")
            tokens, money = 0 if event.replayed == event.sampling.n else event.reserved_tokens, event.reserved
        else:
            self.unaccounted += len(event.lost)
            if not (usage.input_tokens or usage.output_tokens):
                return
        self.scope(event.selection).spend("tokens", usage.input_tokens + usage.output_tokens or tokens)
        self.scope(event.selection).spend("money", money if usage.cost is None else usage.cost)
        self.cost_known = self.cost_known and usage.cost is not None

    def _count_failure(self, event: ev.Failed) -> None:
        self.failures += event.what != "budget"
        if not event.resumable:
            self.lasting_failures.add(event.reason)
        self.scope(event.selection).spend("transitions", event.transitions)

    def _count_iterations(self, event: ev.AnyEvent) -> None:
        """Count the tree's new iterations, end the budgets of closed selections, and begin that of a new search after a commit."""
        done, self._iterations = self._tree.iterations - self._iterations, self._tree.iterations
        if done:
            self.search.spend("iterations", done)
        match event:
            case ev.Told() | ev.Released() if event.selection not in self._tree.open:
                self._scopes.pop(event.selection, None)
            case ev.Committed():
                self.search, self.search_began, self._first = self._new_search(), event.t, self._tree.selections
                self._scopes = {id: scope for id, scope in self._scopes.items() if id in self._tree.open}

    @property
    def actions_left(self) -> int | None:
        """Actions that may still be committed; None if they are not capped."""
        left = self.task.remaining("actions")
        return None if left is None else int(left)

    def affordable_iterations(self) -> int | None:
        """Return the number of further iterations that the caps of search and task pay for, at the mean cost of one in this search.

        None: no cap limits them.
        """
        scopes = ((self._config.search.limits, self.search, self.search_began), (self._config.limits, self.task, 0.0))
        spent: dict[str, float] = {kind: self.search.spent.get(kind, 0.0) for kind in _PAID}
        spent["seconds"] = self.elapsed - self.search_began
        left: dict[str, float | None] = {}
        for caps, budget, began in scopes:
            used = {**{kind: budget.spent.get(kind, 0.0) for kind in _PAID}, "seconds": self.elapsed - began}
            if budget is self.task and budget.parent is not None:
                used |= budget.parent.spent  # of earlier goals of the session, and of this one
            for kind, amount in used.items():
                cap, before = getattr(caps, kind), left.get(kind)
                if cap is not None:
                    left[kind] = cap - amount if before is None else min(before, cap - amount)
        return affordable(spent, left, self._tree.iterations - self._tree.search_began)

    def _new_search(self) -> Budget:
        return Budget(self._search_limits, scope="search", parent=self.task)


def limits(caps: Limits | ScopeLimits) -> dict[Kind, float | None]:
    """Return the caps of a scope by kind. Time is not among them, since it passes by the journal's clock."""
    kinds: tuple[Kind, ...] = ("money", "calls", "tokens", "actions", "transitions", "evaluations", "iterations")
    return {kind: getattr(caps, kind, None) for kind in kinds}


def evaluations_in(result: Result) -> int:
    """Return the number of evaluations that the value function made for a result."""
    match result:
        case Valued() | Rolled():
            return 1
        case Compared():
            return len(result.scores)
        case Batched():
            return len(result.evaluations)
    return 0


def benchmark_scores_in(result: Result) -> int:
    """Return the number of evaluations in a result that hold the benchmark's own score."""
    match result:
        case Valued() | Rolled():
            return int(result.evaluation.informed)
        case Batched():
            return sum(each.informed for each in result.evaluations)
    return 0


class RecordEvent(Protocol):
    """A function that journals an event and applies it to the attempt's state."""

    def __call__(self, event: ev.AnyEvent) -> None: ...


class JournalledModel(WrappedModel):
    """A wrapper of a chat model for one attempt."""

    def __init__(self, model: ChatModel, spending: Spending, blobs: Blobs, record: RecordEvent, now: Callable[[], float]) -> None:
        super().__init__(model)
        self._spending, self._blobs, self._record, self._now = spending, blobs, record, now
        self._asking: dict[str, asyncio.Future[None]] = {}

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return the journalled answer to a request, else the model's. Raises ModelError, BudgetExceeded."""
        content = self._plain(request)
        key = self._key(request, content)
        while key in self._asking:
            await asyncio.wait([self._asking[key]])
        if known := self._spending.calls.get(key):
            return self._blobs.read(known.answer, ChatAnswer)
        self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            return await self._ask(request, content, key)
        finally:
            self._asking.pop(key).set_result(None)

    async def _ask(self, request: ChatRequest, content: list[object], key: str) -> ChatAnswer:
        began = self._now()
        tokens, money = self._worst_case(request)
        with self._spending.scope(request.selection).reserve({"calls": 1, "tokens": tokens, "money": money}):
            answer = await self._metered(request)
        self._record(
            ev.Called(
                key=key,
                role=request.role,
                node=request.node,
                attempt=request.attempt,
                draw=request.draw,
                prompt=request.prompt,
                model=answer.model,
                sampling=request.sampling,
                request=self._blobs.put(msgspec.json.encode(content)),
                form=_form(request, answer),
                answer=self._blobs.put(msgspec.json.encode(answer)),
                usage=answer.usage,
                reserved=money,
                reserved_tokens=tokens,
                replayed=answer.replayed,
                left_out=request.left_out,
                notes=answer.notes,
                seconds=round(self._now() - began, 6),
                selection=request.selection,
            )
        )
        return answer

    async def _metered(self, request: ChatRequest) -> ChatAnswer:
        """Ask the model. Requests that the usage of its answer does not cover are journalled, also where it gives no answer."""
        answered = False
        with metered() as exchanges:
            try:
                with calling("model.complete", self._model):
                    answer = await awaited(self._model.complete(request))
                    if not isinstance(answer, ChatAnswer):
                        raise misfit(answer, "ChatAnswer")
                answered = True
            finally:
                lost = tuple(f"{e.endpoint}: {e.reason}" for e in exchanges if e.outcome == "lost")
                came = [] if answered else [e.usage for e in exchanges if e.outcome == "answered"]
                if lost or came:
                    self._record(
                        ev.Unaccounted(
                            role=request.role, node=request.node, model=self.name, lost=lost, usage=total(came), selection=request.selection
                        )
                    )
        return answer

    def _key(self, request: ChatRequest, content: list[object]) -> str:
        about = [self.name, request.role, request.node, request.draw, request.attempt, request.sampling, request.schema, content]
        about += [] if request.screen is None else [request.screen]
        return hashlib.sha256(msgspec.json.encode(about)).hexdigest()

    async def close(self) -> None:
        """Leave the model open: it belongs to the run."""

    def _plain(self, request: ChatRequest) -> list[object]:
        """Return the messages as sent, each image as the name of its blob. Native items of a turn are part of it, if there are any."""
        return [self._turn(message) for message in request.sent()]

    def _turn(self, message: Message) -> dict[str, object]:
        parts = [{"text": part.text} if isinstance(part, Text) else {"image": self._blobs.put(part.data)} for part in message.parts]
        return {"role": message.role, "parts": parts} | ({"items": message.items} if message.items else {})

    def _worst_case(self, request: ChatRequest) -> tuple[int, float]:
        """Return the most tokens and US dollars that a request may take.

        One token for every two characters, 2,000 for an image or the computer tool, and answers of full length, each with the prompt
        again.
        """
        parts = [part for message in request.sent() for part in message.parts]
        read = sum(2000 if isinstance(part, Image) else len(part.text) / 2 + 8 for part in parts)
        if request.form is not None:
            read += (len(request.form.example) + len(msgspec.json.encode(request.form.schema))) / 2
        read += sum(len(msgspec.json.encode(message.items)) / 2 for message in request.messages if message.items)
        read += 2000 if request.screen is not None else 0
        n, written = request.sampling.n, request.sampling.max_tokens
        price = self.price
        money = n * (read * price.highest_input + written * price.output) / 1e6 if price is not None else 0.0
        return int(n * (read + written)), money


def _form(request: ChatRequest, answer: ChatAnswer) -> dict[str, Any] | None:
    """Return the schema that an answer was asked for with: the request's own, or that of its form where it was sent."""
    schema = request.form.schema if request.form is not None and answer.structured else request.schema
    return None if schema is None else dict(schema)
