"""Reports as files: from whole journals and from broken ones."""

import io
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from exact.errors import JournalError, UsageError
from exact.report import build_index, build_report
from exact.report.model.model import pictures, report
from exact.runs.journal.store import Blobs, ResultLine, RunFolder
from exact.task import Task
from tests.report.journals import SHOP, Page, Recorder, grown_run, new_run, shop_run

GOLDEN = Path(__file__).parent / "golden"


def small(name: str) -> Page:
    """Return a page with five links whose names state their positions."""
    moves = {f"click [{place}]": f"{name}.{place}" for place in range(5)}
    text = "\n".join(f'[{place}] link "{name}.{place}"' for place in range(5))
    return Page(name, tuple((str(place), "link", f"{name}.{place}") for place in range(5)), 0.5, text=text, moves=moves)


def journal(run: RunFolder) -> Path:
    return run.task_folder(run.manifest.tasks[0]) / "journal.jsonl"


def test_a_small_journal_gives_the_golden_report(tmp_path: Path) -> None:
    run, config = new_run(tmp_path / "run", "small", iterations=3)
    environment = {"start": Page("Door", (("3", "button", "Open"),), 0.5, "", {"click [3]": "END"})}
    recorder = Recorder(run, run.manifest.tasks[0], config, environment, screenshots=False)
    recorder.begin()
    recorder.commit()
    recorder.end(None)
    recorder.journal.close()
    found = msgspec.json.format(msgspec.json.encode(report(run, run.manifest.tasks[0], screenshots=False))).decode() + "\n"
    assert found == (GOLDEN / "small.json").read_text()


def test_a_report_cut_off_anywhere_says_what_it_holds(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    whole = journal(run).read_bytes()
    for kept in (len(whole) - 5, len(whole) // 2, len(whole) // 7, 10, 0):
        journal(run).write_bytes(whole[:kept])
        found = report(run, run.manifest.tasks[0], screenshots=False)
        assert found.head.ending == ("solved" if kept > len(whole) - 9 else "unfinished")
        assert found.head.headline in build_report(run, run.manifest.tasks[0]).read_text()


def test_a_damaged_line_ends_the_report_with_a_warning(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    lines = journal(run).read_bytes().split(b"\n")
    journal(run).write_bytes(b"\n".join([*lines[:20], b'{"event": "nonsense"}', *lines[21:]]))
    found = report(run, run.manifest.tasks[0])
    assert "does not read" in found.head.warnings[0]
    assert len(found.nodes) > 1


def test_a_missing_blob_is_a_warning(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    for blob in list((run.path / "blobs").glob("*/*"))[::2]:
        blob.unlink()
    found = report(run, run.manifest.tasks[0])
    assert any("is missing" in warning for warning in found.head.warnings)
    assert build_report(run, run.manifest.tasks[0]).exists()


def test_a_task_that_was_not_started_has_no_report(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "run", "never")
    with pytest.raises(JournalError, match="it was not started"):
        build_report(run, run.manifest.tasks[0])


def test_equal_screenshots_are_in_the_page_once(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    found = report(run, run.manifest.tasks[0])
    shown = [node.picture for node in found.nodes if node.picture]
    assert len(found.pictures) == len(set(shown)) < len(shown)


def test_three_hundred_states_with_large_screenshots_stay_under_15_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (36, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((400, 225), Image.Resampling.BICUBIC).save(file, "PNG")
    # distinct for each page, as screenshots of live pages are
    monkeypatch.setattr("tests.report.journals._drawn", lambda page, elements: file.getvalue() + page.title.encode())
    run = grown_run(tmp_path / "run", 350, drawn=small)
    path = build_report(run, run.manifest.tasks[0])
    shots = path.read_text().count("data:image/")
    assert shots >= 300
    assert path.stat().st_size < 15_000_000 < shots * len(file.getvalue())


def test_screenshots_can_be_left_out(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    assert b"data:image/" in build_report(run, run.manifest.tasks[0]).read_bytes()
    assert b"data:image/" not in build_report(run, run.manifest.tasks[0], screenshots=False).read_bytes()


@pytest.mark.parametrize("most", [0.4, 0.22])
def test_a_report_is_no_larger_than_asked(tmp_path: Path, most: float) -> None:
    run = shop_run(tmp_path / "run")
    path = build_report(run, run.manifest.tasks[0], most=most)
    assert path.stat().st_size <= most * 1e6
    assert "data:image/" in path.read_text()


def test_a_size_that_nothing_fits_into_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    with pytest.raises(UsageError, match="even without pictures"):
        build_report(run, run.manifest.tasks[0], most=0.02)


def test_a_running_journal_gives_a_report_that_grows(tmp_path: Path) -> None:
    run, config = new_run(tmp_path / "run", "shop/tea?seed=1")
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP)
    recorder.begin()
    first = report(run, run.manifest.tasks[0])
    recorder.search()
    second = report(run, run.manifest.tasks[0])
    assert first.head.headline == second.head.headline == "Unfinished"
    assert len(first.nodes) == 1 < len(second.nodes) and len(first.timeline) == 0 < len(second.timeline)
    recorder.journal.close()


def test_the_index_has_a_row_for_each_task(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "run", "shop/<b>?seed=1", "shop/other")
    line = ResultLine(task="shop/<b>?seed=1", seed=1, agent="rmcts", status="scored", score=1.0, actions=4, calls=2, cost=None, oracle=True)
    run.add_result(line)
    page = build_index(run).read_text()
    assert "1 of 2 tasks solved" in page
    assert "shop/&lt;b&gt;" in page and "shop/<b>" not in page
    assert "unknown" in page and "oracle values" in page and "not started" in page


def test_the_index_links_to_the_reports_that_exist(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    path = build_report(run, run.manifest.tasks[0])
    assert f'href="{path.relative_to(run.path).as_posix()}"'.replace("=1", "%3D1") in build_index(run).read_text()


def test_a_full_disk_is_reported_with_the_way_out(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="choose another output folder"):
        build_report(run, run.manifest.tasks[0], out=tmp_path / "file" / "report.html")


def test_a_picture_that_is_none_is_a_warning(tmp_path: Path) -> None:
    blobs, warnings = Blobs(tmp_path), list[str]()
    name = blobs.put(b"no picture")
    assert pictures([name, ""], blobs, 1000, warnings) == {}
    assert "cannot be shown" in warnings[0]


@pytest.mark.parametrize("total", [400_000, 40_000, 8_000])
def test_pictures_shrink_until_they_fit(tmp_path: Path, total: int) -> None:
    blobs, file = Blobs(tmp_path), io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (360, 640, 3), dtype=np.uint8)).save(file, "PNG")
    (picture,) = pictures([blobs.put(file.getvalue())], blobs, total, []).values()
    assert len(picture.src) < total + 100
    assert (picture.width, picture.height) == (640, 360)


def test_tasks_of_one_run_are_distinguished(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "run", "a/b", "a_b")
    first, second = (run.task_folder(Task(id=id, instruction="")) for id in ("a/b", "a_b"))
    assert first != second
