"""Images packed against another, and unpacked: the same to the byte."""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.sandbox import pack

PAGES = [bytes([n]) * pack.PAGE for n in range(5)]


def image(folder: Path, pages: bytes, rest: bytes = b"kernel") -> Path:
    folder.mkdir(parents=True)
    (folder / "pages.img").write_bytes(pages)
    (folder / "checkpoint.img").write_bytes(rest)
    (folder / "manifest.json").write_text("{}")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(
    base=st.lists(st.sampled_from(PAGES)),
    own=st.lists(st.one_of(st.sampled_from(PAGES), st.binary(min_size=pack.PAGE, max_size=pack.PAGE))),
    tail=st.binary(max_size=pack.PAGE - 1),
)
def test_a_packed_folder_unpacks_to_the_same(base: list[bytes], own: list[bytes], tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        packs(Path(folder), base, own, tail)


def packs(tmp: Path, base: list[bytes], own: list[bytes], tail: bytes) -> None:
    below, mine = image(tmp / "base", b"".join(base) + tail), image(tmp / "mine", b"".join(own) + tail[:-1])
    before = content(mine)
    pack.pack(mine, below)
    assert set(content(mine)) == {"pages.img.packed", "checkpoint.img.packed", "manifest.json"}
    pack.unpack(mine, below)
    assert content(mine) == before


def test_pages_that_the_base_has_cost_next_to_nothing(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(200 * pack.PAGE)
    below, mine = image(tmp_path / "base", data), image(tmp_path / "mine", data[pack.PAGE :] + os.urandom(pack.PAGE))
    alone = image(tmp_path / "alone", data)
    subprocess.run([sys.executable, pack.__file__, mine, below], check=True)
    pack.pack(alone, None)
    assert (mine / "pages.img.packed").stat().st_size < 2 * pack.PAGE < 200 * pack.PAGE < (alone / "pages.img.packed").stat().st_size


@pytest.mark.parametrize("harm", ["cut", "flip", "other base", "empty"])
def test_a_damaged_archive_is_reported_and_not_unpacked(tmp_path: Path, harm: str) -> None:
    below, mine = image(tmp_path / "base", PAGES[1] + PAGES[2]), image(tmp_path / "mine", PAGES[2] + os.urandom(pack.PAGE))
    pack.pack(mine, below)
    packed = mine / "pages.img.packed"
    data = bytearray(packed.read_bytes())
    if harm == "other base":
        (below / "pages.img").write_bytes(PAGES[3] * 2)
    data[-2000] ^= 1 if harm == "flip" else 0
    packed.write_bytes({"cut": data[:-10], "empty": b""}.get(harm, data))
    with pytest.raises(ValueError, match="is damaged"):
        pack.unpack(mine, below)
    assert {path.name for path in mine.glob("pages*")} == {"pages.img.packed"}


def test_where_there_is_no_space_an_image_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = image(tmp_path / "mine", os.urandom(10 * pack.PAGE))
    before = content(mine)
    limited = f"ulimit -f 8; exec {sys.executable} {pack.__file__} {mine}"
    done = subprocess.run(["bash", "-c", f"trap '' XFSZ; {limited}"], capture_output=True, text=True)
    assert done.returncode and "File too large" in done.stderr and content(mine) == before
