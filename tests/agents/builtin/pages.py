"""Small pages for the tests of the built-in agent."""

from exact.action import ActionSpace, Parameter, Verb
from exact.context import Context, Taken
from exact.observation import Element, Observation
from exact.task import Task

ACTIONS = ActionSpace(
    (
        Verb(name="click", form=(Parameter.ELEMENT,)),
        Verb(name="fill", form=(Parameter.ELEMENT, Parameter.TEXT)),
        Verb(name="select", form=(Parameter.ELEMENT, Parameter.TEXT)),
        Verb(name="press", form=(Parameter.TEXT,)),
        Verb(name="hover", form=(Parameter.ELEMENT,)),
        Verb(name="drag", form=(Parameter.ELEMENT, "to", Parameter.ELEMENT)),
        Verb(name="scroll", form=("up|down",)),
        Verb(name="go_back"),
        Verb(name="stop", form=(Parameter.TEXT,), final=True),
    )
)


def page(*elements, fingerprint="start", **fields):
    """Return a page of (role, name, state or value, ...) tuples; ids count from 1. A value is written `=text`, a depth as a number."""
    made = []
    for index, (role, name, *rest) in enumerate(elements, 1):
        words = [word for word in rest if isinstance(word, str)]
        made.append(
            Element(
                id=str(index),
                role=role,
                name=name,
                value=next((word[1:] for word in words if word.startswith("=")), None),
                states=tuple(sorted(word for word in words if not word.startswith("="))),
                depth=next((word for word in rest if isinstance(word, int)), 0),
            )
        )
    return Observation(text="", fingerprint=fingerprint, elements=tuple(made), **fields)


def context(instruction, observation, *steps, application=False, **fields):
    """Return a context; steps are (observation, action text). `application`: the task was set from outside, not by the page itself."""
    history = tuple(Taken(observation=seen, action=ACTIONS.parse(text)) for seen, text in steps)
    task = Task(id="test/task?seed=0", instruction=instruction if application else "")
    return Context(task=task, instruction=instruction, observation=observation, history=history, **fields)


FORM = page(
    ("checkbox", "Ann"),
    ("checkbox", "Bob"),
    ("checkbox", "Cy"),
    ("button", "Submit"),
)
