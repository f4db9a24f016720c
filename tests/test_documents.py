"""Files that strangers give: each is plain data or an error in one line."""

import os
from pathlib import Path

import pytest

from exact.config import reading
from exact.errors import UsageError
from exact.untrusted import parse_yaml, read_bounded, read_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}\n" for n in range(1, 12))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500))
STRANGE = {
    "number too long": "a: " + "9" * 5000,
    "number too long, in base 16": "a: 0x" + "f" * 5000,
    "number too long, in base 60": "a: 1" + ":10" * 5000,
    "no number": "a: !!int b",
    "no number, empty": "a: !!int ''",
    "no truth": "a: !!bool b",
    "no date": "a: 2001-99-99",
    "no date, by its tag": "a: !!timestamp b",
    "an escape above all characters": 'a: "\\Uffffffff"',
    "half a character": 'a: "\\ud800"',
    "code": "a: !!python/object/apply:os.system [true]",
    "billion laughs": LAUGHS,
    "merges of merges": MERGES,
    "an alias in itself": "a: &a [*a]",
    "a merge of itself": "a: &a {<<: *a}",
    "a key twice": "url: http://a.test\nurl: http://b.test",
    "deep": "a: " + "[" * 300 + "]" * 300,
    "deep by aliases": CHAIN,
    "deep without brackets": "- " * 2000,
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE.keys())
def test_yaml_that_is_no_plain_data_is_an_error_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^f\.yaml is (not YAML|nested too deeply)") as raised:
        parse_yaml(text, "f.yaml")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 1000


def test_merges_and_aliases_are_read_as_ever() -> None:
    text = "base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\ntwo: {<<: [*base, *base]}\nlist: &l [1]\nagain: *l"
    assert parse_yaml(text, "f.yaml") == {
        "base": {"a": 1, "b": 2}, "one": {"a": 1, "b": 3}, "two": {"a": 1, "b": 2}, "list": [1], "again": [1]
    }  # fmt: skip


@pytest.mark.parametrize("data", [b"a: \xe9", "a: b".encode("utf-16"), b"a: \xed\xa0\x80", b"a: \x00"])
def test_a_file_in_another_encoding_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f.yaml").write_bytes(data)
    with pytest.raises(UsageError, match=r"f\.yaml is not YAML"):
        read_yaml(tmp_path / "f.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("name", ["fifo", "/dev/zero"])
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is a pipe or a device: name a regular file"):
        read_bounded(tmp_path / name)
    with pytest.raises(UsageError, match="is a pipe or a device"):
        reading.load(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_what_a_shell_pipes_in_is_read() -> None:
    reading_end, writing_end = os.pipe()
    os.write(writing_end, b"search: {iterations: 3}")
    os.close(writing_end)
    assert reading.load(Path(f"/dev/fd/{reading_end}")).search.iterations == 3
    os.close(reading_end)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"#" * 100)
    assert len(read_bounded(tmp_path / "f.yaml", 100)) == 100
    with pytest.raises(UsageError, match="has more than 99 bytes"):
        read_bounded(tmp_path / "f.yaml", 99)
