"""Names of an earlier version that still work in a user's code, each with a DeprecationWarning that says the new name."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

C = TypeVar("C", bound=type)
F = TypeVar("F")


class RenamedFields(msgspec.StructMeta):
    """Metaclass of structs whose constructor takes earlier names too: fields in `RENAMED`, values of a field in `RENAMED_VALUES`."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        """Construct the struct with the new names."""
        fields = _renamed(fields, getattr(cls, "RENAMED", {}))
        for name, values in getattr(cls, "RENAMED_VALUES", {}).items():
            if fields.get(name) in values:
                _warn(fields[name], values[fields[name]], stacklevel=3)
                fields[name] = values[fields[name]]
        return super().__call__(*args, **fields)


def renamed_arguments(**names: str) -> Callable[[C], C]:
    """Return a class decorator by which the constructor takes earlier argument names too, old=new."""

    def decorate(cls: C) -> C:
        construct = cls.__init__  # type: ignore[misc]

        @functools.wraps(construct)
        def __init__(self: Any, *args: Any, **arguments: Any) -> None:
            construct(self, *args, **_renamed(arguments, names))

        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate


class _EarlierFactory:
    """Factory over one whose `open` takes `speculative` in place of `simulation`."""

    def __init__(self, factory: Any) -> None:
        self._factory = factory

    def open(self, *, simulation: bool) -> Any:
        return self._factory.open(speculative=simulation)


class _EarlierForkableFactory(_EarlierFactory):
    """The same for a factory that forks."""

    def fork(self, snapshot: Any, *, simulation: bool) -> Any:
        return self._factory.fork(snapshot, speculative=simulation)

    def has(self, snapshot: Any) -> bool:
        return bool(self._factory.has(snapshot))

    def drop(self, snapshot: Any) -> None:
        self._factory.drop(snapshot)


def with_simulation(factory: F) -> F:
    """Return a factory whose `open` and `fork` take `simulation`: the given one, or one over it if it takes `speculative`."""
    known = inspect.signature(cast("Any", factory).open).parameters
    if "simulation" in known or "speculative" not in known:
        return factory
    _warn("speculative", "simulation", stacklevel=3)
    return cast("F", _EarlierForkableFactory(factory) if hasattr(factory, "fork") else _EarlierFactory(factory))


def _renamed(given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    for old in names.keys() & given.keys():
        _warn(old, names[old], stacklevel=4)
        given[names[old]] = given.pop(old)
    return given


def _warn(old: str, new: str, *, stacklevel: int) -> None:
    warnings.warn(f"{old!r} is now {new!r}", DeprecationWarning, stacklevel=stacklevel)
