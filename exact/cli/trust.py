"""`exact trust`: look for secrets in a run folder, or continue one that others made although it names code, files or servers.

The search for secrets reads all files of the folder, for values that are known and for texts that have the shape of a secret.
"""

from __future__ import annotations

import bisect
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from exact.cli.run_folder import RunFolderPath, on_storage, require_options
from exact.cli.terminal import echo
from exact.errors import ExactError, JournalError, UsageError
from exact.signature import is_signed, sign

if TYPE_CHECKING:
    from exact.runs.references import Named
    from exact.secrecy.scrubber import Scrubber
    from exact.secrecy.values import Secret
    from exact.task import Task

_SHORT = 120
"""Characters of a value in the error that refuses a folder."""
_SHOWN = 3
"""Things that an error shows."""
_CHUNK, _OVERLAP = 4 << 20, 1 << 16
"""Bytes that are looked at together, and those that are looked at twice."""
_JSON = 8 << 20
"""Bytes of the largest line whose fields are looked at together."""
_UNPACKED = 512 << 20
"""Most bytes of a zip that are unpacked."""
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8")
_MOST = 50
"""Places that are reported for one file."""


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--secrets", "read_only", is_flag=True, help="Look for secrets in all files of RUN instead, and change nothing.")
@click.option(
    "--secret-env", "variables", multiple=True, metavar="NAME", help="--secrets: environment variable of a further secret. Repeatable."
)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="--secrets: site file whose secrets are looked for too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; ask nothing, and trust nothing without --yes.")
@on_storage("run", write=True)
def trust(run: Path, yes: bool, read_only: bool, variables: tuple[str, ...], site: Path | None, as_json: bool) -> int:
    """Show the things beyond its folder that RUN names, and trust it once you say yes.

    RUN is a folder of `exact run` or of `exact bench` that another user made, that was made on another machine, or whose tasks or
    configuration were changed since. Code that it names is run, programs are started, files are read, and keys are sent: look at the list.
    Runs that you make yourself are trusted.

    With --secrets, before you share RUN: look for the secrets of its log-ins, headers, accounts, sessions and models, as far as their
    values can be read here, in any case and encoding; and for texts with the shape of a private key, a bearer token, a key of a service or
    basic credentials. Exit with code 1 if a file holds one, and print the place. Secrets are never printed.
    """
    from exact.runs.folder_check import check_folder

    if not run.is_dir():
        raise UsageError(f"there is no run folder {run}")
    check_folder(run)
    if read_only:
        require_options("with --secrets", "read_only", "variables", "site", "as_json")
        return _audit(run, variables, site, as_json)
    require_options("without --secrets", "yes", "as_json")
    folders = _folders(run)
    found = [(folder.name, each) for folder in folders for each in _named(folder)]
    if as_json:
        echo(json.dumps([{"folder": name, "key": each.key, "value": each.value} for name, each in found]))
    else:
        for name, each in found:
            echo(f"{name}: {each}")
    if as_json and not yes:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"nobody can be asked here: look at the list, and if you trust it: exact trust {run} --yes")
        click.confirm("Trust it?", abort=True, err=True)
    for folder in folders:
        sign(folder)
    echo(f"trusted: {run}", err=as_json)
    return 0


def require_trust(*folders: Path) -> None:
    """Raise UsageError if a run folder is not this user's and names anything outside it."""
    for folder in folders:
        if not is_signed(folder) and (found := _named(folder)):
            told = "; it ".join(each.told(_SHORT) for each in found[:_SHOWN])
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            fact = f"{folder} was not made by you here, or was changed since: it {told}{more}"
            raise UsageError(f"{fact}: if you trust it, exact trust {_whole(folder)}")


def require_trusted_bench(path: Path) -> None:
    """Raise UsageError if a benchmark's folder is not this user's and names anything outside it, or contradicts itself."""
    from exact.evaluation.folder import BenchFolder

    bench = BenchFolder(path)
    plan = bench.plan
    for folder in _folders(path):
        if bench.agent(folder.name)[0].manifest.tasks != plan.tasks:
            raise UsageError(f"{path / 'bench.json'} and {folder / 'run.json'} have different tasks: use a folder that `exact bench` wrote")
    require_trust(*_folders(path))


def _whole(folder: Path) -> Path:
    return folder.parent.parent if (folder.parent.parent / "bench.json").exists() else folder


def _folders(run: Path) -> list[Path]:
    """Return the run folder, or those of a benchmark's agents."""
    if not (run / "bench.json").exists():
        return [run]
    from exact.evaluation.folder import BenchFolder

    bench = BenchFolder(run)
    return [bench.agent_path(agent) for agent in bench.plan.agents]


def _named(folder: Path) -> Sequence[Named]:
    from exact.config import load_recorded
    from exact.runs.journal.store import RunFolder
    from exact.runs.references import named

    manifest = RunFolder.open(folder).manifest
    tasks = [task for task in manifest.tasks if not (manifest.benchmark and _is_published(task))]
    return named(load_recorded(folder), tasks)


def _is_published(task: Task) -> bool:
    """Return whether a suite that is installed here has the same task."""
    from exact.benchmarks import registry

    try:
        return registry.task(task.id) == task
    except (ExactError, ValueError, LookupError, OSError):
        return False


def _audit(run: Path, variables: tuple[str, ...], site: Path | None, as_json: bool) -> int:
    from exact.secrecy.scrubber import Scrubber
    from exact.secrecy.values import Secret
    from exact.text import counted

    if missing := [name for name in variables if not os.environ.get(name)]:
        raise UsageError(f"--secret-env {missing[0]}: it is not set: export {missing[0]}=...")
    scrubber = Scrubber((*(Secret(name, os.environ[name]) for name in variables), *(_of_site(site) if site else ()), *_of_run(run)))
    found = list(places(run, scrubber))
    if as_json:
        echo(json.dumps({"run": str(run), "secrets": len(scrubber.secrets), "found": [place._asdict() for place in found]}))
    else:
        for place in found:
            echo(f"{run / place.file}:{place.line}: {'the secret ' if place.known else 'the shape of a '}{place.what}")
        known = counted(len(scrubber.secrets), "known value")
        echo(f"{counted(len(found), 'place')} with a secret; looked for {known} and for secrets by their shape")
    return 1 if found else 0


def _of_run(run: Path) -> Iterator[Secret]:
    """Yield the secrets that the run, or the runs of a benchmark, name. Raises UsageError if one cannot be read."""
    from exact.config import load_recorded
    from exact.runs.journal.store import RunFolder
    from exact.runs.secrets import known_secrets

    for path in sorted({run, *(each.parent for each in run.glob("agents/*/run.json"))}):
        if (path / "run.json").exists():
            try:
                yield from known_secrets(RunFolder(path).manifest.tasks, load_recorded(path))
            except JournalError as error:
                raise UsageError(f"the secrets of {path} are not known: {error}") from error


def _of_site(path: Path) -> Iterator[Secret]:
    from exact.benchmarks.own.files import TaskEntry, own_task, read_site
    from exact.config import Config
    from exact.runs.secrets import known_secrets

    task = own_task(read_site(path), TaskEntry(id="audit", instruction="audit"), path.parent)
    yield from known_secrets((task,), Config())


class Place(NamedTuple):
    """A place at which a secret stands. The secret itself is not part of it."""

    file: str
    """Path below the run folder; `a.zip!b` for a file in a zip."""
    line: int
    """Number of the line, from 1."""
    what: str
    """Name of the known secret, or the shape."""
    known: bool
    """Whether it is a secret that is known."""


def places(folder: Path, scrubber: Scrubber) -> Iterator[Place]:
    """Yield the places at which secrets stand in a run folder, in the order of its files.

    Raises UsageError for what is no file of a run.
    """
    from exact.runs.folder_check import files_of

    for path, _ in sorted(files_of(folder)):
        found = sorted(set(_in_file(path, path.relative_to(folder).as_posix(), scrubber)), key=lambda place: (place.file, place.line))
        yield from found[:_MOST]


def _in_file(path: Path, name: str, scrubber: Scrubber) -> Iterator[Place]:
    yield from _in_text(name, name, scrubber)
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(b"PK\x03\x04"):
            yield from _in_zip(file, name, scrubber)
            return
        if start.startswith(_PICTURES) or path.suffix == ".png":
            data = file.read()
            yield from _in_text(_text_of(data), name, scrubber, lines=False)
            yield from _in_text("\n".join(_texts_of(data)), name, scrubber, lines=False)
            return
        before, line = b"", 1
        while chunk := file.read(_CHUNK):
            data = before + chunk
            yield from _in_text(_text_of(data), name, scrubber, line=line)
            before = data[-_OVERLAP:]
            line += data.count(b"\n") - before.count(b"\n")
    if path.suffix in (".jsonl", ".json") or "blobs" in path.parts:
        yield from _in_fields(path, name, scrubber)


def _in_text(text: str, name: str, scrubber: Scrubber, *, line: int = 1, lines: bool = True) -> Iterator[Place]:
    from exact.secrecy.shapes import shapes

    found = [(each.start, each.name, True) for each in scrubber.find(text)] + [(each.start, each.what, False) for each in shapes(text)]
    if not found:
        return
    ends = [at for at, letter in enumerate(text) if letter == "\n"] if lines else []
    for at, what, known in found:
        yield Place(name, line + bisect.bisect_left(ends, at), what, known)


def _in_fields(path: Path, name: str, scrubber: Scrubber) -> Iterator[Place]:
    """Yield where a secret is split over several fields of JSON."""
    if not scrubber:
        return
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_JSON):
            number += 1
            if line[:1] not in (b"{", b"["):
                return
            try:
                given = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if scrubber.value(given) is not given:
                yield from (Place(name, number, what, True) for what in sorted(_names_in(scrubber.value(given))))


def _names_in(value: Any) -> set[str]:
    text = json.dumps(value, ensure_ascii=False)
    return {part.partition(">")[0] for part in text.split("<secret:")[1:]} or {"a known secret"}


def _in_zip(file: Any, name: str, scrubber: Scrubber) -> Iterator[Place]:
    try:
        with zipfile.ZipFile(file) as whole:
            left = _UNPACKED
            for entry in whole.infolist():
                with whole.open(entry) as inner:
                    data = inner.read(min(left, _UNPACKED))
                left -= len(data)
                yield from _in_text(_text_of(data), f"{name}!{entry.filename}", scrubber)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        return  # it is no zip that anything opens


def _texts_of(data: bytes) -> list[str]:
    """Return the texts that a picture carries, compressed ones too. A picture that does not open has none."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return [str(each) for each in (*image.info.items(), *image.getexif().items())]
    except Exception:  # noqa: BLE001 - a decoder of pictures may raise anything for a hostile one, and has told no text then
        return []


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")
