"""Folders and images of containers as roots."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from exact.environments.sandbox.root import root_folder
from exact.errors import EnvironmentFailure


def tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return made.getvalue()


LAYERS = [tar({"etc/version": b"1", "etc/old": b"1"}), tar({"etc/version": b"2", "etc/.wh.old": b""})]


def oci(layers: list[bytes]) -> dict[str, bytes]:
    """Write an OCI image layout with a nested index and an image of a foreign machine before ours."""
    blobs = {}

    def blob(content: bytes, **more: object) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}", "size": len(content), **more}

    manifest = blob(json.dumps({"layers": [blob(layer) for layer in layers]}).encode())
    foreign = blob(json.dumps({"layers": []}).encode(), platform={"architecture": "sparc"})
    inner = blob(json.dumps({"manifests": [foreign, manifest]}).encode())
    return {"oci-layout": b"{}", "index.json": json.dumps({"manifests": [inner]}).encode(), **blobs}


def saved(layers: list[bytes]) -> dict[str, bytes]:
    """Write an archive in the older form of `docker save`."""
    named = {f"{number}/layer.tar": layer for number, layer in enumerate(layers)}
    return {"manifest.json": json.dumps([{"Config": "c.json", "Layers": list(named)}]).encode(), **named}


def written(tmp_path: Path, files: dict[str, bytes]) -> Path:
    (path := tmp_path / "image.tar").write_bytes(tar(files))
    return path


@pytest.mark.parametrize("image", [oci(LAYERS), saved(LAYERS), {"etc/version": b"2"}], ids=["OCI layout", "docker save", "docker export"])
def test_an_image_is_unpacked_layer_by_layer_once(tmp_path: Path, image: dict[str, bytes]) -> None:
    root = root_folder(written(tmp_path, image), cache=tmp_path / "cache")
    assert {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()} == {"etc/version": b"2"}
    (root / "mark").touch()
    assert root_folder(tmp_path / "image.tar", cache=tmp_path / "cache") == root and (root / "mark").exists()
    assert list((tmp_path / "cache").iterdir()) == [root]


def test_an_image_that_was_replaced_is_unpacked_anew(tmp_path: Path) -> None:
    first = root_folder(written(tmp_path, {"a": b"1"}), cache=tmp_path / "cache")
    second = root_folder(written(tmp_path, {"a": b"22" * 10_000}), cache=tmp_path / "cache")
    assert first != second and (second / "a").stat().st_size == 20_000


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert root_folder(tmp_path) == tmp_path.resolve()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({**saved(LAYERS), "1/layer.tar": b"no tar"}, "cannot be read"),
        ({"manifest.json": b"[]"}, "is not an image in a known format"),
        ({"manifest.json": b'[{"Layers": ["x/layer.tar"]}]'}, "lacks x/layer.tar"),
        ({name: content[:-1] + b"X" if "blobs" in name else content for name, content in oci(LAYERS).items()}, "does not match its digest"),
    ],
)
def test_a_damaged_image_is_refused_and_leaves_nothing(tmp_path: Path, files: dict[str, bytes], why: str) -> None:
    with pytest.raises(EnvironmentFailure, match=why):
        root_folder(written(tmp_path, files), cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_invalid_or_missing_archive_is_named(tmp_path: Path) -> None:
    (text := tmp_path / "text").write_text("hello")
    with pytest.raises(EnvironmentFailure, match="is not a tar archive"):
        root_folder(text, cache=tmp_path / "cache")
    with pytest.raises(EnvironmentFailure, match="cannot be read: No such file"):
        root_folder(tmp_path / "none")
