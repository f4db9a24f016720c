"""The steps so far as one conversation: each state is a turn of the user, each action a turn of the model.

Models that were trained on exported conversations are asked so; see exact/learning/conversations.py, which writes the same turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from exact.action import Action, ActionSpace
from exact.agents.request import chat_request, view_state
from exact.config import PolicyConfig, ViewConfig
from exact.context import Context, Taken
from exact.environments.backtracking import RESTART, STEP_BACK
from exact.models.base import ChatRequest, Image, Message, Sampling, Text
from exact.observation import Observation
from exact.prompts.library import Rendered, render_prompt
from exact.views.labels import describe, label_action
from exact.views.view import PromptView, summarise_steps

BACK = (STEP_BACK.name, RESTART.name)
"""Actions that the prompt describes apart, because they undo the others."""


class ConversationTurn(NamedTuple):
    """The prompt of a turn that shows a state, and its pictures."""

    prompt: Rendered
    images: tuple[Image, ...]
    view: PromptView


def show_state(
    context: Context,
    config: PolicyConfig,
    shown: ViewConfig,
    actions: ActionSpace,
    *,
    opening: bool = False,
    explores: bool = False,
    note: str = "",
    before: Observation | None = None,
    model: str = "",
) -> ConversationTurn:
    """Return the turn that shows a state.

    `opening`: with the goal and the task's pictures. `note`: the outcome of the action before it. `before`: the state that the turn before
    showed, as it was shown; with `config.changes` the lines that changed are shown in place of the whole.
    """
    labels = config.elements == "label"
    view = view_state(context, shown, model, labels=labels)
    prompt = render_prompt(
        "conversation", context=view.context, actions=describe(actions) if labels else actions.describe(),
        elements="label" if labels else "id", explores=explores, thinks=config.thoughts, opening=opening, note=note,
        before=before if config.changes else None,
    )  # fmt: skip
    return ConversationTurn(prompt, view.images if opening else view.images[len(context.task.images) :], view)


def write_answer(action: Action, context: Context, config: PolicyConfig, actions: ActionSpace, thought: str = "") -> str:
    """Return the answer of a policy that takes an action: its thought, and the line with the action."""
    written = label_action(action, context.observation) if config.elements == "label" else action.key
    if code := actions.verbs[action.name].code:
        written = f"{action.name}\n```{code}\n{action.args[0]}\n```"
    return said(thought, written)


def said(thought: str, action: str) -> str:
    """Return an answer in the form that policies are asked for."""
    return f"{thought.strip()}\nAction: {action}" if thought.strip() else f"Action: {action}"


def conversation_request(
    context: Context,
    config: PolicyConfig,
    view: ViewConfig,
    sampling: Sampling,
    actions: ActionSpace,
    *,
    samples: int,
    model: str = "",
    grammar: Callable[[PromptView], str] | None = None,
) -> ChatRequest:
    """Return the request for `samples` next answers of a conversation with the last `view.history` steps.

    Steps before them are summarised in a line. The other arguments are those of `state_request`.
    """
    explores = STEP_BACK.name in actions.verbs
    offered = actions.without(BACK) if explores else actions
    taken = (*context.history, *(tried for tried in context.tried if tried.error))
    shown = taken[max(0, len(taken) - view.history) :]
    left_out = taken[: len(taken) - len(shown)]
    note = f"Steps before this state: {summarise_steps(left_out)}" if left_out else ""
    messages, cut, before = list[Message](), list[str](), None
    for place, state in enumerate(_states(context, shown)):
        if state.led is not None:
            messages.append(
                Message("assistant", (Text(write_answer(state.led.action, state.before, config, actions, state.led.rationale)),))
            )
            note = state.led.error or state.led.note
        turn = show_state(state.context, config, view, offered, opening=not place, explores=explores, note=note, before=before, model=model)
        before = turn.view.context.observation
        messages += turn.prompt.messages(*turn.images)[1 if place else 0 :]
        cut += (*turn.view.left_out, *turn.prompt.cut)
    request = chat_request(
        turn.prompt, (), sampling, role=config.role, samples=samples, context=context,
        left_out=tuple(dict.fromkeys(cut)),
    )  # fmt: skip
    request = msgspec.structs.replace(request, messages=tuple(messages))
    return msgspec.structs.replace(request, grammar=grammar(turn.view)) if grammar else request


class _State(NamedTuple):
    """One state of a conversation."""

    context: Context
    before: Context
    """The state before it; for the first one itself."""
    led: Taken | None
    """The step from that state to this one."""


def _states(context: Context, shown: Sequence[Taken]) -> Iterator[_State]:
    """Yield the states in which the shown steps were taken, then the present one."""
    alone = msgspec.structs.replace(context, history=(), tried=(), terminated=False, unseen=False)
    contexts = [msgspec.structs.replace(alone, observation=taken.observation) for taken in shown]
    contexts.append(msgspec.structs.replace(alone, observation=context.observation, terminated=context.terminated))
    for place, there in enumerate(contexts):
        yield _State(there, contexts[max(0, place - 1)], shown[place - 1] if place else None)
