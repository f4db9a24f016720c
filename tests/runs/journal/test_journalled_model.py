"""What the journal holds of a request to a model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from exact.errors import BudgetExceeded
from exact.models.base import AnswerForm, ChatAnswer, ChatRequest, Choice, Display, Message, Sampling, Text, Usage
from exact.runs.journal import events as ev
from exact.runs.journal.spending import JournalledModel
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.search.base import Selection
from tests.runs.toys import config


class Yes:
    """Says yes."""

    name, price = "yes", None

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        return ChatAnswer(choices=(Choice(text="yes", finish="stop"),), usage=Usage(), model="yes", raw="")

    async def close(self) -> None:
        """Close nothing."""


async def test_all_that_was_asked_for_is_journalled_the_form_of_the_answer_too(tmp_path: Path) -> None:
    blobs, told, form = Blobs(tmp_path), list[ev.AnyEvent](), {"type": "object", "properties": {"verdict": {"type": "string"}}}
    model = JournalledModel(Yes(), AttemptState(config()).spending, blobs, told.append, lambda: 0.0)
    asked = ChatRequest(
        role="value", node=3, messages=(Message("user", (Text("Well?"),)),), sampling=Sampling(temperature=0.5), schema=form
    )
    await model.complete(asked)
    await model.complete(msgspec.structs.replace(asked, schema=None))
    with_form, without = (each for each in told if isinstance(each, ev.Called))
    assert (with_form.form, with_form.sampling, with_form.node) == (form, asked.sampling, 3) and without.form is None
    assert b"Well?" in blobs.get(with_form.request) and with_form.request == without.request
    assert msgspec.json.decode(msgspec.json.encode(with_form), type=ev.Called) == with_form


async def test_reasoning_that_goes_back_is_part_of_the_request(tmp_path: Path) -> None:
    blobs, told = Blobs(tmp_path), list[ev.AnyEvent]()
    model = JournalledModel(Yes(), AttemptState(config()).spending, blobs, told.append, lambda: 0.0)
    turn = Message("assistant", (Text("Hm."),), ({"type": "reasoning", "id": "rs_1"},))
    asked = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)), turn), sampling=Sampling())
    await model.complete(asked)
    await model.complete(msgspec.structs.replace(asked, messages=(asked.messages[0], msgspec.structs.replace(turn, items=()))))
    with_items, without = (each for each in told if isinstance(each, ev.Called))
    assert b"rs_1" in blobs.get(with_items.request) and b"items" not in blobs.get(without.request)


class AsJson(Yes):
    """Answers every question as JSON, by the form of the request."""

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        return msgspec.structs.replace(await super().complete(request), structured=request.attempt > 0)


async def test_the_form_of_an_answer_is_journalled_where_it_was_sent_and_is_no_part_of_the_key(tmp_path: Path) -> None:
    told, form = list[ev.AnyEvent](), AnswerForm(schema={"type": "object"}, example="{}")
    model = JournalledModel(AsJson(), AttemptState(config()).spending, Blobs(tmp_path), told.append, lambda: 0.0)
    asked = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)),), sampling=Sampling(), form=form)
    await model.complete(asked)
    await model.complete(msgspec.structs.replace(asked, attempt=1))
    lines, objects = (each for each in told if isinstance(each, ev.Called))
    assert (lines.form, objects.form) == (None, {"type": "object"})
    without = JournalledModel(Yes(), AttemptState(config()).spending, Blobs(tmp_path), told.append, lambda: 0.0)
    await without.complete(msgspec.structs.replace(asked, form=None))
    assert isinstance(last := told[-1], ev.Called) and last.key == lines.key


async def test_what_goes_back_and_the_computer_tool_are_part_of_what_is_reserved(tmp_path: Path) -> None:
    told = list[ev.AnyEvent]()
    model = JournalledModel(Yes(), AttemptState(config()).spending, Blobs(tmp_path), told.append, lambda: 0.0)
    turn = Message("assistant", (Text("Hm."),), ({"type": "reasoning", "encrypted_content": "g" * 4000},))
    plain = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)),), sampling=Sampling())
    await model.complete(plain)
    await model.complete(msgspec.structs.replace(plain, messages=(*plain.messages, turn)))
    await model.complete(msgspec.structs.replace(plain, screen=Display(width=8, height=6)))
    first, second, third = (each.reserved_tokens for each in told if isinstance(each, ev.Called))
    assert second - first > 2000 and third - first == 2000


async def test_a_call_is_counted_in_the_budget_of_the_selection_that_its_request_names(tmp_path: Path) -> None:
    state = AttemptState(config(search={"iteration": {"calls": 1}}))
    state.apply(ev.Asked(answer=Selection(id=0, node=0, needs=("value",))))
    model = JournalledModel(Yes(), state.spending, Blobs(tmp_path), state.apply, lambda: 0.0)
    asked = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)),), sampling=Sampling(), selection=0)
    await model.complete(asked)
    await model.complete(msgspec.structs.replace(asked, draw=1, selection=-1))
    with pytest.raises(BudgetExceeded, match="iteration's budget of 1 calls"):
        await model.complete(msgspec.structs.replace(asked, draw=2))
