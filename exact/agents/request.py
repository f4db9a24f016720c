"""What is sent to a model: a prompt about a state, as much of it as fits, with its screenshot where that is wanted."""

from __future__ import annotations

import msgspec

from exact.config import PolicyConfig, ValueConfig
from exact.context import Context
from exact.models.base import ChatRequest, Image, Sampling
from exact.prompts.library import Rendered, prompt_inputs, render_prompt
from exact.reflection.lesson import action_label
from exact.views.view import CHARACTERS, PromptView, view_context


def state_request(
    name: str,
    context: Context,
    config: PolicyConfig | ValueConfig,
    sampling: Sampling,
    *,
    role: str,
    samples: int,
    model: str = "",
    more: int = 0,
    **inputs: object,
) -> ChatRequest:
    """The request for `samples` answers to prompt `name`.

    model: by whose rules tokens are counted. more: how many requests like it were made for this judgement or expansion before. With the
    context's draw it keys the answer, so that each is another one and can be found again.
    """
    seen = view_state(context, config, model)
    known = {"context": seen.context, "label": action_label, "history": config.history, "screen": seen.screen, "picture": seen.shown}
    prompt = render_prompt(name, **inputs, **{each: value for each, value in known.items() if each in prompt_inputs(name)})
    return chat_request(
        prompt, seen.images, sampling, role=role, samples=samples, node=context.node, draw=draw_key(context, more), left_out=seen.left_out
    )  # fmt: skip


def view_state(context: Context, config: PolicyConfig | ValueConfig, model: str = "", *, characters: int = CHARACTERS) -> PromptView:
    """What of a state the configuration has shown."""
    return view_context(
        context, tokens=config.observation_tokens, history=config.history, images=config.images, marks=config.marks, text=config.text,
        plain=config.plain, tree=config.tree, html=config.html,
        image_tokens=config.image_tokens, model=model, characters=characters,
    )  # fmt: skip


def chat_request(
    prompt: Rendered,
    images: tuple[Image, ...],
    sampling: Sampling,
    *,
    role: str,
    samples: int,
    node: int,
    draw: int = 0,
    left_out: tuple[str, ...] = (),
) -> ChatRequest:
    """The request for `samples` answers to a rendered prompt; what views and the prompt left out is noted with it."""
    return ChatRequest(
        messages=prompt.messages(*images),
        sampling=msgspec.structs.replace(sampling, n=samples),
        role=role,
        node=node,
        prompt=prompt.id,
        left_out=left_out + prompt.cut,
        draw=draw,
    )


def draw_key(context: Context, more: int = 0) -> int:
    """The draw that an answer is kept under: below 0 where it is to confirm, so that it is independent of those before it."""
    draw = context.draw + (more << 16)
    return -1 - draw if context.confirms else draw
