"""The way of an earlier run: the actions that it committed, with the states before them, to be carried out again without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from exact.action import Action
from exact.context import Evaluation
from exact.environments.base import PersonQuestion, SideEffect
from exact.errors import UsageError, unknown
from exact.observation import Observation
from exact.reflection.record import action_label

if TYPE_CHECKING:
    from exact.runs.journal.state import AttemptState
    from exact.runs.journal.store import Blobs

_BY_PEOPLE = ("person", "ask_user")
"""Verbs whose outcome came from a person. A way ends before them."""
_OWN = ("sandbox", "recording")
"""Places that a write may reach without changing anything outside."""
TYPING = ("fill", "select", "type")
"""Verbs that type or choose a text."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


class WayStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action that was carried out in the live environment."""

    action: str
    """Text of the action, with the ids of elements in the observation before it."""
    observation: str
    """Blob of the observation before it."""
    fingerprint: str
    """Fingerprint of the state before it."""
    effects: tuple[SideEffect, ...] = ()
    """Side effects of the step."""

    @property
    def wrote(self) -> bool:
        """Whether the step changed something outside the page."""
        return any(effect.is_write for effect in self.effects)


class WriteKey(msgspec.Struct, frozen=True):
    """The part of a request that a yes is bound to, as journals record it."""

    method: str
    url: str
    fields: tuple[str, ...]
    """Names of the fields in the body, sorted; of nested ones those of their parents."""

    def __str__(self) -> str:
        return f"{self.method} {self.url}" + (f" with {', '.join(self.fields)}" if self.fields else "")


class Way(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way of one attempt, from the start of its task to its end."""

    run: str
    """Folder of the earlier run."""
    instruction: str
    """Goal of the earlier attempt."""
    steps: tuple[WayStep, ...]
    end: str = ""
    """Blob of the last observation; empty if the episode ended without one."""
    answer: str = ""
    """JSON schema of the earlier answer's object; empty without one."""
    data: str = ""
    """That object, in JSON."""
    evaluation: Evaluation | None = None
    """The agent's evaluation of the end."""
    outside: bool = True
    """Whether the writes of the way were not undone by a reset."""
    approved: bool = False
    """Whether a person agreed to the listed writes."""
    texts: dict[str, str] = {}
    """Texts in place of those that the earlier run typed, by the earlier ones."""

    @property
    def writes(self) -> tuple[tuple[int, WriteKey], ...]:
        """The requests that changed something outside, in order, each with the index of the step that caused it."""
        if not self.outside:
            return ()
        effects = ((index, effect) for index, step in enumerate(self.steps) for effect in step.effects)
        return tuple((i, self._key(each)) for i, each in effects if each.is_write and each.reach not in _OWN)

    @property
    def drafts(self) -> dict[WriteKey, int]:
        """The requests that a page sent by itself a while after a step, such as a draft, each with the index of the first such step."""
        late = ((self._key(each), i) for i, step in enumerate(self.steps) for each in step.effects if each.is_write and each.late)
        return dict(reversed(list(late)))

    @property
    def allowed(self) -> Counter[WriteKey]:
        """Number of times that each listed request may be sent."""
        return Counter(key for _, key in self.writes) if self.approved else Counter()

    def requests(self, index: int) -> Counter[WriteKey]:
        """Return the writes of a step, without those that the page sent a while after it."""
        return Counter(self._key(each) for each in self.steps[index].effects if each.is_write and not each.late)

    def sends(self, index: int, effects: tuple[SideEffect, ...]) -> bool:
        """Return whether the writes of another step, sent or blocked, are the writes of a step of the way."""
        wanted = self.requests(index)
        return bool(wanted) and wanted == Counter(key_of(each) for each in effects if each.is_blocked or each.is_write)

    def replaced(self, text: str) -> str:
        """Return a text with the new texts in place of the earlier ones, as whole words."""
        for old, new in self.texts.items():
            text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", _literal(new), text)
        return text

    def typed(self, action: Action) -> list[str | float]:
        """Return the arguments of an action of the way, with the new texts in place of the earlier ones."""
        if action.name == "stop":
            return [self.replaced(str(each)) for each in action.args]
        return [self.texts.get(each, each) if isinstance(each, str) else each for each in action.args]

    def expected(self, seen: Observation) -> Observation:
        """Return an earlier observation as it is expected with the new texts."""
        if not self.texts:
            return seen
        elements = tuple(
            msgspec.structs.replace(each, name=self.replaced(each.name), value=each.value and self.replaced(each.value))
            for each in seen.elements
        )
        return msgspec.structs.replace(seen, elements=elements, url=self._address(seen.url))

    def _key(self, effect: SideEffect) -> WriteKey:
        return key_of(msgspec.structs.replace(effect, url=self._address(effect.url)))

    def _address(self, url: str) -> str:
        for old, new in self.texts.items():
            for form in (old, quote(old, safe=""), quote(old)):
                url = re.sub(rf"(?<![\w%]){re.escape(form)}(?!\w)", _literal(quote(new, safe="")), url)
        return url


def _literal(text: str) -> str:
    """Return a text as a replacement of a pattern."""
    return text.replace("\\", r"\\")


Ways = Mapping[str, "tuple[Way, Blobs]"]
"""Ways of earlier runs that are carried out again, by the id of the task, each with the blobs of its run."""


def key_of(sent: SideEffect | PersonQuestion) -> WriteKey:
    """Return the part of a request that a yes is bound to."""
    names = {re.split(r"[.\[]", name)[0] for name in sent.fields if name != "body"}
    return WriteKey(sent.method, sent.url, tuple(sorted(names)))


def way_of(state: AttemptState, run: str, schema: str) -> Way:
    """Return the way of an ended attempt. `schema`: JSON schema of its answer. Raises UsageError if there is no way."""
    live, nodes = state.live, state.search.tree.nodes
    if live.ended is None or not live.carried_out:
        raise UsageError(f"{run} has no way: its attempt {'did not end' if live.ended is None else 'did nothing'}; name another run")
    if live.scored is not None and not live.scored.score.success:
        raise UsageError(f"{run} has no way: its attempt was scored {live.scored.score.value:g}; name a run that solved the task")
    steps, whole = list[WayStep](), True
    for id, step in zip(live.path, live.carried_out, strict=False):
        if step.changed:
            continue  # time passed
        if step.action.partition(" ")[0] in _BY_PEOPLE:
            whole = False
            break
        before = nodes[id]
        steps.append(WayStep(action=step.action, observation=before.observation, fingerprint=before.fingerprint, effects=step.effects))
    end = nodes[live.path[-1]]
    evaluation = live.judged.evaluation if whole and live.judged is not None and not live.judged.evaluation.unjudged else None
    data = live.extracted.data if whole and live.extracted is not None and not live.extracted.partial else ""
    return Way(
        run=run, instruction=live.instruction, steps=tuple(steps), end=end.observation if whole else "",
        answer=schema, data=data, evaluation=evaluation, outside=not live.isolated,
    )  # fmt: skip


def texts_of(action: str) -> list[str]:
    """Return the texts that an action types or chooses."""
    if action.partition(" ")[0] not in TYPING:
        return []
    return [str(msgspec.json.decode(f'"{each}"')) for each in _QUOTED.findall(action)]


def typed_fields(way: Way, blobs: Blobs) -> dict[str, str]:
    """Return the texts that a way typed or chose, by the names of their fields. Raises JournalError."""
    found = dict[str, str]()
    for step in way.steps:
        if not (texts := texts_of(step.action)):
            continue
        seen = blobs.get_observation(step.observation)
        id = re.match(r"\w+ \[([^\]]+)\]", step.action)
        focused = next((each for each in seen.elements if "focused" in each.states), None)
        element = seen.element(id[1]) if id else focused
        if element is not None and element.name.strip():
            found[element.name] = texts[-1]
    return found


def with_texts(way: Way, blobs: Blobs, wanted: Mapping[str, str]) -> Way:
    """Return a way that types other texts. `wanted`: texts by the names of their fields. Raises UsageError for an unknown field."""
    known = typed_fields(way, blobs)
    if wanted and not known:
        raise UsageError(f"there is no variable {min(wanted)!r}: the earlier run typed into no field that has a name")
    by_name = {name.casefold(): name for name in known}
    texts = dict[str, str]()
    for name, new in wanted.items():
        if name.casefold() not in by_name:
            raise unknown("variable", name, known, way_out="(a variable is the name of a field that the earlier run typed into)")
        texts[known[by_name[name.casefold()]]] = new
    return msgspec.structs.replace(way, texts=texts)


def listed(way: Way, blobs: Blobs) -> Iterator[str]:
    """Yield a line for each write of a way: the request, and the action that sent it. Raises JournalError."""
    for index, key in way.writes:
        step = way.steps[index]
        yield f"{key}, by step {index + 1}: {action_label(step.action, blobs.get_observation(step.observation))}"


def copied(way: Way, source: Blobs, target: Blobs) -> Way:
    """Copy the observations of a way into another run folder. Return the way with their names there. Raises JournalError."""
    names = {name: target.put(source.get(name)) for name in {way.end, *(step.observation for step in way.steps)} - {""}}
    steps = tuple(msgspec.structs.replace(step, observation=names[step.observation]) for step in way.steps)
    return msgspec.structs.replace(way, steps=steps, end=names.get(way.end, ""))
