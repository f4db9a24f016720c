"""Situations to reflect on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import pytest

from exact.action import ActionSpace, Parameter, Verb
from exact.context import Context, Reflection, Taken
from exact.observation import Element, Observation
from exact.reflection.base import Surprise
from exact.reflection.record import content_id
from exact.task import Task
from tests.reflection.postgres import Server, server

SPACE = ActionSpace(
    [
        Verb(name="click", form=(Parameter.ELEMENT,)),
        Verb(name="fill", form=(Parameter.ELEMENT, Parameter.TEXT)),
        Verb(name="drag", form=(Parameter.ELEMENT, "to", Parameter.ELEMENT)),
    ]
)


def page(*elements: Element, title: str = "", url: str = "http://127.0.0.1:8080/form.html") -> Observation:
    text = "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements)
    return Observation(text=text, fingerprint=hashlib.sha256(text.encode()).hexdigest(), url=url, title=title, elements=elements)


def element(id: str, role: str, name: str, *, value: str | None = None, states: tuple[str, ...] = ()) -> Element:
    return Element(id=id, role=role, name=name, value=value, states=states)


def situation(instruction: str, observation: Observation, task: str = "suite/a?seed=0") -> Context:
    return Context(task=Task(id=task, instruction=instruction), instruction=instruction, observation=observation)


def surprise(
    observation: Observation,
    action: str = "click [1]",
    after: Observation | None = None,
    *,
    expected: float = 0.8,
    real: float = 0.1,
    alternative: str = "",
    error: str = "",
    node: int = 0,
) -> Surprise:
    return Surprise(
        step=Taken(observation=observation, action=SPACE.parse(action), error=error),
        after=after,
        expected=expected,
        real=real,
        value_before=0.5,
        alternative=alternative,
        alternative_value=0.6 if alternative else None,
        node=node,
    )


def reflection(
    instruction: str, state: str = "", task: str = "suite/a?seed=0", kind: str = "policy", text: str = "Look first."
) -> Reflection:
    record = Reflection(id="", kind=kind, text=text, instruction=instruction, state=state, action="click [1]", task=task, site="127.0.0.1")
    return Reflection(**{f: getattr(record, f) for f in record.__struct_fields__} | {"id": content_id(record)})


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture(scope="session")
def pgvector() -> Iterator[Server]:
    with server(pgvector=True) as started:
        yield started


class Situations:
    page = staticmethod(page)
    element = staticmethod(element)
    context = staticmethod(situation)
    surprise = staticmethod(surprise)
    reflection = staticmethod(reflection)


@pytest.fixture
def make() -> type[Situations]:
    return Situations


@pytest.fixture
def look() -> Callable[..., Context]:
    """Return a context for retrieval, on an empty page of the same site."""
    return lambda instruction, state="", task="suite/now?seed=0": situation(
        instruction, Observation(text=state, fingerprint="", url="http://127.0.0.1:9/x"), task
    )
