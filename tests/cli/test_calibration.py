import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.agents.agent import Agent
from exact.agents.recalibrate import load_curve
from exact.cli.main import main
from exact.config import Config, dump
from exact.config import load as load_config
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze
from exact.models.base import ChatModel
from exact.prompts.library import prompt_names
from exact.signature import sign
from tests.runs.toys import toy_agent, toy_runner


async def searched(folder: Path) -> Path:
    runner = toy_runner(folder, ToyFactory(maze()))
    await runner.run()
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    import asyncio

    return asyncio.run(searched(tmp_path / "run"))


def test_it_reports_the_quality_of_the_evaluations(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "calibration", str(run)]) == 0
    out = capsys.readouterr().out
    assert "committed states of 1 task" in out and "Brier score" in out and "led to success" in out
    assert "AUC in a task -  (requires a task with states of both outcomes)" in out and "ECE " in out


def test_json_output_is_one_object_a_sample(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "calibration", str(run), "--json"]) == 0
    [figures] = json.loads(capsys.readouterr().out)
    assert figures["sample"] == "committed" and 0 <= figures["brier"][0] <= 1


def test_the_curve_it_writes_can_be_loaded(run: Path, tmp_path: Path) -> None:
    assert main(["train", "calibration", str(run), "--fit", str(tmp_path / "curve.json")]) == 0
    assert load_curve(str(tmp_path / "curve.json")).probabilities == (1.0,) * len(load_curve(str(tmp_path / "curve.json")).values)


def test_a_torn_last_label_is_left_out_and_another_that_does_not_read_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = '{"task": "toy", "node": 1, "value": 0.5, "success": true, "steps": 1}\n'
    (run / "labels.jsonl").write_text(label + label[:20])
    assert main(["train", "calibration", str(run)]) == 0 and "1 drawn state" in capsys.readouterr().out
    (run / "labels.jsonl").write_text("x\n" + label)
    assert main(["train", "calibration", str(run)]) == 1 and "labels.jsonl:1 does not read" in capsys.readouterr().err


def test_no_curve_is_fitted_to_calibrated_evaluations(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = str(tmp_path / "curve.json")
    assert main(["train", "calibration", str(run), "--fit", curve]) == 0
    settings = load_config(run / "config.yaml")
    value = msgspec.structs.replace(settings.value, calibration=curve)
    (run / "config.yaml").write_text(dump(msgspec.structs.replace(settings, value=value)))
    assert main(["train", "calibration", str(run)]) == 0 and f"calibrated by {curve}" in capsys.readouterr().out
    assert main(["train", "calibration", str(run), "--fit", str(tmp_path / "again.json")]) == 2
    assert "value.calibration" in capsys.readouterr().err and not (tmp_path / "again.json").exists()


def test_label_draws_states_and_saves_their_outcomes(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restore each state in a fresh environment, and none twice, for any number of labels and any seed."""
    environment, opened = maze(), []

    class Counted(ToyFactory):
        def open(self, *, simulation: bool) -> Any:
            opened.append(simulation)
            return super().open(simulation=simulation)

    class Suite:
        name = "toy"

        def environments(self, browser: object) -> object:
            return nullcontext(Counted(environment))

    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        assert "mine" in prompt_names(), "the run's own prompts"
        return toy_agent(environment)(config, models)

    (tmp_path / "mine.j2").write_text("---\nname: mine\nversion: 1\ninputs: []\n---\n")
    (run / "config.yaml").write_text(dump(msgspec.structs.replace(load_config(run / "config.yaml"), prompts=str(tmp_path))))
    sign(run)
    monkeypatch.setattr("exact.benchmarks.registry.suite", lambda id: Suite())
    monkeypatch.setattr("exact.agents.agent.build_agent", build)
    for count in (3, 5):
        assert main(["train", "calibration", str(run), "--label", str(count), "--seed", str(count), "--json"]) == 0
        assert len(opened) == count
        samples = {found["sample"]: found for found in json.loads(capsys.readouterr().out)}
        assert set(samples) == {"committed", "drawn"} and samples["drawn"]["states"] == count
    lines = [json.loads(line) for line in (run / "labels.jsonl").read_text().splitlines()]
    assert len({line["node"] for line in lines}) == len(lines) == 5 and any(line["success"] for line in lines)
