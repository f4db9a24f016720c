"""The public API as text: each public name with its signature, its public members and their signatures.

`python -m tests.api_snapshot` writes it to tests/api.txt; tests/test_api_snapshot.py checks that nothing goes away or changes, a
release also that nothing new is missing. A line that goes away or changes is a change that users notice: it needs a
deprecation (exact/deprecated.py) and a line in the changelog.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

import exact

PAGE = Path(__file__).with_name("api.txt")


def snapshot() -> str:
    """Return the text."""
    return "\n".join(line for name in exact.__all__ if name != "__version__" for line in _lines(name)) + "\n"


def _lines(name: str) -> Iterator[str]:
    found = getattr(exact, name)
    if not inspect.isclass(found):
        yield f"{name}{_signature(found)}" if callable(found) else f"{name}: {type(found).__name__}"
        return
    yield f"class {name}({', '.join(base.__name__ for base in found.__bases__ if base is not object)})"
    if issubclass(found, msgspec.Struct):
        for field in msgspec.structs.fields(found):
            yield f"    {field.name}{' = ...' if not field.required else ''}"
    elif "__init__" in vars(found):
        yield f"    __init__{_signature(found.__init__)}"
    fields = set(getattr(found, "__struct_fields__", ()))
    for member in sorted(vars(found)):
        if member.startswith("_") or member in fields:
            continue
        value = inspect.getattr_static(found, member)
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        kind = "async " if inspect.iscoroutinefunction(plain) else ""
        yield f"    {kind}{member}{_signature(plain)}" if inspect.isfunction(plain) else f"    {member}"


def _signature(function: object) -> str:
    """Return the parameters without annotations: names, kinds, and whether they have defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    plain = [each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else ...) for each in parameters]
    return str(inspect.Signature(plain)).replace("Ellipsis", "...")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if snapshot() == PAGE.read_text("utf-8") else "the public API is not the recorded one: python -m tests.api_snapshot")
    PAGE.write_text(snapshot(), "utf-8")
