"""States to render prompts with."""

from collections.abc import Mapping
from typing import Any

from exact.action import ActionSpace, Parameter, Verb
from exact.config import ViewConfig
from exact.context import Context, Reflection, Taken
from exact.observation import Element, Observation
from exact.reflection.base import Surprise
from exact.task import Task

ACTIONS = ActionSpace(
    [
        Verb(name="click", form=(Parameter.ELEMENT,), help="Click it."),
        Verb(name="fill", form=(Parameter.ELEMENT, Parameter.TEXT), help="Replace a field's text."),
        Verb(name="scroll", form=("up|down",), help="Scroll by one page."),
        Verb(name="stop", form=(Parameter.TEXT,), help="End with an answer.", final=True),
    ]
)


def page(*elements: tuple[str, str], url: str = "http://shop.test/", title: str = "Shop", screenshot: bytes | None = None) -> Observation:
    """Return a page whose elements are numbered from 1."""
    found = tuple(Element(id=str(i), role=role, name=name) for i, (role, name) in enumerate(elements, 1))
    text = "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in found)
    return Observation(text=text, fingerprint=str(hash((elements, url))), url=url, title=title, elements=found, screenshot=screenshot)


LIST = page(("link", "Red shoe"), ("link", "Blue shoe"))
SHOE = page(("heading", "Blue shoe"), ("button", "Buy"), ("textbox", "Size"), url="http://shop.test/blue")

LESSON = Reflection(
    id="r1", kind="policy", text="When a shoe has a size field, fill it before buying.", instruction="Buy a boot.", state="",
    action="click [7]", action_label='click button "Buy"', surprise=-0.6, site="shop.test",
)  # fmt: skip


def context(observation: Observation = SHOE, **fields: object) -> Context:
    given = {
        "task": Task(id="shop/buy?seed=1", instruction="Buy the blue shoe in size 42."),
        "instruction": "Buy the blue shoe in size 42.",
        "observation": observation,
        "history": (Taken(observation=LIST, action=ACTIONS.parse("click [2]"), rationale="The goal names\nthe blue shoe."),),
        "reflections": (LESSON,),
        "steps_left": 4,
        "node": 3,
        "seed": 7,
    }
    return Context(**(given | fields))  # type: ignore[arg-type]


def surprise(**fields: object) -> Surprise:
    step = Taken(observation=SHOE, action=ACTIONS.parse("click [2]"), rationale="Buying ends it.")
    given = {"step": step, "after": None, "expected": 0.8, "real": 0.1, "value_before": 0.5, "node": 3}
    return Surprise(**(given | {"alternative": 'fill [3] "42"', "alternative_value": 0.4} | fields))  # type: ignore[arg-type]


def apart(settings: Mapping[str, Any]) -> tuple[dict[str, Any], ViewConfig]:
    """Return the settings of a part of the agent, and the view among them."""
    own = {name: value for name, value in settings.items() if name not in ViewConfig.__struct_fields__}
    return own, ViewConfig(**{name: value for name, value in settings.items() if name not in own})
