"""`exact audit`: look for secrets in a whole run folder.

Audit of a run folder: places in all its files at which a secret stands that is known, or something that has the shape of one.
"""

from __future__ import annotations

import bisect
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo
from exact.errors import JournalError, UsageError
from exact.runs.folder_check import files_of
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.shapes import shapes
from exact.text import counted

if TYPE_CHECKING:
    from exact.secrecy.values import Secret


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option(
    "--secret-env", "variables", multiple=True, metavar="NAME", help="Environment variable that holds a further secret. Repeatable."
)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="Site file whose secrets are looked for too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@on_storage("run")
def audit(run: Path, variables: tuple[str, ...], site: Path | None, as_json: bool) -> int:
    """Look for secrets in all files of RUN. Exit with code 1 if a file holds one, and print the place.

    Looked for are the secrets of the run's log-ins, headers, accounts, sessions and models, as far as their values can be read here, in any
    case and encoding; and texts with the shape of a private key, a bearer token, a key of a service or basic credentials. Secrets are never
    printed.
    """
    from exact.runs.folder_check import check_folder
    from exact.secrecy.scrubber import Scrubber
    from exact.secrecy.values import Secret

    if not run.is_dir():
        raise UsageError(f"there is no run folder {run}")
    check_folder(run)
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


_CHUNK, _OVERLAP = 4 << 20, 1 << 16
"""Bytes that are looked at together, and those that are looked at twice."""
_JSON = 8 << 20
"""Bytes of the largest line whose fields are looked at together."""
_UNPACKED = 512 << 20
"""Most bytes of a zip that are unpacked."""
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8")
_MOST = 50
"""Places that are reported for one file."""


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
