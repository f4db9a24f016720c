"""What is sent to a model: a prompt about a state, as much of it as fits, with its screenshot where that is wanted."""

from __future__ import annotations

import msgspec

from exact.config import PolicyConfig, ValueConfig
from exact.context import Context
from exact.models.base import ChatRequest, Sampling
from exact.prompts.library import render
from exact.reflection.lesson import action_label
from exact.views.view import view


def about(
    name: str,
    context: Context,
    config: PolicyConfig | ValueConfig,
    sampling: Sampling,
    *,
    role: str,
    samples: int,
    more: int = 0,
    **inputs: object,
) -> ChatRequest:
    """The request for `samples` answers to prompt `name`.

    more: how many requests like it were made for this judgement or expansion before. With the context's draw it keys the answer, so that each is another
    one and can be found again.
    """
    seen = view(
        context, tokens=config.observation_tokens, history=config.history, images=config.images, marks=config.marks,
        image_tokens=config.image_tokens, plain=config.plain, tree=config.tree, html=config.html,
    )  # fmt: skip
    prompt = render(name, context=seen.context, label=action_label, history=config.history, **inputs)
    return ChatRequest(
        messages=prompt.messages(*seen.images),
        sampling=msgspec.structs.replace(sampling, n=samples),
        role=role,
        node=context.node,
        prompt=prompt.id,
        left_out=seen.left_out,
        draw=key(context, more),
    )


def key(context: Context, more: int = 0) -> int:
    """The draw that an answer is kept under: below 0 where it is to confirm, so that it is independent of those before it."""
    draw = context.draw + (more << 16)
    return -1 - draw if context.confirms else draw
