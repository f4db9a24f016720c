"""`exact memory`: show and edit a memory of reflections."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from exact.cli.init import NewFile
from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.machine import scratch
from exact.untrusted import read_bounded

if TYPE_CHECKING:
    from exact.config import Config
    from exact.reflection.memory.open import StoredMemory
    from exact.reflection.record import Entry

_MOST_BYTES = 1 << 28
"""Bytes of the largest file of reflections."""
_SERVERS = ("postgresql://", "postgres://")
_WHERE = click.argument("where", metavar="MEMORY")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
_IDS = click.argument("ids", nargs=-1, metavar="ID...")
_CONFIG = click.option(
    "--config", "-c", type=click.Path(path_type=Path), help="YAML file of the runs that use MEMORY, where a model makes its embeddings."
)
_COUNT = click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="Largest number of reflections to print."
)


@click.group()
def memory() -> None:
    """Show and edit a memory of reflections.

    MEMORY is a file, the folder of a run, or postgresql://... Nothing is deleted: `restore` recovers reflections that were forgotten,
    evicted, merged or quarantined. `exact list memory MEMORY` lists them.
    """


@click.command("memory")
@_WHERE
@click.option(
    "--status",
    type=click.Choice(["kept", "forgotten", "evicted", "merged", "quarantined", "all"]),
    default="kept",
    show_default=True,
    help="Select by status.",
)
@click.option("--quarantined", is_flag=True, help="Select those that try to give instructions: --status quarantined.")
@click.option("--kind", type=click.Choice(["policy", "value"]), help="Select by kind.")
@click.option("--task", default="", metavar="PATTERN", help="Select by task, for any seed: 'miniwob/click-*'.")
@_COUNT
@_JSON
def list_(where: str, status: str, quarantined: bool, kind: Any, task: str, limit: int, as_json: bool) -> None:
    """Print the newest reflections of MEMORY."""
    wanted: Any = "quarantined" if quarantined else None if status == "all" else status
    with _opened(where) as opened:
        _print(opened.entries(wanted, kind=kind, task=task, limit=limit), as_json)


@memory.command()
@_WHERE
@click.argument("id")
@_JSON
def show(where: str, id: str, as_json: bool) -> None:
    """Print one reflection with all its fields and uses. The beginning of ID is enough."""
    with _opened(where) as opened:
        entry = opened.entry(id)
        uses = opened.uses(entry.reflection.id)
    if as_json:
        echo(json.dumps({**msgspec.to_builtins(entry), "uses": msgspec.to_builtins(uses)}))
        return
    known = {name: value for name, value in msgspec.to_builtins(entry).items() if name != "reflection"}
    for name, value in {**msgspec.to_builtins(entry.reflection), **known}.items():
        if value not in ("", None):
            echo(f"{name}: {_line(str(value), 1000)}")
    for use in uses:
        ended = {True: "succeeded", False: "failed", None: "outcome unknown"}[use.success]
        echo(f"shown in: {_line(use.attempt, 200)}: {ended}")


@memory.command()
@_WHERE
@click.argument("words", nargs=-1, required=True)
@_COUNT
@_JSON
def search(where: str, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Print the reflections that contain some of WORDS.

    The text, the action and the situation are searched. The best match comes first.
    """
    with _opened(where) as opened:
        _print(opened.search(" ".join(words), k=limit), as_json)


@memory.command()
@_WHERE
@_IDS
@click.option("--task", default="", metavar="PATTERN", help="Forget all from the tasks that match: 'miniwob/click-*'.")
@click.option("--note", default="", help="Reason to record.")
@_JSON
def forget(where: str, ids: tuple[str, ...], task: str, note: str, as_json: bool) -> None:
    """Stop showing reflections to agents. `restore` undoes it."""
    if not ids and not task:
        raise UsageError("nothing to forget: give ids, or --task PATTERN")
    with _opened(where) as opened:
        chosen = [*ids, *(entry.reflection.id for entry in (opened.entries(task=task) if task else []))]
        _count("forgotten", opened.forget(dict.fromkeys(chosen), note), as_json)


@memory.command()
@_WHERE
@_IDS
@_JSON
def restore(where: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Restore reflections by ID.

    They were forgotten, evicted, merged or quarantined before.
    """
    if not ids:
        raise UsageError("nothing to restore: give ids; `exact list memory MEMORY --status all` shows them")
    with _opened(where) as opened:
        _count("restored", opened.restore(ids), as_json)


@memory.command()
@_WHERE
@click.option("--out", "-o", type=NewFile(), help="File to write to. Default: standard output.")
def export(where: str, out: Path | None) -> None:
    """Write the reflections as JSON lines, for `import`.

    The oldest comes first. Merged reflections are written too, so that their tasks are known. Statuses and uses are not written.
    """
    with _opened(where) as opened:
        lines = [msgspec.json.encode(each) for each in opened.reflections()]
    if out is None:
        sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines))
        return
    from exact.runs.journal.store import write_whole

    write_whole(out, b"".join(line + b"\n" for line in lines))
    echo(f"{len(lines)} written to {out}", err=True)


@memory.command("import")
@_WHERE
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@_CONFIG
@_JSON
def import_(where: str, files: tuple[Path, ...], config: Path | None, as_json: bool) -> None:
    """Add reflections from JSON lines to MEMORY.

    MEMORY is created if it does not exist. Each reflection is checked again: one that tries to give instructions is quarantined.
    """
    found = [reflection for file in files for reflection in _read(file)]

    def work(opened: StoredMemory) -> dict[str, int]:
        before = len(opened.entries("quarantined"))
        new = opened.add_all(found)
        return {"read": len(found), "new": new, "quarantined": len(opened.entries("quarantined")) - before}

    done = _worked(where, config, work, new=True)
    more = f"; {done['quarantined']} quarantined, see `exact list memory MEMORY --quarantined`" if done["quarantined"] else ""
    echo(json.dumps(done) if as_json else f"{done['new']} of {done['read']} are new{more}")


@memory.command()
@_WHERE
@click.argument("others", nargs=-1, metavar="[OTHER...]")
@_CONFIG
@_JSON
def merge(where: str, others: tuple[str, ...], config: Path | None, as_json: bool) -> None:
    """Add the reflections of OTHER memories to MEMORY.

    Reflections that say the same of the same situation are merged.
    """

    def work(opened: StoredMemory) -> dict[str, int]:
        new = 0
        for other in others:
            with _opened(other) as source:
                new += opened.add_all(source.reflections())
        return {"added": new, "merged": opened.merge()}

    done = _worked(where, config, work, new=bool(others))
    echo(json.dumps(done) if as_json else f"{done['added']} added, {done['merged']} merged")


@memory.command()
@_WHERE
@_JSON
def stats(where: str, as_json: bool) -> None:
    """Print numbers of reflections by status, kind and use."""
    with _opened(where) as opened:
        entries, version = opened.entries(None), opened.version
    counts: dict[str, Any] = {"version": version, "all": len(entries)}
    for key in ("status", "kind"):
        of: Callable[[Entry], str] = (lambda entry: entry.status) if key == "status" else (lambda entry: entry.reflection.kind)
        for name in sorted({of(entry) for entry in entries}):
            counts[name] = sum(of(entry) == name for entry in entries)
    counts |= {name: sum(getattr(entry, name) for entry in entries) for name in ("retrieved", "helped", "hurt")}
    counts["tasks"] = len({entry.reflection.task for entry in entries})
    if as_json:
        echo(json.dumps(counts))
        return
    for name, value in counts.items():
        echo(f"{name:<12} {value}")


def _opened(where: str, *, new: bool = False) -> StoredMemory:
    """Open an existing memory, or a `new` one. Raises UsageError if none exists."""
    from exact.reflection.memory.open import open_memory

    location = _location(where)
    if not new and not location.startswith(_SERVERS) and not Path(location).is_file():
        raise UsageError(f"no memory at {location}: give a file, the folder of a run or postgresql://...")
    return open_memory(location, browse=True)


def _location(where: str) -> str:
    """Return the file or server of a memory; for the folder of a run, the one that its configuration names."""
    path = Path(where)
    if where.startswith(_SERVERS) or not path.is_dir():
        return where
    from exact.runs.folder_check import memory_file

    own = memory_file(path)
    if (path / "config.yaml").is_file():
        from exact.config import load_recorded

        memory = load_recorded(path).reflection.memory
        if memory and (memory.startswith(_SERVERS) or (path / "run.json").exists()):
            from exact.cli.trust import require_trust

            require_trust(path)
        return memory or str(own)
    return str(own)


def _worked(where: str, path: Path | None, work: Callable[[StoredMemory], dict[str, int]], *, new: bool) -> dict[str, int]:
    """Return the result of work on a memory. With a configuration, its model makes the embeddings."""
    if path is None:
        with _opened(where, new=new) as opened:
            return work(opened)
    from exact.config import load

    config = load(path)
    reflection = msgspec.structs.replace(config.reflection, memory=_location(where), kind="builtin")
    return run_async(_worked_by_model(msgspec.structs.replace(config, reflection=reflection), work))


async def _worked_by_model(config: Config, work: Callable[[StoredMemory], dict[str, int]]) -> dict[str, int]:
    from exact.models.open import Models
    from exact.runs.attempt.memory import open_run_memory

    with scratch("memory") as folder:
        models = Models(config.models, folder=folder)
        try:
            async with open_run_memory(config, folder, models) as opened:
                assert opened is not None
                return await asyncio.to_thread(work, cast("StoredMemory", opened))
        finally:
            await models.close()


def _read(file: Path) -> Iterator[Any]:
    """Yield the reflections in a file. Raises UsageError that names the first invalid line."""
    from exact.context import Reflection

    try:
        lines = read_bounded(file, _MOST_BYTES).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=Reflection)
            except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
                raise UsageError(f"invalid reflection in {file}, line {number}: {error}") from error


def _print(entries: Sequence[Entry], as_json: bool) -> None:
    for entry in entries:
        if as_json:
            echo(json.dumps(msgspec.to_builtins(entry)))
            continue
        r = entry.reflection
        use = f" {entry.helped}+ {entry.hurt}- of {entry.retrieved}" if entry.retrieved else ""
        status = "" if entry.status == "kept" else f" [{entry.status}{f': {_line(entry.note, 60)}' if entry.note else ''}]"
        echo(f"{r.id[:8]}  {r.kind:<6}  {_line(r.task, 40)}{use}{status}  {_line(r.text, 160)}")


def _count(done: str, number: int, as_json: bool) -> None:
    echo(json.dumps({done: number}) if as_json else f"{number} {done}")


def _line(text: str, limit: int) -> str:
    """Return a text as one line without control characters, cut to `limit` characters."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    joined = " ".join(plain.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"
