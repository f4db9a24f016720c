"""Prometheus reads the status of runs from the live view."""

import asyncio
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from exact.evaluation.status import exposition
from tests.evaluation.toys import run, toy_bench

LINE = re.compile(r'[a-z_]+\{[a-z]+="(\\.|[^"\\\n])*"(,[a-z]+="(\\.|[^"\\\n])*")*\} -?[0-9.e+]+')
"""A sample of the text format with labels."""


def test_a_benchmark_has_its_counts_by_agent_and_state(tmp_path: Path) -> None:
    asyncio.run(run(toy_bench(tmp_path / "bench")))
    text, media_type = exposition(tmp_path)
    assert 'exact_attempts{run="bench",agent="mcts",state="done"} 3\n' in text and "version=0.0.4" in media_type
    assert text.count("# TYPE exact_attempts gauge\n") == 1
    assert all(LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))


def test_a_name_with_quotes_and_newlines_stays_one_label(tmp_path: Path) -> None:
    toy_bench(tmp_path / 'a"b\nc')
    (line,) = [line for line in exposition(tmp_path)[0].splitlines() if "solved{" in line and "react" in line]
    assert LINE.fullmatch(line) and r'run="a\"b\nc"' in line


def test_a_run_that_does_not_read_is_left_out(tmp_path: Path) -> None:
    toy_bench(tmp_path / "good")
    toy_bench(tmp_path / "bad")
    (tmp_path / "bad" / "bench.json").write_text("{")
    text, _ = exposition(tmp_path)
    assert 'run="good"' in text and 'run="bad"' not in text


def test_an_empty_folder_has_no_metrics(tmp_path: Path) -> None:
    assert exposition(tmp_path)[0] == ""


def test_the_live_view_serves_them_to_whom_has_its_token(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra `live` is not installed")
    from tests.report.live.test_live import served

    toy_bench(tmp_path / "bench")
    with served(tmp_path, token="a" * 16, metrics=exposition) as address:
        asking = urllib.request.Request(f"{address}/metrics", headers={"Authorization": f"Bearer {'a' * 16}"})
        with urllib.request.urlopen(asking) as answer:
            assert 'state="waiting"} 3' in answer.read().decode() and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/metrics")
