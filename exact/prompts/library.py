"""Prompts: one template a file, with its name, version and inputs at the top.

A template defines two macros: `system()`, which is the same for all states of a task so that servers can cache it, and `user()`.
Inputs are values, never templates: text from a page or a model is not rendered, whatever it holds.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from exact.errors import unknown
from exact.models.base import Image, Message, Text
from exact.prompts.fence import fenced, line

if TYPE_CHECKING:
    import jinja2

_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<template>.*)\Z", re.S)
_USES = re.compile(r"""\{%-?\s*(?:from|import|include)\s+"([\w.]+)\"""")


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at the top of a prompt's file."""

    name: str
    version: int
    inputs: tuple[str, ...]
    """Names of the values it takes, all required."""
    digest: str = ""
    """First digits of the SHA-256 of the file and of those it uses."""

    @property
    def id(self) -> str:
        """`policy@1:3fa9c1`."""
        return f"{self.name}@{self.version}:{self.digest}"


class Rendered(msgspec.Struct, frozen=True):
    """A prompt with its inputs filled in."""

    id: str
    system: str
    user: str

    def messages(self, *images: bytes) -> tuple[Message, ...]:
        """The two turns to send; PNG images go after the user's words."""
        return (Message("system", (Text(self.system),)), Message("user", (Text(self.user), *map(Image, images))))


def names() -> list[str]:
    """All prompts, sorted."""
    return sorted(file.name.removesuffix(".j2") for file in _folder() if not file.name.startswith("_"))


@functools.cache
def prompt(name: str) -> Prompt:
    """A prompt's description. Raises UsageError for an unknown name."""
    import yaml

    if name not in names():
        raise unknown("prompt", name, names())
    front = msgspec.convert(yaml.safe_load(_split(f"{name}.j2")[0]), Prompt)
    digest = hashlib.sha256("".join(_texts(f"{name}.j2")).encode()).hexdigest()
    return msgspec.structs.replace(front, digest=digest[:6])


def render(name: str, **inputs: object) -> Rendered:
    """A prompt for some inputs. Raises UsageError for an unknown prompt, TypeError for inputs other than it declares."""
    described = prompt(name)
    if set(inputs) != set(described.inputs):
        raise TypeError(f"prompt {name} takes {', '.join(described.inputs)}, got {', '.join(inputs)}")
    module = _templates().get_template(f"{name}.j2").make_module(inputs)
    parts = {part: str(getattr(module, part)()).strip() for part in ("system", "user")}
    return Rendered(id=described.id, **parts)


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda file: _split(file)[1]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # the output is plain text for a model
    )
    templates.filters.update(fenced=fenced, line=line)
    return templates


def _folder() -> Iterator[resources.abc.Traversable]:
    return (file for file in resources.files("exact.prompts").iterdir() if file.name.endswith(".j2"))


@functools.cache
def _split(file: str) -> tuple[str, str]:
    """Front matter (empty where there is none) and template."""
    text = (resources.files("exact.prompts") / file).read_text(encoding="utf-8")
    match = _FRONT.match(text)
    return (match["front"], match["template"]) if match else ("", text)


def _texts(file: str) -> Iterator[str]:
    """The file's text and those of the files it uses."""
    front, template = _split(file)
    yield front + template
    for used in _USES.findall(template):
        yield from _texts(used)
