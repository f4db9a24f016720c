"""A lesson as a record: what all reflectors write the same way, and the words it is found by."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.parse

import msgspec

from exact.action import Action
from exact.context import Context, Reflection
from exact.observation import Observation
from exact.reflection.base import Kind, Surprise

WORDS = 100
"""The longest lesson."""
STATE = 1200
"""Characters of an observation that are kept and compared."""
NAME = 60
"""Characters of an element's name that are kept in a label."""

_REFERENCE = re.compile(r'"(?:[^"\\]|\\.)*"|\[([\w:.-]+)\]')


def lesson(
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
    """The record of a lesson's text (cut to WORDS words) about a surprise in the state of `context`.

    A policy lesson is of the state that the step was taken in; one for the value function is of what it had to judge: the state that came,
    or where the step ended the episode the last one before. Its id is a digest of what it says and of the task without seed, so that saying
    it again, also by a resumed run, adds nothing.
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
    )
    return msgspec.structs.replace(record, id=content_id(record))


def confidence(reflection: Reflection) -> float:
    """How sure the outcome v behind a lesson is, in [0, 1]: |2 v - 1| where the agent judged it, 0 where it did not come to that.

    A benchmark's is sure. A lesson with neither outcome nor source, such as one written by hand, is as sure as who put it there: 1.
    """
    if reflection.outcome is None:
        return 0.0 if reflection.outcome_source == "judge" else 1.0
    return 1.0 if reflection.outcome_source == "evaluator" else min(1.0, abs(2 * reflection.outcome - 1))


def content_id(reflection: Reflection) -> str:
    """Digest of what a reflection says and where it holds; not of when, by whom or in which run it was written."""
    r = reflection
    said = msgspec.json.encode([r.kind, r.text, r.instruction, r.state, r.action, task_without_seed(r.task)])
    return hashlib.blake2b(said, digest_size=16).hexdigest()


def outcome_id(reflection: Reflection) -> str:
    """Another id for a reflection: of what it says and of how that ended."""
    r = reflection
    return hashlib.blake2b(msgspec.json.encode([r.id, r.outcome, r.outcome_source]), digest_size=16).hexdigest()


def action_label(action: Action | str, observation: Observation) -> str:
    """An action's canonical text with each element's role and name in place of its id: `click button "Submit"`.

    An id that the observation does not have stays. A name longer than NAME is cut; the name is data from the page.
    """

    def named(match: re.Match[str]) -> str:
        element = observation.element(match[1]) if match[1] else None
        if element is None:
            return match[0]
        return f"{element.role} {quoted(element.name, NAME)}" if element.name.strip() else element.role

    return _REFERENCE.sub(named, str(action))


def site(context: Context) -> str:
    """The host that the state belongs to, without port; empty where there is none."""
    for url in (context.observation.url, context.task.start):
        try:
            if host := urllib.parse.urlsplit(url).hostname:
                return host
        except ValueError:
            continue
    return ""


def task_without_seed(id: str) -> str:
    """A task's name for all its seeds: `miniwob/click-test?seed=3` -> `miniwob/click-test`."""
    return id.partition("?seed=")[0]


def shortened(text: str, limit: int = STATE) -> str:
    """The first lines of a text that fit in `limit` characters; a first line that does not is cut. Idempotent."""
    if len(text) <= limit:
        return text
    cut = text.rfind("\n", 0, limit + 1)
    return text[: cut if cut > 0 else limit]


def clipped(text: str, words: int) -> str:
    """The first `words` words of a text, and a mark if there were more; one space between words."""
    parts = text.split()
    return " ".join(parts) if len(parts) <= words else " ".join(parts[:words]) + "…"


def quoted(text: str, limit: int) -> str:
    """Text from a page as data: one line, a JSON string that it cannot leave, of at most `limit` characters of it."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return json.dumps(line if len(line) <= limit else line[: limit - 1].rstrip() + "…", ensure_ascii=False)
