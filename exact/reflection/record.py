"""Reflections as records: the fields that all reflectors write alike, and the text that they are retrieved by.

Reflections with their status and use in the memory.
"""

from __future__ import annotations

import hashlib
import json
import re
import urllib.parse
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from exact.action import Action
from exact.context import Context, Reflection
from exact.observation import LABEL_NAME, Observation, places
from exact.reflection.base import Kind, Surprise
from exact.text import injections

WORDS = 100
"""Most words of a reflection."""
STATE = 1200
"""Characters of an observation that are stored and compared."""
_PLACE = re.compile(r"""("(?:[^"\\]|\\.)*")|(?: \d+ of \d+)?(?: (?:under|before) "[^"]*")|(?: \d+ of \d+)""")
_REFERENCE = re.compile(r'"(?:[^"\\]|\\.)*"|\[([\w:.-]+)\]')


def reflection_record(
    context: Context,
    surprise: Surprise,
    kind: Kind,
    text: str,
    *,
    expected: str = "",
    real: str = "",
    run: str = "",
    model: str = "",
    prompt: str = "",
    created: float = 0.0,
    tainted: bool = True,
) -> Reflection:
    """Return the record of a reflection's text (cut to WORDS words) about a surprise in the state of `context`.

    A reflection for the policy belongs to the state in which the step was taken. One for the value function belongs to the state that it
    had to evaluate: the resulting state, or the last one before if the step ended the episode. The id is a digest of the text and of the
    task without seed, so that the same reflection, also from a resumed run, is stored once.
    """
    step = surprise.step
    judged = surprise.after if kind == "value" and surprise.after is not None else step.observation
    record = Reflection(
        id="",
        kind=kind,
        text=clipped(text, WORDS),
        instruction=context.instruction,
        state=shortened(judged.text),
        fingerprint=judged.fingerprint,
        action=step.action.key,
        action_label=action_label(step.action, step.observation),
        expected=expected,
        real=real,
        surprise=surprise.surprise,
        task=context.task.id,
        template=str(context.task.metadata.get("template") or ""),
        site=site(context),
        run=run,
        node=surprise.node,
        outcome=surprise.real,
        model=model,
        prompt=prompt,
        created=created,
        tainted=tainted,
        marks=tuple(dict.fromkeys(mark for seen in (step.observation, surprise.after) if seen is not None for mark in marks(seen))),
    )
    return msgspec.structs.replace(record, id=content_id(record))


def marks(observation: Observation) -> tuple[str, ...]:
    """Return the findings of the injection detectors in an observation: the rules', then a model's if asked; empty if there are none."""
    found = injections(observation.title, observation.url, observation.text, observation.html or "")
    return (*found, *observation.marked)


def confidence(reflection: Reflection) -> float:
    """Return the certainty of the outcome v behind a reflection, in [0, 1]: |2 v - 1| if the agent evaluated it, else 0.

    A benchmark's outcome has certainty 1. So has a reflection with neither outcome nor source, such as one written by hand.
    """
    if reflection.outcome is None:
        return 0.0 if reflection.outcome_source == "judge" else 1.0
    return 1.0 if reflection.outcome_source == "evaluator" else min(1.0, abs(2 * reflection.outcome - 1))


def content_id(reflection: Reflection) -> str:
    """Return the digest of a reflection's text and situation, independent of its time, author and run."""
    r = reflection
    said = msgspec.json.encode([r.kind, r.text, r.instruction, r.state, r.action, task_without_seed(r.task)])
    return hashlib.blake2b(said, digest_size=16).hexdigest()


def outcome_id(reflection: Reflection) -> str:
    """Return the digest of a reflection's id and outcome."""
    r = reflection
    return hashlib.blake2b(msgspec.json.encode([r.id, r.outcome, r.outcome_source]), digest_size=16).hexdigest()


def action_label(action: Action | str, observation: Observation) -> str:
    """Return an action's canonical text with each element's role and name in place of its id: `click button "Submit"`.

    If others have that role and name, or it has no name, its place follows: `fill textbox 2 of 3 under "Password" "Ann"`. No two actions
    of an observation have one label. An id that the observation does not have stays. A name longer than LABEL_NAME is cut; names and
    places are data from the page.
    """
    return _labelled(action, observation, places(observation.elements, _REFERENCE.findall(str(action))))


def action_kind(action: Action | str, observation: Observation) -> str:
    """Return an action's label without places: actions on elements of one role and name are of one kind."""
    return _labelled(action, observation, {})


def without_places(label: str) -> str:
    """Return an action's label without places."""
    return _PLACE.sub(lambda found: found[1] or "", label)


def _labelled(action: Action | str, observation: Observation, known: Mapping[str, str]) -> str:
    def named(match: re.Match[str]) -> str:
        element = observation.element(match[1]) if match[1] else None
        if element is None:
            return match[0]
        name = quoted(element.name, LABEL_NAME) if element.name.strip() else ""
        return " ".join(filter(None, (element.role, name, known.get(element.id, ""))))

    return _REFERENCE.sub(named, str(action))


def site(context: Context) -> str:
    """Return the host of the state, without port; empty if there is none."""
    for url in (context.observation.url, context.task.start):
        try:
            if host := urllib.parse.urlsplit(url).hostname:
                return host
        except ValueError:
            continue
    return ""


def task_without_seed(id: str) -> str:
    """Return the name of a task without its seed: `miniwob/click-test?seed=3` -> `miniwob/click-test`."""
    return id.partition("?seed=")[0]


def shortened(text: str, limit: int = STATE) -> str:
    """Return the first lines of a text that fit in `limit` characters; a longer first line is cut. Idempotent."""
    if len(text) <= limit:
        return text
    cut = text.rfind("\n", 0, limit + 1)
    return text[: cut if cut > 0 else limit]


def clipped(text: str, words: int) -> str:
    """Return the first `words` words of a text, with one space between them, and an ellipsis if there are more."""
    parts = text.split()
    return " ".join(parts) if len(parts) <= words else " ".join(parts[:words]) + "…"


def quoted(text: str, limit: int) -> str:
    """Return text from a page as data: one line, as a JSON string of at most `limit` characters of it."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return json.dumps(line if len(line) <= limit else line[: limit - 1].rstrip() + "…", ensure_ascii=False)


Status = Literal["kept", "forgotten", "evicted", "merged", "quarantined"]
STATUSES: tuple[Status, ...] = get_args(Status)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored reflection. Only one with the status `kept` is retrieved; the others can be restored."""

    seq: int
    """Number in order of writing, from 1."""
    reflection: Reflection
    status: Status = "kept"
    note: str = ""
    """Reason of its status, or the id that it was merged into."""
    born: int = 0
    """Revision of the memory in which it was written."""
    retrieved: int = 0
    """Number of attempts that it was shown in."""
    helped: int = 0
    """Number of those attempts that succeeded."""
    hurt: int = 0
    """Number of those attempts that failed. The outcome of the others is unknown."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a reflection was shown in."""

    attempt: str
    """Run, task and a digest of the journal's path."""
    success: bool | None
    """Success of the attempt; None: unknown."""


class Damaged(Exception):
    """Raised when data does not belong to a memory."""
