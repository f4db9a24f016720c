"""Other forms of an attempt."""

import ast
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image

from exact.cli.main import main
from exact.config import load_recorded
from exact.observation import Element, Observation
from exact.report.export.picture import dot
from exact.report.export.playwright import _locator
from exact.report.model.reading import Reading
from exact.runs.journal.store import RunFolder
from tests.report.journals import hostile_run

HOSTILE = ['"""\nimport os\nos.abort()\n"""', "\\", "a\nb", "'); raise SystemExit  #", '"]; } digraph x {']


def exported(kind: str, run: RunFolder, folder: Path) -> str:
    assert main(["export", kind, str(run.path), "--out", str(folder / "out")]) == 0
    return (folder / "out").read_text()


def test_the_committed_path_is_a_test_that_finds_elements_by_role_and_name(shop: RunFolder, tmp_path: Path) -> None:
    text = exported("playwright", shop, tmp_path)
    assert "page.get_by_role('link', name='Green tea', exact=True).click()" in text
    assert "page.get_by_role('spinbutton', name='Quantity', exact=True).fill('2')" in text


def test_one_of_several_equal_buttons_is_named_by_its_row() -> None:
    found = [("row", 0, ""), ("cell", 1, "Ann"), ("button", 1, "Delete"), ("row", 0, ""), ("cell", 1, "Bob"), ("button", 1, "Delete")]
    elements = tuple(Element(id=str(i), role=role, depth=depth, name=name) for i, (role, depth, name) in enumerate(found))
    assert _locator(Observation(text="", elements=elements), "5") == (
        "page.get_by_role('row').filter(has_text='Bob').get_by_role('button', name='Delete', exact=True)"
    )


def test_a_text_that_is_also_its_element_s_id_is_typed(tmp_path: Path) -> None:
    assert ".fill('3')" in exported("playwright", hostile_run(tmp_path / "run", "3"), tmp_path)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_pages_and_models_is_no_code(text: str, tmp_path: Path) -> None:
    module = ast.parse(exported("playwright", hostile_run(tmp_path / "run", text), tmp_path))
    assert [type(each).__name__ for each in module.body] == ["Expr", "ImportFrom", "FunctionDef"]
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    roots = {next(n.id for n in ast.walk(call) if isinstance(n, ast.Name)) for call in calls}
    assert roots <= {"page", "expect"}


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("text", HOSTILE)
def test_graphviz_draws_any_page_text(text: str, tmp_path: Path) -> None:
    drawing = ET.fromstring(exported("svg", hostile_run(tmp_path / "run", text), tmp_path))
    assert drawing.tag.endswith("svg")


def test_without_graphviz_it_says_how_to_get_it(
    shop: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["export", "svg", str(shop.path), "--out", str(tmp_path / "x.svg")]) == 2
    assert "install the package graphviz" in capsys.readouterr().err


def test_the_path_moves_from_screenshot_to_screenshot(shop: RunFolder, tmp_path: Path) -> None:
    picture = ET.fromstring(exported("trajectory", shop, tmp_path))
    frames = [each for each in picture.iter() if each.tag.endswith("}g")]
    assert len(frames) >= 3 and sum(each.get("visibility") == "visible" for each in frames) == 1
    assert not [each for each in picture.iter() if each.tag.endswith("script")]


@pytest.mark.parametrize(("suffix", "kind"), [("", "WEBP"), (".png", "PNG"), (".gif", "GIF")])
def test_the_path_is_a_moving_picture(suffix: str, kind: str, shop: RunFolder, tmp_path: Path) -> None:
    assert main(["export", "gif", str(shop.path), "--out", str(tmp_path / f"out{suffix}")]) == 0
    with Image.open(tmp_path / f"out{suffix}") as picture:
        assert picture.format == kind and getattr(picture, "n_frames", 1) >= 3 and picture.width <= 960


def test_a_moving_picture_of_an_unknown_kind_is_refused(shop: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "gif", str(shop.path), "--out", str(tmp_path / "out.mp4")]) == 2
    assert "choose from .webp" in capsys.readouterr().err


def test_the_tree_is_a_graph_in_three_notations(shop: RunFolder, tmp_path: Path) -> None:
    tree = Reading(next(shop.path.glob("tasks/*/journal.jsonl")), load_recorded(shop.path), shop.blobs).state.search.tree
    graph = ET.fromstring(exported("graphml", shop, tmp_path))
    found = {int(each.attrib["id"]) for each in graph.iter() if each.tag.endswith("}node")}
    assert found == {node.id for node in tree.walk(tree.nodes[0])}
    assert [node["id"] for node in json.loads(exported("json", shop, tmp_path))["nodes"]] == [node.id for node in tree.nodes]
    assert exported("dot", shop, tmp_path).startswith("digraph")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize(("kind", "begins"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_the_tree_is_drawn_for_paper_and_screen(kind: str, begins: bytes, shop: RunFolder, tmp_path: Path) -> None:
    assert main(["export", kind, str(shop.path), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_bytes().startswith(begins)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_the_decision_path_is_a_picture(shop: RunFolder, tmp_path: Path) -> None:
    assert main(["export", "path", str(shop.path), "--out", str(tmp_path / "out.png")]) == 0
    with Image.open(tmp_path / "out.png") as picture:
        assert picture.width > 100


def test_the_decision_path_leaves_out_what_is_two_actions_away(shop: RunFolder) -> None:
    reading = Reading(next(shop.path.glob("tasks/*/journal.jsonl")), load_recorded(shop.path), shop.blobs)
    path = frozenset(reading.state.live.path)
    few, all_ = dot(reading.state.search.tree, path, path=True), dot(reading.state.search.tree, path)
    assert all(f"n{id} [" in few for id in path)
    assert few.count("->") < all_.count("->")
