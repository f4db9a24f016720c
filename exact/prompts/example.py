"""An invented state to render prompts with: `exact list prompts NAME --example`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from exact.action import ActionSpace, Parameter, Verb
from exact.context import Argument, Context, Reflection, Taken
from exact.errors import UsageError
from exact.observation import Element, Observation
from exact.prompts.library import Prompt
from exact.reflection.base import Surprise
from exact.reflection.record import WORDS, action_label
from exact.task import Task

ACTIONS = ActionSpace(
    [
        Verb(name="click", form=(Parameter.ELEMENT,), help="Click it."),
        Verb(name="fill", form=(Parameter.ELEMENT, Parameter.TEXT), help="Replace a field's text."),
        Verb(name="stop", form=(Parameter.TEXT,), help="End with an answer.", final=True),
    ]
)


def example_inputs(prompt: Prompt) -> dict[str, object]:
    """Return a value for each input of a prompt: its own example, otherwise one from this module.

    Raises UsageError if there is neither.
    """
    known: Mapping[str, Callable[[], Any]] = {
        "context": example_context,
        "observation": lambda: example_context().observation,
        "actions": ACTIONS.describe,
        "label": lambda: action_label,
        "history": lambda: 5,
        "surprise": example_surprise,
        "kind": lambda: "policy",
        "words": lambda: WORDS,
        "expectation": lambda: "The shoe is in the cart.",
        "style": lambda: "plain",
        "examples": tuple,
        "elements": lambda: "id",
        "thinks": lambda: True,
        "k": lambda: 5,
        "side": lambda: "for",
        "heard": tuple,
        "arguments": lambda: (_example_argument("for", "The shoe's page is open."), _example_argument("against", "No size was chosen.")),
        "checks": lambda: ("Is the page that of the blue shoe?", "Is 42 in the field for the size?"),
        "screen": lambda: (1280, 720),
        "picture": lambda: (925, 520),
        "first": example_context,
        "pictures": lambda: 0,
        "states": _siblings,
        "second": lambda: msgspec.structs.replace(example_context(), observation=_LIST),
    }
    missing = [name for name in prompt.inputs if name not in prompt.example and name not in known]
    if missing:
        raise UsageError(f"prompt {prompt.name} has no example of {', '.join(missing)}: add it under `example` at the top of its file")
    return {name: prompt.example[name] if name in prompt.example else known[name]() for name in prompt.inputs}


def example_context() -> Context:
    """Return a context one step into a task in a shop."""
    return Context(
        task=Task(id="shop/buy?seed=1", instruction="Buy the blue shoe in size 42."),
        instruction="Buy the blue shoe in size 42.",
        observation=_example_page("https://shop.test/blue", ("heading", "Blue shoe"), ("textbox", "Size"), ("button", "Buy")),
        history=(Taken(observation=_LIST, action=ACTIONS.parse("click [2]"), rationale="The goal names the blue shoe."),),
        reflections=tuple(_example_reflection(kind) for kind in ("policy", "value")),
        steps_left=4,
        node=1,
    )


def _siblings() -> tuple[Context, ...]:
    """Return two successors of the example's state: one with the size filled in, and one that ended with an answer."""
    seen = example_context()
    filled = _example_page("https://shop.test/blue", ("heading", "Blue shoe"), ("textbox", "Size: 42"), ("button", "Buy"))
    steps = [Taken(observation=seen.observation, action=ACTIONS.parse(text)) for text in ('fill [2] "42"', 'stop "bought"')]
    on, ended = (msgspec.structs.replace(seen, history=(*seen.history, step)) for step in steps)
    return msgspec.structs.replace(on, observation=filled), msgspec.structs.replace(ended, terminated=True)


def example_surprise() -> Surprise:
    """Return the surprise at a successor of the example's state: an attempt to buy without a size."""
    seen = example_context().observation
    step = Taken(observation=seen, action=ACTIONS.parse("click [3]"), rationale="Buying ends it.")
    after = _example_page("https://shop.test/blue", ("heading", "Blue shoe"), ("alert", "Choose a size first."))
    return Surprise(
        step=step, after=after, expected=0.8, real=0.3, value_before=0.5, alternative='fill [2] "42"', alternative_value=0.6, node=1
    )


def _example_page(url: str, *rows: tuple[str, str]) -> Observation:
    elements = tuple(Element(id=str(i), role=role, name=name) for i, (role, name) in enumerate(rows, 1))
    text = "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements)
    return Observation(text=text, fingerprint=str(len(text)) + url, url=url, title="Shop", elements=elements)


def _example_argument(side: Literal["for", "against"], text: str) -> Argument:
    return Argument(side=side, text=text)


def _example_reflection(kind: Any) -> Reflection:
    return Reflection(
        id="example", kind=kind, text="When a page has a field for a size, fill it before buying, because the shop asks for it.",
        instruction="Buy a boot.", state="", action="click [7]", action_label='click button "Buy"', surprise=-0.6, site="shop.test",
    )  # fmt: skip


_LIST = _example_page("https://shop.test/", ("link", "Red shoe"), ("link", "Blue shoe"))
