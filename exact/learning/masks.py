"""Token ids of a conversation, and which of them are learned.

Each part of a turn is encoded by itself: the header, the text, the end. A mask is then exact whatever a tokenizer merges, and a prompt's
ids are a prefix of those of the longer conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from exact.errors import UsageError

Encode = Callable[[str], Sequence[int]]
"""Encodes a text without adding special tokens at its ends; special tokens that are written in it become their ids."""


class TurnTemplate(NamedTuple):
    """How a chat model's turns are written."""

    begin: str
    """Text before a turn's text, with `{role}`."""
    end: str
    """Text that a model writes at the end of its turn."""
    after: str
    """Text between two turns."""


CHATML = TurnTemplate("<|im_start|>{role}\n", "<|im_end|>", "\n")
"""The turns of Qwen, SmolLM2 and others."""


class TokenizedConversation(NamedTuple):
    """A conversation in tokens."""

    input_ids: list[int]
    mask: list[int]
    """One number for each token: 1 if it is learned, else 0."""


def tokenize(messages: Sequence[Mapping[str, Any]], encode: Encode, *, template: TurnTemplate = CHATML) -> TokenizedConversation:
    """Return the tokens of a conversation with their mask: 1 for the text and the end of each answer that is learned.

    messages: turns with `role`, `content` and perhaps `weight`. Answers are learned unless their weight is 0. Raises UsageError for a turn
    whose content is not text, and if nothing would be learned.
    """
    ids, mask = list[int](), list[int]()

    def add(text: str, learned: bool) -> None:
        found = encode(text)
        ids.extend(found)
        mask.extend([int(learned)] * len(found))

    for message in messages:
        role, content = message["role"], message["content"]
        if not isinstance(content, str):
            raise UsageError("a turn holds pictures, whose tokens are the model's own: export with --no-pictures, or use its processor")
        learned = role == "assistant" and message.get("weight", 1) != 0
        add(template.begin.format(role=role), False)
        add(content, learned)
        add(template.end, learned)
        add(template.after, False)
    if not any(mask):
        raise UsageError("nothing of the conversation is learned: it has no answer with a weight above 0")
    return TokenizedConversation(ids, mask)
