import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from exact.agents.recalibrate import load
from exact.cli.main import main
from exact.environments.toy import ToyWorlds
from exact.environments.toy_worlds import maze
from tests.runs.toys import toy_agent, toy_runner


async def searched(folder: Path) -> Path:
    runner = toy_runner(folder, ToyWorlds(maze()))
    await runner.run()
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    import asyncio

    return asyncio.run(searched(tmp_path / "run"))


def test_it_reports_what_the_judgements_were_worth(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(run)]) == 0
    out = capsys.readouterr().out
    assert "committed states of 1 tasks" in out and "Brier score" in out and "came to success" in out


def test_as_json_it_is_one_object_a_sample(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(run), "--json"]) == 0
    [figures] = json.loads(capsys.readouterr().out)
    assert figures["sample"] == "committed" and 0 <= figures["brier"][0] <= 1


def test_the_curve_it_writes_can_be_loaded(run: Path, tmp_path: Path) -> None:
    assert main(["calibrate", str(run), "--fit", str(tmp_path / "curve.json")]) == 0
    assert load(str(tmp_path / "curve.json")).probabilities == (1.0,) * len(load(str(tmp_path / "curve.json")).values)


def test_label_draws_states_and_keeps_their_outcomes(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state is gone to in a fresh world, and none twice, however often more are asked for."""
    world = maze()

    class Suite:
        name = "toy"

        def worlds(self, browser: object) -> object:
            return nullcontext(ToyWorlds(world))

    monkeypatch.setattr("exact.benchmarks.registry.suite", lambda id: Suite())
    monkeypatch.setattr("exact.agents.agent.build", lambda config, models: toy_agent(world)(config, models))
    for count in (3, 5):
        assert main(["calibrate", str(run), "--label", str(count), "--json"]) == 0
        samples = {found["sample"]: found for found in json.loads(capsys.readouterr().out)}
        assert set(samples) == {"committed", "drawn"} and samples["drawn"]["states"] == count
    lines = [json.loads(line) for line in (run / "labels.jsonl").read_text().splitlines()]
    assert len({line["node"] for line in lines}) == len(lines) == 5 and any(line["success"] for line in lines)
