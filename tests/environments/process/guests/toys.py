"""Toy environments as factories that a guest can load."""

from exact.environments.toy.factory import ToyFactory, chain, form


def environments() -> ToyFactory:
    return ToyFactory(chain(3))


def without_snapshots() -> ToyFactory:
    return ToyFactory(form(3), fidelity="replay", isolated=False)
