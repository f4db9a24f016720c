"""JavaScript for pages: `.js` files beside the modules that use them, each one function."""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files

_HEADER = re.compile(r"\A(?://.*\n)+")
_INCLUDE = re.compile(r"^ *//= (?:(\w+)/)?(\w+)\n", re.MULTILINE)
"""A line in the place of which the file of that name is inserted: of the same folder, unless one is named."""


@functools.cache
def script(name: str) -> str:
    """Return the source of a script, such as `act/aim` for `browser/act/aim.js`, with its includes and without the comment at its head.

    A script is one function declaration, so it fits `Tab.call`. Files are read once.
    """
    folder, file = name.split("/")
    source = files("exact.environments.browser").joinpath(folder, f"{file}.js").read_text("utf-8")
    return _INCLUDE.sub(lambda line: script(f"{line[1] or folder}/{line[2]}"), _HEADER.sub("", source))


def script_call(name: str, *arguments: object) -> str:
    """Return the expression that calls a script with JSON arguments."""
    return f"({script(name)})({', '.join(json.dumps(each) for each in arguments)})"
