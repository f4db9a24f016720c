"""Masks and token counts, for any conversation and any tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.errors import UsageError
from exact.learning.export import token_counts
from exact.learning.masks import CHATML, tokenize
from exact.learning.records import TrainingRecord
from exact.models.base import Message, Text

texts = st.text(max_size=40)
turns = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), texts, st.sampled_from([None, 0, 1])), max_size=8)


class Words:
    """A tokenizer that gives each piece of up to three letters an id of its own, and can tell the text of ids."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self.ids.setdefault(text[at : at + 3], len(self.ids)) for at in range(0, len(text), 3)]

    def decode(self, ids: list[int]) -> str:
        pieces = {id: piece for piece, id in self.ids.items()}
        return "".join(pieces[id] for id in ids)


def conversation(said: list[tuple[str, str, int | None]]) -> list[dict[str, object]]:
    found = [{"role": role, "content": text} | ({} if weight is None else {"weight": weight}) for role, text, weight in said]
    return [{"role": "system", "content": "Do it."}, *found, {"role": "assistant", "content": "Action: stop"}]


@given(turns)
def test_exactly_the_learned_answers_are_in_the_mask(said: list[tuple[str, str, int | None]]) -> None:
    words, messages = Words(), conversation(said)
    found = tokenize(messages, words.encode)
    assert len(found.input_ids) == len(found.mask)
    learned = [str(turn["content"]) for turn in messages if turn["role"] == "assistant" and turn.get("weight", 1) != 0]
    assert words.decode([id for id, mask in zip(*found, strict=True) if mask]) == "".join(text + CHATML.end for text in learned)
    whole = "".join(CHATML.begin.format(role=turn["role"]) + str(turn["content"]) + CHATML.end + CHATML.after for turn in messages)
    assert words.decode(found.input_ids) == whole


@given(turns)
def test_the_tokens_of_a_prompt_are_a_prefix_of_those_of_the_conversation(said: list[tuple[str, str, int | None]]) -> None:
    words, messages = Words(), conversation(said)
    whole = tokenize(messages, words.encode)
    for end in range(1, len(messages) + 1):
        if any(turn["role"] == "assistant" and turn.get("weight", 1) != 0 for turn in messages[:end]):
            part = tokenize(messages[:end], words.encode)
            assert whole.input_ids[: len(part.input_ids)] == part.input_ids and whole.mask[: len(part.mask)] == part.mask


@given(turns)
def test_counts_of_tokens_add_up(said: list[tuple[str, str, int | None]]) -> None:
    turns = tuple(Message(role, (Text(text),)) for role, text, _ in said)  # type: ignore[arg-type]
    trained = tuple(role == "assistant" and weight != 0 for role, _, weight in said)
    whole, learned = token_counts(TrainingRecord(prompt=(), completion=turns, trained=trained))
    parts = [
        token_counts(TrainingRecord(prompt=(), completion=(turn,), trained=(learn,))) for turn, learn in zip(turns, trained, strict=True)
    ]
    assert whole == sum(count for count, _ in parts) and learned == sum(count for _, count in parts) <= whole


@given(st.lists(st.integers(0, 1), min_size=1, max_size=30), st.one_of(st.none(), st.lists(st.integers(0, 99), max_size=9)))
def test_counts_of_token_ids_are_exact(mask: list[int], prompt: list[int] | None) -> None:
    columns = {"completion_ids": list(range(len(mask))), "completion_mask": mask, "prompt_ids": prompt}
    assert token_counts(TrainingRecord(prompt=(), completion=(), columns=columns)) == (len(mask) + len(prompt or ()), sum(mask))


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user", "content": "Go."}], "nothing of the conversation is learned"),
        ([{"role": "assistant", "content": "Go.", "weight": 0}], "nothing of the conversation is learned"),
        ([{"role": "user", "content": [{"type": "image"}]}, {"role": "assistant", "content": "Go."}], "pictures"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(messages: list[dict[str, object]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tokenize(messages, Words().encode)
