"""Training data of strangers."""

import os
from pathlib import Path

import pytest

from exact.errors import UsageError
from exact.learning.train.sft import read_lines


@pytest.mark.parametrize(
    "line",
    [
        "[" * 5000,
        '{"messages": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"messages": 3}',
        '{"messages": [1]}',
        '{"prompt": [{}], "completion": "x"}',
        '{"messages": [{"content": 1' + "0" * 5000 + "}]}",
        "null",
        "{",
    ],
)
def test_a_line_that_is_no_conversation_is_an_error_in_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "data.jsonl").write_text(line + "\n")
    with pytest.raises(UsageError, match=r"data\.jsonl") as raised:
        list(read_lines([str(tmp_path / "data.jsonl")]))
    assert "\n" not in str(raised.value)


def test_conversations_are_read_as_ever(tmp_path: Path) -> None:
    turn = '{"role": "user", "content": "a"}'
    (tmp_path / "data.jsonl").write_text(f'{{"messages": [{turn}]}}\n{{"prompt": [{turn}], "completion": [{turn}]}}\n')
    assert [len(turns) for turns in read_lines([str(tmp_path / "data.jsonl")])] == [1, 2]


def test_a_pipe_in_place_of_an_export_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data.jsonl")
    with pytest.raises(UsageError, match="is a pipe or a device"):
        list(read_lines([str(tmp_path / "data.jsonl")]))
