"""`exact memory`: what was learned, and what became of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from exact.cli.newfile import NewFile
from exact.errors import UsageError
from exact.scratch import scratch

if TYPE_CHECKING:
    from exact.config import Config
    from exact.reflection.memory import StoredMemory
    from exact.reflection.memory.entry import Entry

_SERVERS = ("postgresql://", "postgres://")
_WHERE = click.argument("where", metavar="MEMORY")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of text.")
_IDS = click.argument("ids", nargs=-1, metavar="ID...")
_CONFIG = click.option(
    "--config", "-c", type=click.Path(path_type=Path), help="YAML file of the runs that use MEMORY, where a model makes its vectors."
)
_COUNT = click.option("--limit", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")


@click.group()
def memory() -> None:
    """Shows and tidies a memory of reflections: a file, a run's folder, or postgresql://...

    Nothing is taken out for good: `restore` brings back what was forgotten, evicted, merged or quarantined.
    """


@memory.command("list")
@_WHERE
@click.option("--status", type=click.Choice(["kept", "forgotten", "evicted", "merged", "quarantined", "all"]), default="kept")
@click.option("--quarantined", is_flag=True, help="Those that try to instruct: the same as --status quarantined.")
@click.option("--kind", type=click.Choice(["policy", "value"]))
@click.option("--task", default="", metavar="PATTERN", help="Only from tasks such as 'miniwob/click-*', whatever their seed.")
@_COUNT
@_JSON
def list_(where: str, status: str, quarantined: bool, kind: Any, task: str, limit: int, as_json: bool) -> None:
    """Prints the newest reflections of MEMORY, one a line."""
    wanted: Any = "quarantined" if quarantined else None if status == "all" else status
    with _opened(where) as opened:
        _print(opened.entries(wanted, kind=kind, task=task, limit=limit), as_json)


@memory.command()
@_WHERE
@click.argument("id")
@_JSON
def show(where: str, id: str, as_json: bool) -> None:
    """Prints one reflection with all that is known of it. Of ID the beginning is enough."""
    with _opened(where) as opened:
        entry = opened.entry(id)
        uses = opened.uses(entry.reflection.id)
    if as_json:
        click.echo(json.dumps({**msgspec.to_builtins(entry), "uses": msgspec.to_builtins(uses)}))
        return
    known = {name: value for name, value in msgspec.to_builtins(entry).items() if name != "reflection"}
    for name, value in {**msgspec.to_builtins(entry.reflection), **known}.items():
        if value not in ("", None):
            click.echo(f"{name}: {_line(str(value), 1000)}")
    for use in uses:
        ended = {True: "went well", False: "went badly", None: "nobody knows how it ended"}[use.success]
        click.echo(f"shown in: {_line(use.attempt, 200)}: {ended}")


@memory.command()
@_WHERE
@click.argument("words", nargs=-1, required=True)
@_COUNT
@_JSON
def search(where: str, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Prints those kept with some of WORDS in the lesson, its action or its situation, the best first."""
    with _opened(where) as opened:
        _print(opened.search(" ".join(words), k=limit), as_json)


@memory.command()
@_WHERE
@_IDS
@click.option("--task", default="", metavar="PATTERN", help="All from tasks such as 'miniwob/click-*'.")
@click.option("--note", default="", help="Why.")
def forget(where: str, ids: tuple[str, ...], task: str, note: str) -> None:
    """Shows some reflections to no one any more. `restore` undoes it."""
    if not ids and not task:
        raise UsageError("nothing to forget: name ids, or --task PATTERN")
    with _opened(where) as opened:
        chosen = [*ids, *(entry.reflection.id for entry in (opened.entries(task=task) if task else []))]
        click.echo(f"{opened.forget(dict.fromkeys(chosen), note)} forgotten")


@memory.command()
@_WHERE
@_IDS
def restore(where: str, ids: tuple[str, ...]) -> None:
    """Keeps some again that were forgotten, evicted, merged or quarantined."""
    if not ids:
        raise UsageError("nothing to restore: name ids; `exact memory list --status all` shows them")
    with _opened(where) as opened:
        click.echo(f"{opened.restore(ids)} restored")


@memory.command()
@_WHERE
@click.option("--out", "-o", type=NewFile(), help="File; else to standard output.")
def export(where: str, out: Path | None) -> None:
    """Writes all that is kept as JSON lines, oldest first: what `import` reads.

    What was merged into it is written too, so that it counts as learned on the same tasks there. Statuses and use stay behind.
    """
    with _opened(where) as opened:
        lines = [msgspec.json.encode(each) for each in opened.lessons()]
    if out is None:
        sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines))
        return
    from exact.runs.journal.store import write_whole

    write_whole(out, b"".join(line + b"\n" for line in lines))
    click.echo(f"{len(lines)} written to {out}", err=True)


@memory.command("import")
@_WHERE
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@_CONFIG
def import_(where: str, files: tuple[Path, ...], config: Path | None) -> None:
    """Adds reflections from JSON lines to MEMORY, made if there is none. Each is judged anew: one that instructs is quarantined."""
    found = [reflection for file in files for reflection in _read(file)]

    def work(opened: StoredMemory) -> str:
        before = len(opened.entries("quarantined"))
        new = opened.add_all(found)
        held = len(opened.entries("quarantined")) - before
        return f"{new} of {len(found)} are new" + (f"; {held} quarantined, see `exact memory list --quarantined`" if held else "")

    click.echo(_worked(where, config, work, new=True))


@memory.command()
@_WHERE
@click.argument("others", nargs=-1, metavar="[OTHER...]")
@_CONFIG
def merge(where: str, others: tuple[str, ...], config: Path | None) -> None:
    """Adds what OTHER memories keep to MEMORY, and merges those that say the same of the same situation."""

    def work(opened: StoredMemory) -> str:
        new = 0
        for other in others:
            with _opened(other) as source:
                new += opened.add_all(source.lessons())
        return f"{new} added, {opened.merge()} merged"

    click.echo(_worked(where, config, work, new=bool(others)))


@memory.command()
@_WHERE
@_JSON
def stats(where: str, as_json: bool) -> None:
    """Prints how many there are of each status, how often they were shown, and with what result."""
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
        click.echo(json.dumps(counts))
        return
    for name, value in counts.items():
        click.echo(f"{name:<12} {value}")


def _opened(where: str, *, new: bool = False) -> StoredMemory:
    """A memory that is there, or a new one. Raises UsageError."""
    from exact.reflection.memory import open_memory

    place = _place(where)
    if not new and not place.startswith(_SERVERS) and not Path(place).is_file():
        raise UsageError(f"there is no memory at {place}: name a file, a run's folder or postgresql://...")
    return open_memory(place, browse=True)


def _place(where: str) -> str:
    """The file or server; of a run's folder, what its configuration names."""
    path = Path(where)
    if where.startswith(_SERVERS) or not path.is_dir():
        return where
    if (path / "config.yaml").is_file():
        from exact.config import load_recorded

        return load_recorded(path).reflection.memory or str(path / "memory.sqlite")
    return str(path / "memory.sqlite")


def _worked(where: str, path: Path | None, work: Callable[[StoredMemory], str], *, new: bool) -> str:
    """What comes of some work on a memory; with a configuration, its model makes the vectors."""
    if path is None:
        with _opened(where, new=new) as opened:
            return work(opened)
    from exact.config import load

    config = load(path)
    reflection = msgspec.structs.replace(config.reflection, memory=_place(where), kind="builtin")
    return asyncio.run(_worked_by_model(msgspec.structs.replace(config, reflection=reflection), work))


async def _worked_by_model(config: Config, work: Callable[[StoredMemory], str]) -> str:
    from exact.models.open import Models
    from exact.runs.attempt.memory import memory_of

    with scratch("memory") as folder:
        models = Models(config.models, folder=folder)
        try:
            async with memory_of(config, folder, models) as opened:
                assert opened is not None
                return await asyncio.to_thread(work, opened)
        finally:
            await models.close()


def _read(file: Path) -> Iterator[Any]:
    """The reflections in a file. Raises UsageError with the line that is none."""
    from exact.context import Reflection

    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=Reflection)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                raise UsageError(f"{file}, line {number} is no reflection: {error}") from error


def _print(entries: Sequence[Entry], as_json: bool) -> None:
    for entry in entries:
        if as_json:
            click.echo(json.dumps(msgspec.to_builtins(entry)))
            continue
        r = entry.reflection
        use = f" {entry.helped}+ {entry.hurt}- of {entry.retrieved}" if entry.retrieved else ""
        status = "" if entry.status == "kept" else f" [{entry.status}{f': {_line(entry.note, 60)}' if entry.note else ''}]"
        click.echo(f"{r.id[:8]}  {r.kind:<6}  {_line(r.task, 40)}{use}{status}  {_line(r.text, 160)}")


def _line(text: str, limit: int) -> str:
    """As one line without what a terminal would act on."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    joined = " ".join(plain.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"
