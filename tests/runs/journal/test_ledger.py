"""What the journal holds of a request to a model."""

from __future__ import annotations

from pathlib import Path

import msgspec

from exact.models.base import AnswerForm, ChatAnswer, ChatRequest, Choice, Display, Message, Sampling, Text, Usage
from exact.runs.journal import events as ev
from exact.runs.journal.ledger import Ledger
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
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
    ledger = Ledger(Yes(), AttemptState(config()), blobs, told.append, lambda: 0.0)
    asked = ChatRequest(
        role="value", node=3, messages=(Message("user", (Text("Well?"),)),), sampling=Sampling(temperature=0.5), schema=form
    )
    await ledger.complete(asked)
    await ledger.complete(msgspec.structs.replace(asked, schema=None))
    with_form, without = (each for each in told if isinstance(each, ev.Called))
    assert (with_form.form, with_form.sampling, with_form.node) == (form, asked.sampling, 3) and without.form is None
    assert b"Well?" in blobs.get(with_form.request) and with_form.request == without.request
    assert msgspec.json.decode(msgspec.json.encode(with_form), type=ev.Called) == with_form


async def test_reasoning_that_goes_back_is_part_of_the_request(tmp_path: Path) -> None:
    blobs, told = Blobs(tmp_path), list[ev.AnyEvent]()
    ledger = Ledger(Yes(), AttemptState(config()), blobs, told.append, lambda: 0.0)
    turn = Message("assistant", (Text("Hm."),), ({"type": "reasoning", "id": "rs_1"},))
    asked = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)), turn), sampling=Sampling())
    await ledger.complete(asked)
    await ledger.complete(msgspec.structs.replace(asked, messages=(asked.messages[0], msgspec.structs.replace(turn, items=()))))
    with_items, without = (each for each in told if isinstance(each, ev.Called))
    assert b"rs_1" in blobs.get(with_items.request) and b"items" not in blobs.get(without.request)


class AsJson(Yes):
    """Answers every question as JSON, by the form of the request."""

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        return msgspec.structs.replace(await super().complete(request), structured=request.attempt > 0)


async def test_the_form_of_an_answer_is_journalled_where_it_was_sent_and_is_no_part_of_the_key(tmp_path: Path) -> None:
    told, form = list[ev.AnyEvent](), AnswerForm(schema={"type": "object"}, example="{}")
    ledger = Ledger(AsJson(), AttemptState(config()), Blobs(tmp_path), told.append, lambda: 0.0)
    asked = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)),), sampling=Sampling(), form=form)
    await ledger.complete(asked)
    await ledger.complete(msgspec.structs.replace(asked, attempt=1))
    lines, objects = (each for each in told if isinstance(each, ev.Called))
    assert (lines.form, objects.form) == (None, {"type": "object"})
    without = Ledger(Yes(), AttemptState(config()), Blobs(tmp_path), told.append, lambda: 0.0)
    await without.complete(msgspec.structs.replace(asked, form=None))
    assert isinstance(last := told[-1], ev.Called) and last.key == lines.key


async def test_what_goes_back_and_the_computer_tool_are_part_of_what_is_reserved(tmp_path: Path) -> None:
    told = list[ev.AnyEvent]()
    ledger = Ledger(Yes(), AttemptState(config()), Blobs(tmp_path), told.append, lambda: 0.0)
    turn = Message("assistant", (Text("Hm."),), ({"type": "reasoning", "encrypted_content": "g" * 4000},))
    plain = ChatRequest(role="value", messages=(Message("user", (Text("Well?"),)),), sampling=Sampling())
    await ledger.complete(plain)
    await ledger.complete(msgspec.structs.replace(plain, messages=(*plain.messages, turn)))
    await ledger.complete(msgspec.structs.replace(plain, screen=Display(width=8, height=6)))
    first, second, third = (each.reserved_tokens for each in told if isinstance(each, ev.Called))
    assert second - first > 2000 and third - first == 2000
