"""The library of prompts: one template per file, with its name, version and inputs at the top.

A template defines two macros: `system()`, which differs between states of a task only at its end so that servers can cache it, and
`user()`. Inputs are values, never templates: text from a page or a model is not rendered. A user's folder replaces the package's prompts
file by file; the functions of this module use the folder that `use_folder` selects.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.errors import UsageError, unknown
from exact.models.base import Image, Message, Text
from exact.prompts.fence import fence, first_words, one_line, record_cuts
from exact.reflection.record import marks
from exact.untrusted import parse_yaml
from exact.views.view import observation_text, show_changes, summarise_steps

if TYPE_CHECKING:
    import jinja2

    from exact.context import Context

_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<template>.*)\Z", re.S)
_USES = re.compile(r"""\{%-?\s*(?:from|import|include)\s+"([\w.]+)\"""")


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The front matter of a prompt's file."""

    name: str
    version: int
    inputs: tuple[str, ...]
    """Names of the required inputs."""
    options: dict[str, Any] = {}
    """Values of the inputs that a caller may leave out."""
    example: dict[str, Any] = {}
    """Inputs to render it with, unless `exact.prompts.example` has them."""
    source: str = ""
    """Path of the file. Empty for the package's prompts."""
    digest: str = ""
    """First digits of the SHA-256 of the file and of the files that it uses."""

    @property
    def id(self) -> str:
        """Name, version and digest, such as `policy@1:3fa9c1`."""
        return f"{self.name}@{self.version}:{self.digest}"


class Rendered(msgspec.Struct, frozen=True):
    """A prompt with its inputs filled in."""

    id: str
    system: str
    user: str
    cut: tuple[str, ...] = ()
    """One note for each input that the prompt's own limits cut."""

    def messages(self, *images: Image | bytes) -> tuple[Message, ...]:
        """Return the two messages to send. Images follow the user's text; images given as bytes are PNG."""
        pictures = (Image(image) if isinstance(image, bytes) else image for image in images)
        return (Message("system", (Text(self.system),)), Message("user", (Text(self.user), *pictures)))


def shown_whole(context: Context, most: int) -> int:
    """Return the number of steps before the last state that a prompt shows whole: those after it are shown by at most `most` changes."""
    states = [*(taken.observation for taken in context.history), context.observation]
    found, ended = 0, context.terminated or context.unseen
    for place, (before, now) in enumerate(itertools.pairwise(states), 1):
        if place == len(context.history) and ended:
            continue
        same = observation_text(before) == observation_text(now)
        if place - found > most or marks(now) or not (same or show_changes(before, now, "before")):
            found = place
    return found


class Library:
    """The prompts of the package, replaced by those of a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the library.

        Raises UsageError if `folder` is not a folder.
        """
        if folder is not None and not folder.is_dir():
            raise UsageError(f"{folder} is not a folder: create it, or leave `prompts` empty")
        self._folder = folder
        self._prompts: dict[str, Prompt] = {}

    def names(self) -> list[str]:
        """Return the names of all prompts, sorted."""
        files = {file.name for file in _package_files()} | ({path.name for path in self._folder.glob("*.j2")} if self._folder else set())
        return sorted(file.removesuffix(".j2") for file in files if not file.startswith("_"))

    def prompt(self, name: str) -> Prompt:
        """Return a prompt's description.

        Raises UsageError for an unknown name and for invalid front matter.
        """
        if name not in self._prompts:
            self._prompts[name] = self._described(name)
        return self._prompts[name]

    def takes(self, name: str) -> tuple[str, ...]:
        """Return the inputs that callers may give to a prompt: those of the package's prompt of that name, if there is one.

        Raises UsageError.
        """
        wanted = self._wanted(self.prompt(name))
        return (*wanted.inputs, *wanted.options)

    def text(self, name: str) -> str:
        """Return the text of a prompt's file.

        Raises UsageError for an unknown name.
        """
        self.prompt(name)
        return self._text(f"{name}.j2")

    def render(self, name: str, **inputs: object) -> Rendered:
        """Return a prompt rendered with the inputs.

        Raises UsageError for an unknown prompt and for a user's template that fails, and TypeError if the inputs differ from the declared
        ones.
        """
        import jinja2

        described = self.prompt(name)
        wanted = self._wanted(described)
        if set(inputs) - set(wanted.options) != set(wanted.inputs):
            raise TypeError(f"prompt {name} takes {', '.join(wanted.inputs)}, got {', '.join(inputs)}")
        inputs = wanted.options | inputs
        try:
            with record_cuts() as cut:
                module = self._templates.get_template(f"{name}.j2").make_module(inputs)
                parts = {part: str(getattr(module, part)()).strip() for part in ("system", "user")}
        except UsageError:
            raise
        except Exception as error:  # a user's template may raise anything
            where = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise UsageError(f"prompt {name} ({described.source or 'the package'}{where}) cannot be rendered: {error}") from error
        return Rendered(described.id, parts["system"], parts["user"], tuple(dict.fromkeys(cut)))

    def part(self, name: str, *values: object) -> str:
        """Return the text of a macro of `_parts.j2` for some values: `seen`, `steps`, ...

        Raises UsageError if it fails.
        """
        import jinja2

        try:
            return str(getattr(self._templates.get_template("_parts.j2").module, name)(*values))
        except (jinja2.TemplateError, AttributeError) as error:
            raise UsageError(f"{self._own('_parts.j2') or '_parts.j2'}: {name} cannot be rendered: {error}") from error

    def _described(self, name: str) -> Prompt:
        if name not in self.names():
            raise unknown("prompt", name, self.names())
        own = self._own(f"{name}.j2")
        try:
            front = msgspec.convert(parse_yaml(_split_front_matter(self._text(f"{name}.j2"))[0], "its head"), Prompt)
        except (UsageError, msgspec.ValidationError) as error:
            details = " ".join(str(error).split())
            raise UsageError(
                f"{own or name} does not begin with ---, name, version, inputs, --- ({details}): see `exact list prompts policy`"
            ) from error
        if front.name != name:
            raise UsageError(f"{own or name} has the name {front.name!r}: write {name!r}, as its file is named")
        digest = hashlib.sha256("".join(self._texts(f"{name}.j2")).encode()).hexdigest()
        found = msgspec.structs.replace(front, digest=digest[:6], source=str(own or ""))
        wanted = self._wanted(found)
        if strange := {*found.inputs, *found.options} - {*wanted.inputs, *wanted.options}:
            raise UsageError(f"{own} takes {', '.join(sorted(strange))}: {name} is given {', '.join(wanted.inputs)}")
        return found

    def _wanted(self, described: Prompt) -> Prompt:
        """Return the prompt that says which inputs callers give: the package's of that name, otherwise the prompt itself."""
        if self._folder is not None and described.source and described.name in _PACKAGE.names():
            return _PACKAGE.prompt(described.name)
        return described

    @functools.cached_property
    def _templates(self) -> jinja2.Environment:
        import jinja2

        templates = jinja2.Environment(
            loader=jinja2.FunctionLoader(lambda file: _split_front_matter(self._text(file))[1]),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # the output is plain text for a model
        )
        templates.filters.update(
            fenced=fence,
            line=one_line,
            brief=first_words,
            summary=summarise_steps,
            marks=marks,
            changes=show_changes,
            whole=shown_whole,
            observed=observation_text,
        )
        return templates

    def _own(self, file: str) -> Path | None:
        path = self._folder / file if self._folder else None
        return path if path is not None and path.is_file() else None

    def _text(self, file: str) -> str:
        own = self._own(file)
        if own is None:
            try:
                return _package_text(file)
            except FileNotFoundError:
                raise UsageError(f"there is no template {file}, which a prompt in {self._folder} uses: write it there") from None
        try:
            return own.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{own} cannot be read: {error}") from error

    def _texts(self, file: str) -> Iterator[str]:
        """Yield the text of the file and of the files that it uses."""
        front, template = _split_front_matter(self._text(file))
        yield front + template
        for used in _USES.findall(template):
            yield from self._texts(used)


_PACKAGE = Library()
_USED: ContextVar[Library] = ContextVar("prompts", default=_PACKAGE)


PAST = {"v0.1": Path(__file__).parent / "v0_1"}
"""Folders of the prompts of earlier releases, by release."""


@contextmanager
def use_folder(folder: str | Path) -> Iterator[Library]:
    """Use, inside the context, a folder's prompts in place of the package's. Empty: the package's alone. `v0.1`: those of that release.

    Raises UsageError.
    """
    library = Library(PAST.get(str(folder), Path(folder))) if folder else _PACKAGE
    token = _USED.set(library)
    try:
        yield library
    finally:
        _USED.reset(token)


def prompt_names() -> list[str]:
    """Return the names of all prompts, sorted."""
    return _USED.get().names()


def describe_prompt(name: str) -> Prompt:
    """Return a prompt's description.

    Raises UsageError.
    """
    return _USED.get().prompt(name)


def prompt_inputs(name: str) -> tuple[str, ...]:
    """Return the inputs that callers give to a prompt.

    Raises UsageError.
    """
    return _USED.get().takes(name)


def render_prompt(name: str, **inputs: object) -> Rendered:
    """Return a prompt rendered with the inputs: see `Library.render`."""
    return _USED.get().render(name, **inputs)


def render_macro(name: str, *values: object) -> str:
    """Return the text of a shared macro: see `Library.part`."""
    return _USED.get().part(name, *values)


def _package_files() -> Iterator[resources.abc.Traversable]:
    return (file for file in resources.files("exact.prompts").iterdir() if file.name.endswith(".j2"))


@functools.cache
def _package_text(file: str) -> str:
    return (resources.files("exact.prompts") / file).read_text(encoding="utf-8")


def _split_front_matter(text: str) -> tuple[str, str]:
    """Return the front matter, empty if there is none, and the template."""
    match = _FRONT.match(text)
    return (match["front"], match["template"]) if match else ("", text)
