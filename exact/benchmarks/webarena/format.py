"""Task files in WebArena's JSON form, as WebArena, VisualWebArena and the suite `sites` write them: read strictly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from exact.errors import UsageError

Dialect = Literal["webarena", "visualwebarena"]
"""Rules of evaluation: the two benchmarks differ in tokens, quotes and addresses."""

OR = " |OR| "
"""Separator of alternatives, one of which suffices."""

Kind = Literal["string_match", "url_match", "program_html", "page_image_query"]


class TaskPart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts of a task file; unknown keys are notes of its authors."""


class Answers(TaskPart, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """References for the final answer; all that are given must hold."""

    exact_match: str | None = None
    must_include: tuple[str, ...] | None = None
    """References, each with alternatives between ` |OR| `."""
    must_exclude: tuple[str, ...] | None = None
    one_of: tuple[str, ...] | None = None
    required_values: tuple[str, ...] | None = None
    """Comparisons with a number: `>= 12`, alternatives between ` |OR| `."""
    fuzzy_match: str | tuple[str, ...] | None = None
    """References that a model compares by meaning. `N/A`: the answer gives the reason that the task is infeasible."""


class Contents(TaskPart, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """References for a part of a page; all that are given must hold."""

    exact_match: str | None = None
    must_include: tuple[str, ...] | None = None
    must_exclude: tuple[str, ...] | None = None
    required_values: tuple[str, ...] | None = None
    fuzzy_match: str | None = None


class Target(TaskPart, frozen=True, kw_only=True):
    """TaskPart of a page to compare."""

    url: str
    """Page: `last`, an address, or `func:` with a call that returns one."""
    locator: str
    """Empty for the page's source, else JavaScript beginning with `document.`, `[...document.` or `lambda:`, or `func:` with a call."""
    required_contents: Contents
    prep_actions: tuple[str, ...] = ()
    """JavaScript to run before, such as a click that unfolds something."""


class PictureQuestion(TaskPart, frozen=True, kw_only=True):
    """PictureQuestion to a vision model about each picture; one answer that contains `answer` suffices."""

    question: str
    answer: str


class ImageQuery(TaskPart, frozen=True, kw_only=True):
    """Query about the pictures of a page."""

    eval_image_url: str
    eval_image_class: str
    """CSS selector that begins with a dot; empty for all pictures."""
    eval_vqa: tuple[PictureQuestion, ...] = ()
    eval_fuzzy_image_match: str = ""
    """Pictures, one of which must be similar; ` |OR| ` between them."""
    ssim_threshold: float = 0.8


class Eval(TaskPart, frozen=True, kw_only=True):
    """Evaluation of an attempt: every kind that is named must hold."""

    eval_types: tuple[Kind, ...]
    reference_answers: Answers | None = None
    reference_url: str | None = None
    program_html: tuple[Target, ...] | None = None
    string_note: str = ""
    """Reason that the task is infeasible, if it is."""
    url_note: Literal["EXACT", "GOLD in PRED"] | None = None
    page_image_query: tuple[ImageQuery, ...] | None = None


class TaskGeolocation(TaskPart, frozen=True, kw_only=True):
    """Geolocation of the browser, in degrees."""

    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]


class TaskFile(TaskPart, frozen=True, kw_only=True):
    """Task of a file."""

    task_id: int | str
    sites: tuple[str, ...]
    require_login: bool
    storage_state: str | None
    """File of upstream's log-in; its name says at which sites."""
    start_url: str
    """Start addresses; several with ` |AND| ` between them are tabs, the first of which is active."""
    geolocation: TaskGeolocation | None
    require_reset: bool
    eval: Eval
    intent: str = ""
    intent_template: str = ""
    """Template with `{{name}}` for values of `instantiation_dict`; the goal if `intent` is empty."""
    intent_template_id: int | str | None = None
    instantiation_dict: dict[str, Any] = {}
    image: str | tuple[str, ...] | None = None
    overall_difficulty: str = ""

    @property
    def goal(self) -> str:
        """The instruction."""
        if self.intent:
            return self.intent
        text = self.intent_template
        for name, value in self.instantiation_dict.items():
            text = text.replace("{{" + name + "}}", str(value))
        return text

    @property
    def starts(self) -> tuple[str, ...]:
        """The addresses of its tabs, the active one first."""
        return tuple(part.strip() for part in self.start_url.split("|AND|"))

    @property
    def logged_in(self) -> tuple[str, ...]:
        """The sites at which it begins logged in. `require_login` does not count: upstream reads the name of the file alone."""
        return tuple(Path(self.storage_state).name.removesuffix("_state.json").split(".")) if self.storage_state else ()

    @property
    def images(self) -> tuple[str, ...]:
        return (self.image,) if isinstance(self.image, str) else self.image or ()


_NEEDED = {
    "string_match": "reference_answers",
    "url_match": "reference_url",
    "program_html": "program_html",
    "page_image_query": "page_image_query",
}


def parse(item: object, where: str) -> TaskFile:
    """Return a task from plain data. Raises UsageError with `where` it is, its id and the invalid field."""
    name = item.get("task_id", "without task_id") if isinstance(item, dict) else "that is no object"
    try:
        found = msgspec.convert(item, TaskFile)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: task {name}: {error}") from error
    for kind in found.eval.eval_types:
        if getattr(found.eval, _NEEDED[kind]) is None:
            raise UsageError(f"{where}: task {name}: `{kind}` needs the field `eval.{_NEEDED[kind]}`, and it is missing")
    if not found.eval.eval_types:
        raise UsageError(f"{where}: task {name}: `eval.eval_types` is empty: nothing would judge it")
    for field in (field for kind in found.eval.eval_types for field in _empty(found.eval, kind)):
        raise UsageError(f"{where}: task {name}: `{field}` is empty: it would judge nothing")
    if not all(found.starts):
        raise UsageError(f"{where}: task {name}: `start_url` is empty: say where it begins")
    if not found.goal:
        raise UsageError(f"{where}: task {name}: neither `intent` nor `intent_template` says what to do")
    return found


@contextmanager
def at(place: str) -> Iterator[None]:
    """Prefix a UsageError raised inside with a place: the file and task, or the field."""
    try:
        yield
    except (UsageError, ValueError) as error:
        raise UsageError(f"{place}: {error}") from error


def _empty(evaluation: Eval, kind: Kind) -> Iterator[str]:
    """Yield the fields of a kind of evaluation that hold whatever was done."""
    field, wanted = f"eval.{_NEEDED[kind]}", getattr(evaluation, _NEEDED[kind])
    if not wanted or (kind == "url_match" and _nothing(wanted)):
        yield field
    elif kind == "string_match":
        yield from _blank(wanted, field)
    elif kind == "program_html":
        for number, look in enumerate(evaluation.program_html or ()):
            if not look.url:
                yield f"{field}[{number}].url"
            yield from _blank(look.required_contents, f"{field}[{number}].required_contents")
    elif kind == "page_image_query":
        for number, query in enumerate(evaluation.page_image_query or ()):
            if not query.eval_image_url:
                yield f"{field}[{number}].eval_image_url"
            if query.eval_fuzzy_image_match and _nothing(query.eval_fuzzy_image_match):
                yield f"{field}[{number}].eval_fuzzy_image_match"


def _blank(wanted: Answers | Contents, where: str) -> Iterator[str]:
    """Yield comparisons with nothing; `exact_match` may compare with nothing, as with a field that was emptied."""
    given = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    if not given:
        yield where
    for name, value in given.items():
        if name != "exact_match" and (not value or any(map(_nothing, (value,) if isinstance(value, str) else value))):
            yield f"{where}.{name}"


def _nothing(wanted: str) -> bool:
    """Return whether one of the alternatives is empty: every answer holds it."""
    return not all(each.strip() for each in wanted.split(OR))


def read(path: Path) -> tuple[TaskFile, ...]:
    """Return the tasks of a file: a JSON list, or one object. Raises UsageError."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    tasks = tuple(parse(item, str(path)) for item in (data if isinstance(data, list) else [data]))
    for id, count in Counter(str(task.task_id) for task in tasks).items():
        if count > 1:
            raise UsageError(f"{path}: task {id}: `task_id` is there twice: each needs one of its own")
    return tasks
