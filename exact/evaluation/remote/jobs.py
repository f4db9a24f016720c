"""Machine lists of ExACT's manager, translated: `{machine: {num_parallel, main_api_providers, run_tfiles}}`, with its further files.

There a manager posted a shell script to each machine, which ran its own list of tasks. Here one benchmark has the tasks of all lists, and
each machine takes as many at once as its `num_parallel`. Keys that stand in the files are left out: each becomes an environment variable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exact.errors import UsageError, unknown
from exact.evaluation.remote.machines import plain_data

PROVIDER = "exact_jobs"
"""Name of the provider whose endpoints are those of the lists."""


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Job of one machine."""

    num_parallel: int
    main_api_providers: tuple[str, ...] = ()
    run_tfiles: tuple[str, ...] = ()


class MachineFiles(msgspec.Struct, frozen=True):
    """Files of one machine, from files.yaml."""

    api_key_fpath: str = ""
    osworld_data_dir: str = ""


class GivenProvider(msgspec.Struct, frozen=True):
    """An endpoint, from providers.yaml."""

    provider: str
    api_base: str = ""
    api_key: str = ""
    api_version: object = ""
    """Version of Azure's API, which YAML reads as a date if it is not quoted."""
    token_provider_base: str = ""


class Translation(NamedTuple):
    """Translation of these lists into data for YAML, and the steps left to a person."""

    machines: dict[str, Any]
    providers: dict[str, Any]
    tasks: tuple[str, ...]
    """Patterns of tasks."""
    parallel: int
    notes: tuple[str, ...]


def translate(jobs: Path, files: Path | None, providers: Path | None, *, head: str = "") -> Translation:
    """Translate the lists. `head`: the machine that the others connect to; by default the first one. Raises UsageError."""
    machines = _read(jobs, dict[str, Job])
    if not machines:
        raise UsageError(f"{jobs} names no machine")
    places = _read(files, dict[str, MachineFiles]) if files else {}
    known = _read(providers, dict[str, GivenProvider]) if providers else {}
    held = {name: {"desktop": float(job.num_parallel)} for name, job in machines.items()}
    listed = Counter(name for job in machines.values() for name in job.main_api_providers)
    endpoints, notes = _endpoints(listed, known, providers)
    folders = {place.osworld_data_dir for name, place in places.items() if name in machines and place.osworld_data_dir}
    variables = {"EXACT_OSWORLD": _examples(folders.pop())} if len(folders) == 1 else {}
    if len(folders) > 1:
        notes.append("osworld_data_dir differs between machines: set EXACT_OSWORLD on each before `exact cluster up`")
    if paths := sorted({place.api_key_fpath for place in places.values() if place.api_key_fpath}):
        notes.append(f"{', '.join(paths)} held keys: source it on each machine before `exact cluster up`")
    tasks = tuple(dict.fromkeys(_pattern(path) for job in machines.values() for path in job.run_tfiles))
    return Translation(
        machines={"head": head or next(iter(machines)), "nodes": held, **({"variables": variables} if variables else {})},
        providers=endpoints,
        tasks=tasks,
        parallel=sum(job.num_parallel for job in machines.values()),
        notes=tuple(notes),
    )


def _endpoints(listed: Counter[str], known: Mapping[str, GivenProvider], where: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return the provider whose endpoints the lists name, each weighted by how often it was named, and notes on keys."""
    found, notes, kinds = list[dict[str, Any]](), list[str](), set[str]()
    given: dict[str, Any] = {}
    for name, count in listed.items():
        if not known:
            notes.append(f"provider {name} is described in providers.yaml, which was not given: add --providers")
            continue
        if name not in known:
            raise unknown("provider", name, known, where=str(where))
        each = known[name]
        kinds.add("azure" if each.provider.startswith("azure") else "openai")
        if not each.api_base:
            raise UsageError(f"provider {name} in {where} has no api_base")
        endpoint = {"base_url": each.api_base, "weight": float(count)}
        if each.token_provider_base:
            given["token"] = "azure"
        elif each.api_key not in ("", "empty", "EMPTY"):
            endpoint["api_key_env"] = f"EXACT_KEY_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"
            notes.append(f"set {endpoint['api_key_env']} on each machine to the key of {name}, which is not copied")
        given |= {"api_version": str(each.api_version)} if each.api_version else {}
        found.append(endpoint)
    if len(kinds) > 1:
        raise UsageError("main_api_providers name Azure and other servers, which take requests of two forms: translate one list for each")
    return ({PROVIDER: {"kind": kinds.pop(), **given, "endpoints": found}} if found else {}), notes


def _pattern(path: str) -> str:
    """Return the pattern of an index of OSWorld: test_all.json is `osworld/@all`."""
    return f"osworld/@{Path(path).stem.removeprefix('test_')}"


def _examples(folder: str) -> str:
    """Return OSWorld's folder of task files in ExACT's data folder."""
    return folder if Path(folder).name == "evaluation_examples" else f"{folder.rstrip('/')}/evaluation_examples"


def _read(path: Path, kind: Any) -> Any:
    try:
        return msgspec.convert(plain_data(path) or {}, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from error
