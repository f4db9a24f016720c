"""Toy worlds as factories that a guest can load."""

from exact.environments.toy.factory import ToyWorlds, chain, form


def worlds() -> ToyWorlds:
    return ToyWorlds(chain(3))


def without_snapshots() -> ToyWorlds:
    return ToyWorlds(form(3), fidelity="replay", sealed=False)
