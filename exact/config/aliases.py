"""Configuration keys and values of earlier versions, and their present names.

This is the only table of them. It is applied to plain data before types are checked, so that recorded runs and older files still read.

Base class and value types of configuration sections.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec

from exact.errors import UsageError

T = TypeVar("T")

KEYS: Mapping[str, str] = MappingProxyType(
    {
        "search.enact": "search.commit_by",
        "search.worlds": "search.environments",
        "search.doubt": "search.disagreement_bonus",
        "search.contest": "search.reevaluations",
        "search.judgements": "search.evaluations",
        "browser.tape": "browser.recording",
        "browser.place": "browser.geolocation",
    }
)
"""Renamed keys by their full path, old to new. A key of a section in a list, such as `arms`, has the path of the list before it."""

_LEXICAL = {"builtin": "lexical"}
VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "search.enact": {"enact": "replay", "promote": "fork"},
        **dict.fromkeys(("policy.kind", "arms.kind", "value.kind", "value.members.kind", "value.members.members.kind"), _LEXICAL),
    }
)
"""Renamed values, old to new, by the old path of their key."""

_POLICY: Mapping[str, tuple[str, object]] = MappingProxyType(
    {
        "temperature": ("set search.temperature", 1.0),
        "unseen": ("set policy.samples", 1.0),
        "most": ("set policy.samples", 32),
        "repair": ("leave it out: unusable answers are sent back once", True),
        "mend": ("leave it out: unusable answers are sent back once", True),
        "prior_floor": ("leave it out: the lowest prior is 0.02", 0.02),
    }
)
"""Removed keys of a policy, with their replacements and the values that are followed."""


_PLAIN = ("policy.plain", "arms.plain", "value.plain", "value.members.plain", "value.members.members.plain")


def _of_policies(keys: Mapping[str, T]) -> dict[str, T]:
    """Return keys of a policy by their full paths."""
    return {f"{section}.{key}": value for section in ("policy", "arms") for key, value in keys.items()}


REMOVED: Mapping[str, str] = MappingProxyType(
    {
        **_of_policies({key: instead for key, (instead, _) in _POLICY.items()}),
        "reflection.add_q": "lower reflection.threshold",
        "reflection.value_similarity": "set reflection.similarity, which counts for values too",
        "browser.geolocation.accuracy": "leave it out: it is 10 metres",
        **dict.fromkeys(_PLAIN, "leave it out: with view.marks the marked screenshot is shown alone"),
        "browser.page_elements": "leave it out: a page is shown whole up to 40,000 elements",
        "browser.page_characters": "leave it out: a page is shown whole up to 4,000,000 characters",
        "search.c_last": "set search.c, which is constant",
        "search.c_schedule": "set search.c, which is constant",
        "search.first_play_reduction": "set search.first_play to parent or zero",
        "search.normalise": "set search.c to the range of your values, or map them by value.calibration",
        "search.noise_floor": "set search.c to the range of your values, or map them by value.calibration",
        "search.collision": "leave it out: workers pass over each other's states",
        "search.mix": "set search.backup to mean or max",
        "search.branching_decay": "set search.k, which counts at each depth",
        "search.widening_power": "set search.widening, the scale of the square root of the visits",
        "search.early": "leave it out, or set search.enough",
        "search.subtree": "set search.iterations to a smaller number",
        "search.parallel": "leave it out: a selection in flight counts as a visit without a value",
        "search.z": "set search.final, whose lower_bound is one standard error below Q",
        "search.noise": "set search.final, whose lower_bound measures the deviation of evaluations",
    }
)
"""Removed keys by their full path, and their replacements: the end of the sentence `'search.x' was removed: ...`."""

NEUTRAL: Mapping[str, object] = MappingProxyType(
    {
        **_of_policies({key: neutral for key, (_, neutral) in _POLICY.items()}),
        "reflection.add_q": False,
        "reflection.value_similarity": None,
        "browser.geolocation.accuracy": 10.0,
        **dict.fromkeys(_PLAIN, False),
        "browser.page_elements": 40_000,
        "browser.page_characters": 4_000_000,
        "search.c_last": None,
        "search.c_schedule": "constant",
        "search.first_play_reduction": 0.25,
        "search.normalise": "none",
        "search.noise_floor": 0.05,
        "search.collision": "mask",
        "search.mix": 0.5,
        "search.branching_decay": 1.0,
        "search.widening_power": 0.5,
        "search.early": False,
        "search.subtree": False,
        "search.parallel": "counts",
        "search.z": 1.0,
        "search.noise": 0.3,
    }
)
"""Values of removed keys that today's searches follow. A run with another value opens, and is not resumed."""

REMOVED_VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "search.first_play": {"reduced": "set search.first_play to parent or zero"},
        "search.backup": {"mixed": "set search.backup to mean or max"},
        "search.candidates": {"uniform": "set search.candidates to best or sampled"},
    }
)
"""Removed values by the path of their key, and their replacements, as in REMOVED."""


def current(data: Mapping[Any, Any], section: str = "", *, announce: bool = True, recorded: bool = False) -> dict[Any, Any]:
    """Return configuration data with today's keys and values.

    `section` is the dotted path of the section that `data` is; empty for a whole configuration. With `announce`, each renamed key is
    reported on stderr, once a process. `recorded`: the data is that of a run, whose removed keys are left out. Raises UsageError if a
    user's file has a removed key or value, or if the old and the new name of a key are both given.
    """
    where = f"{section}." if section else ""
    found: dict[Any, Any] = {}
    for key, value in data.items():
        path = f"{where}{key}"
        if path in REMOVED and recorded:
            continue
        if path in REMOVED:
            raise UsageError(f"configuration key {path!r} was removed: {REMOVED[path]}")
        if isinstance(value, str) and value in REMOVED_VALUES.get(path, {}):
            raise UsageError(f"value {value!r} of configuration key {path!r} was removed: {REMOVED_VALUES[path][value]}")
        name, known = KEYS.get(path), VALUES.get(path, {})
        changed = known.get(value, value) if isinstance(value, str) else value
        if name is None:
            found[key] = _nested(changed, path, announce, recorded)
            if announce and changed is not value:
                _report(f"{path} {value}", str(changed), "")
            continue
        renamed = name.removeprefix(where)
        if renamed in data:
            raise UsageError(f"configuration key {path!r} is now {name!r}, and both are given: keep {name!r}")
        found[renamed] = _nested(changed, path, announce, recorded)
        if announce:
            _report(path, name, "" if found[renamed] == value else f" ({value} is now {found[renamed]})")
    if not section:
        share_view(found, announce=announce)
    return found


VIEW = ("images", "history", "observation_tokens", "marks", "text", "tree", "html", "image_tokens")
"""Keys that policies, value functions and the reflector had of their own, and that are in `view` now."""
_SHOWN = frozenset({"llm", "single_debate", "debate", "rubric", "comparative", "logprob", "trained"})
"""Kinds of policies, value functions and reflectors that show states to a model."""


def _own_views(data: Mapping[Any, Any], path: str) -> Iterator[tuple[str, dict[Any, Any], bool]]:
    """Yield the sections of one path that had a view of their own, members included, and whether each shows states to a model."""
    section = data.get(path)
    for part in section if isinstance(section, list | tuple) else (section,):
        if isinstance(part, dict):
            yield path, part, str(part.get("kind")) in _SHOWN or part.get("comparison") == "llm"
            for name, member, shows in _own_views(part, "members"):
                yield f"{path}.{name}", member, shows


def share_view(data: dict[Any, Any], *, announce: bool = True, recorded: bool = False) -> dict[str, Any]:
    """Move the views of policies, value functions and reflector to the section `view` of data under today's names.

    Of a recorded run, the view is that of the first section that shows states to a model. Return what the others had else, by its path.
    Raises UsageError if a user's file gives one key several values.
    """
    sections = [each for path in ("policy", "arms", "value", "reflection") for each in _own_views(data, path)]
    sections.sort(key=lambda each: not each[2])
    given = data.get("view") or {}
    found, lost = dict[str, Any](), dict[str, Any]()
    for path, section, shows in sections:
        for key in [key for key in VIEW if key in section]:
            value = section.pop(key)
            is_other = found.setdefault(key, value) != value
            if recorded:
                lost |= {f"{path}.{key}": value} if is_other and shows else {}
            elif is_other or (isinstance(given, dict) and key in given):
                raise UsageError(f"configuration key '{path}.{key}' is now 'view.{key}', which has another value too: keep 'view.{key}'")
            elif announce:
                _report(f"{path}.{key}", f"view.{key}", "")
        if not section and path in data:
            del data[path]
    if found:
        data["view"] = {**(given if isinstance(given, dict) else {}), **found}
    return lost


def without_removed(data: Mapping[Any, Any], section: str = "") -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return a run's configuration data without the settings of NEUTRAL and REMOVED_VALUES, and those that no search follows, by path."""
    found, lost = dict[Any, Any](), dict[str, Any]()

    def nested(value: object, path: str) -> object:
        if isinstance(value, Mapping):
            below, left = without_removed(value, path)
            lost.update(left)
            return below
        return [nested(each, path) for each in value] if isinstance(value, list | tuple) else value

    for key, value in data.items():
        path = f"{section}.{key}" if section else f"{key}"
        if path in NEUTRAL:
            lost |= {path: value} if value != NEUTRAL[path] else {}
        elif isinstance(value, str) and value in REMOVED_VALUES.get(path, {}):
            lost[path] = value
        else:
            found[key] = nested(value, path)
    return found, lost if section else lost | share_view(found, recorded=True)


def replacement(path: str, value: object) -> str:
    """Return the way out from a removed setting: a key, a value of a key, or a view of its own."""
    if path in REMOVED:
        return REMOVED[path]
    words = REMOVED_VALUES.get(path, {})
    return words[value] if isinstance(value, str) and value in words else f"set view.{path.rpartition('.')[2]}, which is one for all"


def _nested(value: object, path: str, announce: bool, recorded: bool) -> object:
    if isinstance(value, Mapping):
        return current(value, path, announce=announce, recorded=recorded)
    if isinstance(value, list | tuple):
        return [current(each, path, announce=announce, recorded=recorded) if isinstance(each, Mapping) else each for each in value]
    return value


@functools.cache
def _report(old: str, new: str, value: str) -> None:
    """Write one line on stderr, once a process for each key and value."""
    sys.stderr.write(f"exact: {old} is now {new}{value}\n")


AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
LONGEST = 30 * 24 * 3600.0
"""Seconds of the longest time limit: a month."""
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: frozen, by keyword, without unknown keys."""
