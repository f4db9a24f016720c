"""Checks before the first attempt on a cluster: nodes with the resources of attempts, versions, browsers, sandboxes, keys, disks."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from exact.errors import ExactError
from exact.evaluation.remote.cluster import holds
from exact.evaluation.remote.parcel import Cargo
from exact.machine import ScratchFolder
from exact.runs.journal.versions import versions

LONGEST = 90.0
"""Seconds in which a node must answer; starting a process of Ray on a busy one takes some of them."""
_COMPARED = ("exact", "commit")
"""Versions that must be equal on all nodes; the commit if the code is in a source tree."""


class NodeFaults(NamedTuple):
    """Answer of one node."""

    versions: dict[str, str]
    runsc: bool
    faults: list[str]


async def preflight(ray: Any, cargo: Any, needs: Collection[Mapping[str, float]]) -> list[str]:
    """Return the faults that would keep attempts from running, a line each, with the name of the node; none if all is well.

    `cargo`: reference of an encoded Cargo. `needs`: resources that attempts take of a node. Nodes that no attempt fits are not asked, and
    faults of a node that was lost meanwhile do not count: no attempt goes there.
    """
    used = [node for node in _alive(ray) if any(holds(node["Resources"], each) for each in needs)]
    answers = await asyncio.gather(*(_asked(ray, node, cargo) for node in used))
    alive = {node["NodeID"] for node in _alive(ray)} if any(each.faults for each in answers) else set()
    found = [(node, answer) for node, answer in zip(used, answers, strict=True) if not answer.faults or node["NodeID"] in alive]
    faults = [_no_node(each) for each in needs if not any(holds(node["Resources"], each) for node, _ in found)]
    names = [str(node["NodeManagerHostname"] or node["NodeManagerAddress"]) + f" ({node['NodeManagerAddress']})" for node, _ in found]
    lines = _compared([answer for _, answer in found])
    return faults + [f"{name}: {fault}" for name, each in zip(names, lines, strict=True) for fault in each]


def _alive(ray: Any) -> list[Mapping[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _no_node(needs: Mapping[str, float]) -> str:
    what = ", ".join(f"{amount:g} {name}" for name, amount in needs.items())
    declared = ", ".join(f'"{name}": 4' for name in needs if name not in ("cpu", "gpu"))
    way_out = f"start one with `ray start --resources='{{{declared}}}'`, as `exact cluster up` does" if declared else "add one"
    return f"no node has {what}, which attempts take: {way_out}"


async def _asked(ray: Any, node: Mapping[str, Any], cargo: Any) -> NodeFaults:
    """Ask one node. The question works without this package, whose absence is one of the answers."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    found = dict[str, str]()
    try:
        async with asyncio.timeout(LONGEST):
            found = await ray.remote(_installed()).options(num_cpus=0, scheduling_strategy=place, max_retries=0).remote()
            found = msgspec.convert(found, dict[str, str])
            if not found.get("exact"):
                return NodeFaults({}, False, [f"exact is not installed in {found.get('python')}: install the same version as here"])
            return msgspec.convert(
                await ray.remote(look).options(num_cpus=0, scheduling_strategy=place, max_retries=0).remote(cargo), NodeFaults
            )
    except msgspec.ValidationError as error:
        return NodeFaults({}, False, [f"answered something else than what it has: {error}"])
    except TimeoutError:
        return NodeFaults({}, False, [f"did not answer in {LONGEST:g} s: end its Ray, or wait until it is less busy"])
    except ray.exceptions.RayError as error:
        text = " ".join(str(error).split())
        there = f"exact {found['exact']} does not run" if found.get("exact") else "cannot be reached"
        return NodeFaults({}, False, [f"{there}: {text[-200:]}"])


def _installed() -> Callable[[], dict[str, str]]:
    """Return a function that returns the versions installed on its machine. It is sent whole, as it is made in a function."""

    def installed() -> dict[str, str]:
        import importlib.util
        import sys
        from importlib import metadata

        there = importlib.util.find_spec("exact") is not None
        try:
            version = metadata.version("exact-agent")
        except metadata.PackageNotFoundError:
            version = "source"
        return {"exact": version if there else "", "python": sys.executable}

    return installed


def look(cargo: bytes) -> tuple[dict[str, str], bool, list[str]]:
    """Return this node's versions, whether it has runsc, and the parts that it lacks for the attempts of a cargo."""
    from exact.environments.sandbox.runsc import find_runsc

    runsc = not list(_said(find_runsc))
    try:
        scratch = ScratchFolder("ray")
    except ExactError as error:
        return versions(), runsc, [str(error)]
    try:
        given = msgspec.msgpack.decode(cargo, type=Cargo)
        folder = given.unpack(scratch.folder("files"))
        faults = [fault for agent in folder.plan.agents for fault in _lacks(folder.agent(agent)[1], folder.plan.tasks, not folder.plan.own)]
        if any(config.browser.sandbox == "required" for config in given.configs.values()):
            faults += _said(find_runsc)
        if importlib.util.find_spec(given.make.partition(":")[0]) is None:
            faults.append(f"{given.make} is not importable here")
    except ExactError as error:
        faults = [str(error)]
    finally:
        scratch.close()
    return versions(), runsc, list(dict.fromkeys(faults))


def _lacks(config: Any, tasks: Any, benchmark: bool) -> Iterable[str]:
    """Yield the parts missing here for an agent: keys of its models, packages, browsers, requirements of suites."""
    from exact.benchmarks.open import check_environments
    from exact.runs.runner import check_models

    yield from _said(lambda: check_models(config))
    yield from _said(lambda: check_environments(tasks, config, benchmark=benchmark))


def _said(check: Callable[[], object]) -> list[str]:
    """Return the error that a check raises, or nothing."""
    try:
        check()
    except ExactError as error:
        return [str(error)]
    return []


def _compared(answers: Sequence[NodeFaults]) -> list[list[str]]:
    """Return the faults of each node, with versions that are not this machine's, and runsc if only some nodes have it."""
    here, some = versions(), any(each.runsc for each in answers)
    found = []
    for each in answers:
        lines = list(each.faults)
        if each.versions:
            lines += [
                f"{name} is {each.versions.get(name) or 'none'}, here {here.get(name) or 'none'}: install the same on all nodes"
                for name in _COMPARED
                if each.versions.get(name) != here.get(name)
            ]
            if some and not each.runsc:
                lines.append(
                    "has no runsc, which other nodes have, so that attempts differ: install it on all, or set browser.sandbox=never"
                )
        found.append(lines)
    return found
