import json
from pathlib import Path

import pytest

from exact.cli.main import main
from tests.report.journals import new_run, shop_run


def test_report_writes_the_pages_of_a_run_and_prints_their_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop_run(tmp_path / "run")
    assert main(["report", str(run.path)]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in paths] == ["report.html", "index.html"]
    assert all(path.stat().st_size for path in paths)


def test_report_as_json_names_each_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop_run(tmp_path / "run")
    assert main(["report", str(run.path), "--json", "--no-screenshots", "--task", "shop/*"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said["reports"]) == ["shop/tea?seed=1"] and said["index"].endswith("index.html")


def test_report_of_one_task_goes_where_out_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = shop_run(tmp_path / "run"), tmp_path / "elsewhere.html"
    assert main(["report", str(run.path), "--out", str(out)]) == 0
    assert "Solved" in out.read_text()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--task", "shop/te"], "did you mean 'shop/tea?seed="),
        (["--task", "shop/*", "--out", "x.html"], "2 tasks match"),
        ([], "was started"),
    ],
)
def test_a_run_that_cannot_be_reported_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    run, _ = new_run(tmp_path / "run", "shop/tea?seed=1", "shop/tea?seed=2")
    if "--out" in args:
        for task in run.manifest.tasks:
            (run.task_folder(task)).mkdir(parents=True)
            (run.task_folder(task) / "journal.jsonl").touch()
    assert main(["report", str(run.path), *args]) == 2
    assert says in capsys.readouterr().err


def test_no_run_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "no run in" in capsys.readouterr().err
