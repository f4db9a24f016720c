"""Files of log-ins that strangers give: no browser needed."""

import os
from pathlib import Path

import pytest

from exact.environments.browser.login import read_state
from exact.errors import UsageError


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "[]",
        '{"cookies": 3}',
        '{"cookies": [1, null]}',
        '{"cookies": [{"name": 5}]}',
        '{"cookies": [{"name": "a", "value": "b"}], "origins": 3}',
        '{"origins": [{"origin": 1}]}',
        '{"origins": [{"origin": "http://a.test", "localStorage": [1]}]}',
    ],
)
def test_a_file_that_is_no_log_in_is_an_error_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(UsageError, match=r"state\.json is no log-in: .*: make it with `exact login`"):
        read_state(tmp_path / "state.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_no_log_in(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is a pipe or a device"):
        read_state(tmp_path / "fifo")
