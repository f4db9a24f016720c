"""States and actions as text: the messages that a policy or a value function is sent, and the answers that its parsers read.

The action space of a recorded attempt. Journals hold the texts of actions; the grammar is that of the task's environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.agents.policy.conversation import show_state, write_answer
from exact.agents.policy.llm import policy_inputs, prompt_family
from exact.agents.request import state_request, view_state
from exact.agents.value.samples import grade_scale
from exact.config import PolicyConfig, ValueConfig, ViewConfig
from exact.context import Context
from exact.environments.browser.act.grammar import ASK_USER, BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS
from exact.environments.toy.environment import TOY_ACTIONS
from exact.learning.attempts import JournaledAttempt
from exact.models.base import ChatRequest, Message, Sampling
from exact.reflection.record import action_label
from exact.search.tree import Node
from exact.text import use_fence_key

CONTROLS = ("constant", "oracle", "reward")
"""Kinds of value functions whose reasons are kept out of training data."""


class StateTexts:
    """Writes the states and actions of one attempt as the configured policy and value function are shown them."""

    def __init__(self, attempt: JournaledAttempt, policy: PolicyConfig, value: ValueConfig, view: ViewConfig) -> None:
        self.attempt, self._policy, self._value, self._view = attempt, policy, value, view
        self.actions: ActionSpace = action_space(attempt)
        self._labels = policy.elements == "label"
        self._thinks = attempt.config.policy.kind == "llm"

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Draw the marks of fences with the attempt's key, inside the context."""
        opened = self.attempt.state.live.opened
        with use_fence_key(opened.fences if opened else ""):
            yield

    def policy(self, node: Node) -> tuple[Message, ...]:
        """Return the messages that a policy is sent at a node. Raises JournalError, UsageError."""
        context, view = self._without_figures(self.attempt.context(node)), self._view
        inputs = policy_inputs(self._policy, self.actions, context, thinks=self._policy.thoughts, pictured=view.images)
        request = state_request(
            prompt_family(self._policy, view, context, self.actions), context, view, Sampling(), role="policy", samples=1,
            labels=self._labels, examples=(), **inputs,
        )  # fmt: skip
        return request.messages

    def _without_figures(self, context: Context) -> Context:
        """Return a context without the reasons of policies that are no language models."""
        if self._thinks:
            return context
        history, tried = (tuple(replace(each, rationale="") for each in taken) for taken in (context.history, context.tried))
        return replace(context, history=history, tried=tried)

    def value(self, node: Node) -> tuple[Message, ...]:
        """Return the messages that a value function is sent at a node. Raises JournalError, UsageError."""
        context = self.attempt.context(node)
        return self._value_request(context).messages

    def judged(self, target: float) -> str:
        """Return the answer of a value function that stands for a target in [0, 1]: yes or no, or the nearest grade."""
        if self._value.kind == "logprob":
            return "yes" if target >= 0.5 else "no"
        scale = grade_scale(self._value.grades)
        return f"Verdict: {min(scale.letters, key=lambda letter: abs(scale.value(letter) - target))}"

    def answer(self, action: Action, context: Context, thought: str = "") -> str:
        """Return the answer of a policy that takes an action: its thought, and the line with the action."""
        return write_answer(action, context, self._policy, self.actions, thought)

    def thought(self, node: Node, edge: int) -> str:
        """Return the reason that a language model gave for an action; empty for other policies, whose reasons are figures.

        Also empty if the policy that is shown the state is asked for none.
        """
        return node.edges[edge].rationale if self._thinks and self._policy.thoughts else ""

    def judgement(self, node: Node) -> str:
        """Return the reason that a value function gave for a state; empty for controls, which have information that the model lacks."""
        if node.evaluation is None or self.attempt.config.value.kind in CONTROLS:
            return ""
        return node.evaluation.rationale.strip()

    def reason(self, node: Node, before: Node, edge: int, *, tries: bool) -> str:
        """Return why an explorer goes from a state back to an earlier one and takes another action there. Raises JournalError.

        `edge`: index of that action; -1 if there is none. `tries`: the explorer goes on to try something; else the best way that was found
        goes on with the action. The reason that a value function gave is a part only if the state got a lower value than the earlier one.
        """
        judged, worse = self.judgement(node), False
        if judged and node.evaluation and before.evaluation:
            worse = node.evaluation.value < before.evaluation.value
        then = "An earlier state is better."
        if edge >= 0:
            action = action_label(before.edges[edge].action, self.attempt.context(before).observation)
            then = f"Another action may lead further: try {action}." if tries else f"The best way that was found goes on with {action}."
        return "\n".join((*([judged, "This looks worse than before."] if worse else []), then))

    def opening(self, node: Node, *, explores: bool) -> tuple[Message, ...]:
        """Return the system turn and the first turn of a conversation that begins at a node. Raises JournalError, UsageError."""
        turn = show_state(self.attempt.context(node), self._policy, self._view, self.actions, opening=True, explores=explores)
        return turn.prompt.messages(*turn.images)

    def turn(self, node: Node, at: Node, note: str = "") -> Message:
        """Return the turn that shows the state to which an action at another state led. Raises JournalError, UsageError."""
        before = view_state(self.attempt.context(at), self._view, labels=self._labels).context.observation
        turn = show_state(self.attempt.context(node), self._policy, self._view, self.actions, note=note, before=before)
        return turn.prompt.messages(*(() if node.terminated else turn.images))[1]

    def _value_request(self, context: Context) -> ChatRequest:
        inputs: dict[str, Any] = {"arguments": ()} if self._value.kind == "logprob" else {}
        name = "value_logprob" if self._value.kind == "logprob" else "value"
        return state_request(name, context, self._view, Sampling(), role="value", samples=1, changes=self._value.changes, **inputs)


def action_space(attempt: JournaledAttempt) -> ActionSpace:
    """Return the first known action space that reads every action of an attempt.

    If there is none, the space is made of the actions themselves: it has their verbs and forms, without descriptions. So are the verbs of
    tools, which are not loaded for that.
    """
    seen = {edge.action.key: edge.action for node in attempt.state.search.tree.nodes for edge in node.edges}
    calls = {key: each for key, each in seen.items() if any(_parameter(each, given) is Parameter.OBJECT for given in each.args)}
    tools = _derived(calls).verbs.values()
    known = (ActionSpace((*space.verbs.values(), *tools)) if calls else space for space in _known(attempt))
    return next((space for space in known if all(_reads(space, action) for action in seen.values())), None) or _derived(seen)


def _known(attempt: JournaledAttempt) -> Iterator[ActionSpace]:
    suite = attempt.task.id.partition("/")[0]
    if suite == "miniwob":
        yield PAGE_ACTIONS
    if suite in ("desktop", "osworld"):
        yield from (ELEMENT_ACTIONS, COMPUTER_13)
    if suite == "toy":
        yield TOY_ACTIONS
    browser = BROWSER_ACTIONS
    yield ActionSpace((*browser.verbs.values(), ASK_USER)) if attempt.config.browser.ask_user else browser
    yield from (ELEMENT_ACTIONS, COMPUTER_13, TOY_ACTIONS)


def _reads(space: ActionSpace, action: Action) -> bool:
    from exact.errors import ActionError

    try:
        return space.parse(action.key) == action
    except ActionError:
        return False


def _derived(seen: dict[str, Action]) -> ActionSpace:
    verbs: dict[str, Verb] = {}
    for action in seen.values():
        form = tuple(_parameter(action, each) for each in action.args)
        verbs.setdefault(action.name, Verb(name=action.name, form=form, final=action.name == "stop"))
    return ActionSpace(list(verbs.values()))


def _parameter(action: Action, given: str | float) -> Parameter:
    """Return the kind of an argument of an action."""
    if not isinstance(given, str):
        return Parameter.NUMBER
    if given in action.elements:
        return Parameter.ELEMENT
    return Parameter.OBJECT if given.startswith("{") and action.key.endswith(f" {given}") else Parameter.TEXT
