"""Runs and benchmarks in a bucket of a server of the S3 kind, without a shared folder."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from .kills import EXACT

server = pytest.importorskip("moto.server", reason="moto is not installed: shells/setup.sh --extras")
pytest.importorskip("s3fs", reason="s3fs is not installed: shells/setup.sh --extras")
URL = "s3://bucket/benchmarks/first"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve an empty bucket, and name it in the environment."""
    for name, value in {"ACCESS_KEY_ID": "of-nobody", "SECRET_ACCESS_KEY": "of-nobody", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    serving = server.ThreadedMotoServer(port=0, verbose=False)
    serving.start()
    _, port = serving.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).call_s3("create_bucket", Bucket="bucket")
    yield
    urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
    serving.stop()


def start(home: Path, *words: str) -> subprocess.Popen[str]:
    """Start `exact` as on a machine of its own, with a home folder of its own."""
    home.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.Popen([*EXACT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=home)


def run(home: Path, *words: str) -> tuple[int, str, str]:
    process = start(home, *words)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_a_benchmark_in_a_bucket_goes_on_on_another_machine(bucket: None, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    tasks = "miniwob/click-test-2?seed=1..6"
    begun = start(one, "bench", tasks, "--agent", "react", "--parallel", "1", "--no-reports", "--out", URL)
    assert begun.stderr is not None and "1/6" in begun.stderr.readline()
    begun.send_signal(signal.SIGINT)
    _, told = begun.communicate(timeout=120)
    assert begun.returncode == 130 and f"exact bench --resume --out {URL}" in told
    assert not (one / "cache" / "exact" / "stored").exists() or not list((one / "cache" / "exact" / "stored").iterdir())

    code, out, told = run(two, "show", URL, "--progress", "--json")
    assert code == 0, told
    assert 1 <= json.loads(out)["agents"][0]["done"] < 6
    code, out, told = run(two, "bench", "--resume", "--no-reports", "--out", URL)
    assert code == 0 and f"{URL}/index.html" in out, told
    code, out, _ = run(one, "show", f"{URL}/agents/react", "--json")
    assert code == 0

    import s3fs

    lines = s3fs.S3FileSystem(skip_instance_cache=True).cat_file("bucket/benchmarks/first/results.jsonl").decode().splitlines()
    results = [json.loads(line) for line in lines]
    assert [(each["task"], each["status"]) for each in results] == [(f"miniwob/click-test-2?seed={seed}", "scored") for seed in range(1, 7)]


def test_a_bucket_that_does_not_answer_is_one_line(bucket: None, tmp_path: Path) -> None:
    code, _, told = run(tmp_path / "one", "run", "miniwob/click-test-2?seed=1", "--out", "s3://no-such-bucket/run")
    assert (code, told.count("\n")) == (1, 1) and "s3://no-such-bucket/run" in told and "credentials" in told, told
