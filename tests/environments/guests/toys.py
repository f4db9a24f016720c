"""A toy world as a factory that a guest can load."""

from exact.environments.toy import ToyWorlds, chain


def worlds() -> ToyWorlds:
    return ToyWorlds(chain(3))
