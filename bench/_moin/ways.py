"""A scripted model that knows the way of each task, and proposes wrong actions beside the right one.

A way is a list of steps, the last one first: a pattern that the state must show, and an action with its element's role and name. The next
step is the first one whose pattern is found and whose element is there; of several such elements it means the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from exact.models.scripted import Question

FENCE = r"⟦{0} (\w+)⟧\n(.*?)⟦/{0} \1⟧"
ELEMENT = re.compile(r'\[(\d+)\] (\w+) "((?:[^"\\]|\\.)*)"')
WRONG = ("Logout", "History", "Meta", "Similar", "Cancel", "Preview", "Index", "Download", "Convert", "Destroy", "Home")
"""Names of what is proposed beside the right action, where the page has it."""


@dataclass(frozen=True)
class Step:
    """One step of a way."""

    shown: str
    action: str
    """Verb, or the whole action where no element is named."""
    role: str = ""
    name: str = ""
    text: str = ""


POND = "The beds are on the south side.\\n\\nThe pond is to the north."
DONE = 'stop "done"'
WAYS: dict[str, list[Step]] = {
    "page Garden": [
        Step(r'(StaticText|main) "(The beds.*)?The pond is', DONE),
        Step(r'value="The beds.*pond is', "click", "button", "OK"),
        Step("Modifying 'Garden'", "fill", "textbox", "Type your text here", POND),
        Step(r"URL: http://[^/]+/Garden\n", "click", "link", "Modify"),
        Step(r"URL: \S+/Home\n", "click", "link", "Garden"),
    ],
    "page Compost": [
        Step(r'(StaticText|main) "Turn it in spring', DONE),
        Step(r'value="Turn it in spring', "click", "button", "OK"),
        Step("", "fill", "textbox", "Type your text here", "Turn it in spring."),
        Step("Create new item", "click", "link", "Markdown"),
    ],
    "Tomatos to Tomatoes": [
        Step(r"URL: \S+/Tomatoes\n", DONE),
        Step(r'"Target" value="Tomatoes"', "click", "button", "OK"),
        Step("Rename 'Tomatos'", "fill", "textbox", "Target", "Tomatoes"),
        Step(r"URL: \S+/Tomatos\n", "click", "link", "Rename"),
    ],
    "page Spam": [
        Step("Create new item named 'Spam'|has been deleted", DONE),
        Step(r'"Comment" value="advertising"', "click", "button", "OK"),
        Step("Delete 'Spam'", "fill", "textbox", "Comment", "advertising"),
        Step(r"URL: \S+/Spam\n", "click", "link", "Delete"),
    ],
    "Bring the page Opening hours": [
        Step(r"URL: http://[^/]+/Opening%20hours\n(.*\n)*.*Open from 9 to 17", DONE),
        Step(r"URL: \S+/\+revert", "click", "button", "OK"),
        Step("History of", "click", "link", "revert"),
        Step(r"Closed for ever", "click", "link", "History"),
    ],
    "Subscribe to": [
        Step('link "Unsubscribe"', DONE),
        Step("", "click", "link", "Subscribe"),
    ],
    "quick links": [
        Step('link "Remove Link"', DONE),
        Step("", "click", "link", "Add Link"),
    ],
    "history results": [
        Step(r'have been saved(.*\n)*.*per page" value="25"', DONE),
        Step(r'per page" value="25"', "click", "button", "Save"),
        Step("", "fill", "textbox", "History results per page", "25"),
    ],
    "How many revisions": [
        Step("History of", 'stop "2"'),
        Step("", "click", "link", "History"),
    ],
    "the tag tools": [
        Step(r"URL: http://[^/]+/Notes\n(.*\n)*.*tools", DONE),
        Step(r'"Summary" value="What to bring"(.*\n)*.*"Tags" value="tools"', "click", "button", "OK"),
        Step(r'"Tags" value="tools"', "fill", "textbox", "Summary", "What to bring"),
        Step("Modifying 'Notes'", "fill", "textbox", "Tags", "tools"),
        Step(r"URL: \S+/Notes\n", "click", "link", "Modify"),
    ],
}


def block(text: str, label: str) -> str:
    """Return the last part of a prompt with a label."""
    found = re.findall(FENCE.format(label), text, re.DOTALL)
    return str(found[-1][1]) if found else ""


def way(goal: str) -> list[Step]:
    """Return the way of a task."""
    for words, steps in WAYS.items():
        if words in goal:
            return steps
    raise LookupError(f"no way for {goal!r}")


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


def wrong(seen: str) -> list[str]:
    """Return wrong actions in a state."""
    if "asks whether it may be left" in seen:
        return ["dismiss"]
    ids = {name: id for id, _, name in reversed(ELEMENT.findall(seen))}
    return [f"click [{ids[name]}]" for name in WRONG if name in ids] or ["go_back"]


def answers(question: Question, sample: int) -> str:
    """Answer a question of the policy, the value function or the reflection."""
    system = question.messages[0][1]
    text = next((said for _, said in question.messages[1:] if block(said, "goal")), "")  # what follows it says why an answer cannot be read
    if "Lesson:" in system:
        return "Real: It led elsewhere.\nLesson: When a form is shown, fill it before leaving, because leaving loses it."
    if not text:  # what is expected of a step, for a reflection
        return "It leads a step further."
    steps, seen = way(block(text, "goal")), block(text, "observation")
    left, right = next_step(steps, seen)
    if "Verdict" in system:
        return f"As the page shows.\nVerdict: {grade(text, seen, left, right)}"
    others = [each for each in wrong(seen) if each != right]
    return "It is on the way.\nAction: " + (right if right and sample % 3 == 0 else others[sample % len(others)])


def grade(text: str, seen: str, left: int, right: str) -> str:
    """Return the grade of a state, of an end, or of a step that was not carried out."""
    taken = block(text, "steps").strip().splitlines() or [""]
    last = next((line for line in reversed(taken) if re.match(r"\d+\. ", line)), "")
    if "The attempt has ended" in text:
        return "A" if left == 0 else "E"
    if "was not carried out" in text:
        return ("B" if left == 1 else "C") if right and _label(right, seen) in last else "E"
    return "E" if left < 0 else "A" if left == 0 else "B" if left == 1 else "C" if left < len(way(block(text, "goal"))) - 1 else "D"


def _label(action: str, seen: str) -> str:
    """Return how the steps of a prompt name an action on an element: by its role and name."""
    verb, _, rest = action.partition(" [")
    named = {id: f'{verb} {role} "{name}"' for id, role, name in ELEMENT.findall(seen)}
    return named.get(rest.partition("]")[0], action)
