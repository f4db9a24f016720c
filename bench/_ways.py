"""A scripted model that knows the way of each task of an application, and proposes wrong actions beside the right one.

A way is a list of steps, the last one first: a pattern that the state must show, and an action with its element's role and name. The next
step is the first one whose pattern is found and whose element is there; of several such elements it means the last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exact.models.scripted import Question

FENCE = r"⟦{0} (\w+)⟧\n(.*?)⟦/{0} \1⟧"
ELEMENT = re.compile(r'\[(\d+)\] ([\w-]+)(?: "((?:[^"\\]|\\.)*)")?')


@dataclass(frozen=True)
class Step:
    """One step of a way."""

    shown: str
    action: str
    """Verb, or the whole action where no element is named."""
    role: str = ""
    name: str = ""
    text: str = ""


DONE = 'stop "done"'


@dataclass(frozen=True)
class Ways:
    """The ways of an application's tasks, by words of their goals."""

    known: Mapping[str, list[Step]]
    wrong: Sequence[str]
    """Names of what is proposed beside the right action, where the page has it."""

    def way(self, goal: str) -> list[Step]:
        """Return the way of a task."""
        for words, steps in self.known.items():
            if words in goal:
                return steps
        raise LookupError(f"no way for {goal!r}")

    def answers(self, question: Question, sample: int) -> str:
        """Answer a question of the policy, the value function or the reflection."""
        system = question.messages[0][1]
        text = next(
            (said for _, said in question.messages[1:] if block(said, "goal")), ""
        )  # what follows says why an answer cannot be read
        if "Lesson:" in system:
            return "Real: It led elsewhere.\nLesson: When a form is shown, fill it before leaving, because leaving loses it."
        if not text:  # what is expected of a step, for a reflection
            return "It leads a step further."
        steps, seen = self.way(block(text, "goal")), block(text, "observation")
        left, right = next_step(steps, seen)
        if "Verdict" in system:
            return f"As the page shows.\nVerdict: {grade(text, seen, left, right, len(steps))}"
        others = [each for each in self.others(seen) if each != right]
        return "It is on the way.\nAction: " + (right if right and sample % 3 == 0 else others[sample % len(others)])

    def others(self, seen: str) -> list[str]:
        """Return wrong actions in a state."""
        if "asks whether it may be left" in seen:
            return ["dismiss"]
        ids = {name: id for id, _, name in reversed(ELEMENT.findall(seen))}
        return [f"click [{ids[name]}]" for name in self.wrong if name in ids] or ["go_back"]


def block(text: str, label: str) -> str:
    """Return the last part of a prompt with a label."""
    found = re.findall(FENCE.format(label), text, re.DOTALL)
    return str(found[-1][1]) if found else ""


def next_step(steps: list[Step], seen: str) -> tuple[int, str]:
    """Return the number of steps after the next one, and the next one; -1 and nothing where the state is off the way."""
    for left, step in enumerate(steps):
        if not re.search(step.shown, seen):
            continue
        if not step.role:
            return left, step.action
        for id, role, name in reversed(ELEMENT.findall(seen)):
            if (role, name) == (step.role, step.name):
                return left, f"{step.action} [{id}]" + (f' "{step.text}"' if step.text else "")
    return -1, ""


def grade(text: str, seen: str, left: int, right: str, steps: int) -> str:
    """Return the grade of a state, of an end, or of a step that was not carried out."""
    taken = block(text, "steps").strip().splitlines() or [""]
    last = next((line for line in reversed(taken) if re.match(r"\d+\. ", line)), "")
    if "The attempt has ended" in text:
        return "A" if left == 0 else "E"
    if "was not carried out" in text:
        return ("B" if left == 1 else "C") if right and _label(right, seen) in last else "E"
    return "E" if left < 0 else "A" if left == 0 else "B" if left == 1 else "C" if left < steps - 1 else "D"


def _label(action: str, seen: str) -> str:
    """Return how the steps of a prompt name an action on an element: by its role and name."""
    verb, _, rest = action.partition(" [")
    named = {id: f'{verb} {role} "{name}"' for id, role, name in ELEMENT.findall(seen)}
    return named.get(rest.partition("]")[0], action)
