"""Archives from elsewhere: nothing leaves the folder, whatever they say."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from exact.environments.sandbox.root import LayerUnpacker, open_archive
from exact.errors import EnvironmentFailure


def layer(path: Path, entries: list[tuple[str, str, str]]) -> Path:
    """Return a tar of (kind, name, content): f file, d folder, s symbolic link, h hard link, c device."""
    kinds = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "s": tarfile.SYMTYPE, "h": tarfile.LNKTYPE, "c": tarfile.CHRTYPE}
    with tarfile.open(path, "w:gz") as file:
        for kind, name, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kinds[kind], 0o4755
            if kind in "sh":
                member.linkname = content
            member.size = len(content) if kind == "f" else 0
            file.addfile(member, io.BytesIO(content.encode()) if kind == "f" else None)
    return path


def unpacked(tmp_path: Path, *layers: list[tuple[str, str, str]], limit: int = 1 << 20) -> Path:
    (root := tmp_path / "root").mkdir(exist_ok=True)
    unpacking = LayerUnpacker(root, limit)
    for number, entries in enumerate(layers):
        with open_archive(layer(tmp_path / f"{number}.tar.gz", entries)) as file:
            unpacking.add(file, "layer")
    return root


def around(tmp_path: Path) -> set[str]:
    """Return the names beside the root."""
    return {path.name for path in tmp_path.iterdir() if not path.name.endswith(".tar.gz")}


@pytest.mark.parametrize("name", ["../out", "/../../out", "a/../../out", "etc/../../../out"])
def test_a_name_that_points_outside_lands_inside(tmp_path: Path, name: str) -> None:
    root = unpacked(tmp_path, [("f", name, "x")])
    assert around(tmp_path) == {"root"} and [path.name for path in root.rglob("out")] == ["out"]


@pytest.mark.parametrize("target", ["/", "..", "../../..", "/tmp"])
def test_a_file_behind_a_link_that_points_outside_lands_inside(tmp_path: Path, target: str) -> None:
    root = unpacked(tmp_path, [("s", "link", target), ("f", "link/out", "x"), ("f", "link/deep/out", "x")])
    assert around(tmp_path) == {"root"} and not Path("/tmp/out").exists()
    assert (root / "link").is_symlink() and len(list(root.rglob("out"))) == 2


def test_links_between_folders_of_the_root_are_followed_as_its_programs_would(tmp_path: Path) -> None:
    root = unpacked(tmp_path, [("d", "usr/lib", ""), ("s", "lib", "/usr/lib")], [("f", "lib/new.so", "x")])
    assert (root / "usr" / "lib" / "new.so").read_text() == "x" and (root / "lib").is_symlink()


def test_a_file_takes_the_place_of_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("safe")
    root = unpacked(tmp_path, [("s", "file", str(tmp_path / "victim")), ("f", "file", "x")])
    assert (tmp_path / "victim").read_text() == "safe" and (root / "file").read_text() == "x"


def test_a_hard_link_to_the_outside_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("safe")
    with pytest.raises(EnvironmentFailure, match="layer cannot be unpacked"):
        unpacked(tmp_path, [("h", "file", "../victim")])
    root = unpacked(tmp_path, [("f", "a", "x"), ("h", "b", "a"), ("h", "a", "a")])
    assert (root / "b").read_text() == "x" and (root / "a").stat().st_nlink == 2


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="too many symbolic links"):
        unpacked(tmp_path, [("s", "a", "b"), ("s", "b", "a"), ("f", "a/x", "x")])


def test_a_layer_takes_away_what_it_whites_out(tmp_path: Path) -> None:
    lower = [("f", "keep", "1"), ("f", "gone", "1"), ("f", "folder/old", "1"), ("d", "gone-folder/below", "")]
    root = unpacked(
        tmp_path, lower, [("f", ".wh.gone", ""), ("f", ".wh.gone-folder", ""), ("f", "folder/.wh..wh..opq", ""), ("f", "folder/new", "2")]
    )
    assert {str(path.relative_to(root)) for path in root.rglob("*")} == {"keep", "folder", "folder/new"}


def test_devices_and_set_user_id_bits_are_left_out(tmp_path: Path) -> None:
    root = unpacked(tmp_path, [("c", "dev/null", ""), ("f", "bin/su", "x")])
    assert not (root / "dev" / "null").exists() and (root / "bin" / "su").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("entries", "why"),
    [([("f", "big", "x" * 2000)], "too many bytes"), ([("f", str(n), "") for n in range(3)], "too many files")],
)
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, entries: list[tuple[str, str, str]], why: str) -> None:
    with pytest.raises(EnvironmentFailure, match=why):
        unpacked(tmp_path, entries, limit=1500)


def test_a_truncated_layer_is_refused(tmp_path: Path) -> None:
    whole = layer(tmp_path / "a.tar.gz", [("f", "big", "xyz" * 100_000)])
    os.truncate(whole, whole.stat().st_size // 2)
    with pytest.raises(EnvironmentFailure, match="cannot be unpacked"), open_archive(whole) as file:
        LayerUnpacker(tmp_path, 1 << 20).add(file, "layer")
