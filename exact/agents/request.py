"""Requests to a model about a state: as much of the state as fits, with its screenshot if configured."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from exact.config import ViewConfig
from exact.context import Context
from exact.errors import UsageError
from exact.models.base import AnswerForm, ChatRequest, Image, Sampling
from exact.prompts.library import Rendered, prompt_inputs, render_prompt
from exact.reflection.record import action_label
from exact.views.labels import label_action
from exact.views.view import CHARACTERS, PromptView, view_context


def state_request(
    name: str,
    context: Context,
    view: ViewConfig,
    sampling: Sampling,
    *,
    role: str,
    samples: int,
    model: str = "",
    more: int = 0,
    labels: bool = False,
    changes: bool = False,
    grammar: Callable[[PromptView], str] | None = None,
    form: AnswerForm | None = None,
    **inputs: object,
) -> ChatRequest:
    """Return the request for `samples` answers to prompt `name`.

    `model` names the tokenizer rules. `more` is the number of earlier requests for the same evaluation or expansion. Together with the
    context's draw it keys the answer: repeated requests get different answers, and a recorded answer can be found again. `grammar` returns
    the grammar of the answer to the shown view, and `form` is that of the answer as JSON. With `labels` elements are named by label. With
    `changes` a prompt that judges shows an earlier state whole, and those after it by the lines that each step changed.
    """
    changes = changes and view.text
    seen = view_state(context, view, model, labels=labels, whole_before=changes)
    known = {
        "context": seen.context, "label": label_action if labels else action_label, "history": view.history,
        "elements": "label" if labels else "id", "screen": seen.screen, "picture": seen.shown, "changes": changes,
    }  # fmt: skip
    prompt = render_prompt(name, **inputs, **{each: value for each, value in known.items() if each in prompt_inputs(name)})
    request = chat_request(
        prompt, seen.images, sampling, role=role, samples=samples, context=context, more=more, left_out=seen.left_out, form=form,
    )  # fmt: skip
    return msgspec.structs.replace(request, grammar=grammar(seen)) if grammar else request


def check_view(view: ViewConfig) -> None:
    """Raise UsageError if a view shows nothing of a state."""
    if not view.text and not view.images:
        raise UsageError("view.text and view.images are both false: show at least one of them")


def view_state(
    context: Context, view: ViewConfig, model: str = "", *, labels: bool = False, characters: int = CHARACTERS, whole_before: bool = False
) -> PromptView:
    """Return the view of a state that the configuration asks for. `whole_before`: as in `view_context`."""
    return view_context(
        context, tokens=view.observation_tokens, history=view.history, images=view.images, marks=view.marks, text=view.text,
        tree=view.tree, html=view.html, labels=labels, image_tokens=view.image_tokens, model=model, characters=characters,
        whole_before=whole_before,
    )  # fmt: skip


def chat_request(
    prompt: Rendered,
    images: tuple[Image, ...],
    sampling: Sampling,
    *,
    role: str,
    samples: int,
    context: Context,
    more: int = 0,
    left_out: tuple[str, ...] = (),
    form: AnswerForm | None = None,
) -> ChatRequest:
    """Return the request for `samples` answers to a prompt about a context, with notes on the parts that view and prompt left out.

    `more`: as in `state_request`.
    """
    return ChatRequest(
        messages=prompt.messages(*images),
        sampling=msgspec.structs.replace(sampling, n=samples),
        role=role,
        node=context.node,
        prompt=prompt.id,
        left_out=left_out + prompt.cut,
        draw=draw_key(context, more),
        selection=context.selection,
        form=form,
    )


def draw_key(context: Context, more: int = 0) -> int:
    """Return the draw under which an answer is recorded.

    It is negative for confirmations, so that a confirmation is independent of earlier evaluations.
    """
    draw = context.draw + (more << 16)
    return -1 - draw if context.confirms else draw
