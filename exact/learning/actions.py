"""The action space of a recorded attempt. Journals hold the texts of actions; the grammar is that of the task's environment."""

from __future__ import annotations

from collections.abc import Iterator

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.browser.act.grammar import ASK_USER, BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS
from exact.environments.toy.environment import TOY_ACTIONS
from exact.learning.attempts import JournaledAttempt


def action_space(attempt: JournaledAttempt) -> ActionSpace:
    """Return the first known action space that reads every action of an attempt.

    Where none does, the space is made of the actions themselves: it has their verbs and forms, without descriptions.
    """
    seen = {edge.action.key: edge.action for node in attempt.state.tree.nodes for edge in node.edges}
    return next((space for space in _known(attempt) if all(_reads(space, action) for action in seen.values())), None) or _derived(seen)


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
        form = tuple(
            Parameter.ELEMENT if str(each) in action.elements else Parameter.TEXT if isinstance(each, str) else Parameter.NUMBER
            for each in action.args
        )
        verbs.setdefault(action.name, Verb(name=action.name, form=form, final=action.name == "stop"))
    return ActionSpace(list(verbs.values()))
