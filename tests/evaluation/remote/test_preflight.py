"""What is said of nodes before the first attempt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from exact.config import parse
from exact.evaluation.folder import BenchFolder
from exact.evaluation.plan import Plan
from exact.evaluation.remote.cluster import holds
from exact.evaluation.remote.parcel import Cargo
from exact.evaluation.remote.preflight import NodeFaults, _compared, _installed, look, preflight
from exact.runs.journal.versions import versions
from exact.task import Task
from tests.evaluation.remote.lying import LyingRay
from tests.evaluation.toys import toy_bench

MODEL = {"policy": {"model": "some-model", "base_url": "http://models.example/v1", "api_key_env": "KEY_OF_THE_NODE"}}


def cargo(path: Path, config: dict[str, object], *, make: str = "tests.evaluation.toys:worker") -> bytes:
    task = Task(id="own", instruction="", start="http://site.example/")
    plan = Plan(suite="own", own=True, agents=("one",), tasks=(task,))
    folder = BenchFolder.create(path, plan, {"one": parse({"name": "one", **config})})
    return msgspec.msgpack.encode(Cargo.of(folder, make=make, arguments=(), carried=()))


def test_a_node_without_a_key_of_the_configuration_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = cargo(tmp_path / "bench", {"policy": {"kind": "llm"}, "models": MODEL, "reflection": {"kind": "none"}})
    assert ["KEY_OF_THE_NODE" in fault for fault in look(given)[2]] == [True]
    monkeypatch.setenv("KEY_OF_THE_NODE", "a-key-of-this-node")
    assert look(given)[2] == []


def test_a_node_without_a_browser_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_BROWSER", "/nowhere/browser")
    assert look(cargo(tmp_path / "bench", {}))[2] == ["EXACT_BROWSER=/nowhere/browser is not an executable: correct it or unset it"]


def test_a_node_that_cannot_write_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = cargo(tmp_path / "bench", {})
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert "cannot create a temporary folder" in look(given)[2][0]


def test_a_node_without_the_sandbox_that_is_required_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from exact.environments.sandbox import runsc
    from exact.errors import EnvironmentFailure

    def none() -> None:
        raise EnvironmentFailure("runsc is not installed")

    monkeypatch.setattr(runsc, "find_runsc", none)
    _, has, faults = look(cargo(tmp_path / "bench", {"browser": {"sandbox": "required"}}))
    assert (has, faults) == (False, ["runsc is not installed"])


def test_other_versions_and_a_sandbox_on_some_nodes_only_are_faults() -> None:
    here = versions()
    well, old, bare = (
        NodeFaults(here, True, []),
        NodeFaults({**here, "exact": "0.0.1"}, True, []),
        NodeFaults(here, False, []),
    )
    assert [len(lines) for lines in _compared([well, old, bare])] == [0, 1, 1]
    assert _compared([old])[0] == [f"exact is 0.0.1, here {here['exact']}: install the same on all nodes"]
    assert _compared([bare]) == [[]], "no node has a sandbox, so that all attempts are alike"


def test_a_node_where_this_package_is_missing_answers_the_first_question(tmp_path: Path) -> None:
    pickle = pytest.importorskip("ray.cloudpickle", reason="Ray is not installed: shells/setup.sh --extras")
    assert _installed()()["exact"]
    (tmp_path / "sent").write_bytes(pickle.dumps(_installed()))
    program = f"""import importlib.util, pathlib, pickle
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "exact" else find(name, package)
print(pickle.loads(pathlib.Path({str(tmp_path / "sent")!r}).read_bytes())()["exact"] or "none")"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "none\n", done.stderr


def test_a_node_holds_as_many_attempts_as_its_scarcest_resource() -> None:
    assert holds({"browser": 8.0, "GPU": 1.0}, {"browser": 1.0, "gpu": 0.5}) == 2
    assert holds({"browser": 8.0}, {"browser": 1.0, "gpu": 0.5}) == 0


async def test_resources_that_no_node_declares_are_told_with_the_way_to_declare_them(tmp_path: Path) -> None:
    class NoNodes:
        def nodes(self) -> list[object]:
            return []

    toy_bench(tmp_path / "bench", seeds=1)
    (line,) = await preflight(NoNodes(), None, [{"browser": 1.0}])
    assert line.startswith("no node has 1 browser, which attempts take: start one with `ray start --resources='{\"browser\": 4}'`")


@pytest.mark.parametrize("is_lost", [True, False])
async def test_a_node_that_is_lost_while_it_is_asked_is_no_fault(is_lost: bool, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: shells/setup.sh --extras")

    class TwoNodes(LyingRay):
        times = 0

        def nodes(self) -> list[dict[str, object]]:
            self.times += 1
            alive = {"1": True, "2": self.times == 1 or not is_lost}
            named = {name: {"NodeManagerHostname": name, "NodeManagerAddress": name} for name in alive}
            return [{"NodeID": 56 * name, "Alive": alive[name], "Resources": {"browser": 1.0}, **named[name]} for name in alive]

        def remote(self, program: Any) -> Any:
            async def work(place: Any, given: tuple[Any, ...]) -> Any:
                if place.node_id.startswith("2"):
                    raise self.RayError("the node doesn't exist any more")
                return program(*given)

            return SimpleNamespace(
                options=lambda scheduling_strategy, **given: SimpleNamespace(remote=lambda *given: work(scheduling_strategy, given))
            )

    given = cargo(tmp_path / "bench", {})
    lost = [] if is_lost else ["2 (2): cannot be reached: the node doesn't exist any more"]
    assert await preflight(TwoNodes({}), given, [{"browser": 1.0}]) == lost
