"""Mistakes of who trains and serves: one line with the way out, and nothing half-written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exact.cli.main import main
from exact.errors import UsageError
from exact.learning.builtin import rounds
from exact.learning.builtin.rounds import BuiltinSettings
from exact.learning.train import grpo, sft
from exact.learning.train.episodes import Episode, EpisodeStart
from exact.learning.train.settings import GRPOSettings, SFTSettings
from exact.runs.lock import LOCK, sole


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of a training, empty: what reaches them is no mistake that was found before."""
    for name in ("torch", "datasets", "transformers", "trl"):
        empty = SimpleNamespace(Dataset=None, set_seed=None, SFTConfig=None, SFTTrainer=None)
        monkeypatch.setitem(sys.modules, name, empty)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "does not read"),
        ('{"text": "a"}', "is no conversation: export imitation or exploratory"),
        ("\u0000", "does not read"),
    ],
)
def test_an_export_that_is_no_conversation_is_named_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    whole = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})
    (tmp_path / "data.jsonl").write_text(f"{whole}\n{line}\n")
    with pytest.raises(UsageError, match=words) as found:
        list(sft.read_lines([str(tmp_path / "data.jsonl")]))
    assert "data.jsonl" in str(found.value) and "\n" not in str(found.value)


def test_an_export_that_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match=r"the export gone\.jsonl does not read: .*No such file"):
        list(sft.read_lines(["gone.jsonl"]))


@pytest.mark.parametrize(
    "episode",
    [
        Episode(EpisodeStart("t", 0), [1]),
        Episode(EpisodeStart("t", 0), [1], [2, 3], [1], [0.0, 0.0]),
        Episode(EpisodeStart("t", 0), [1], [2], [0], [0.0]),
    ],
)
def test_a_rollout_without_a_sampled_token_or_of_different_lengths_is_an_error(episode: Episode) -> None:
    with pytest.raises(UsageError, match=r"an episode of EpisodeStart\(task='t', seed=0\) has no sampled token"):
        grpo.rows([episode])


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_a_folder_that_is_taken_is_refused_before_the_training(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match="a training does not replace a model"):
        if kind == "sft":
            sft.train(SFTSettings(model="tiny", data=("data.jsonl",), out=str(tmp_path)))
        else:
            grpo.train(GRPOSettings(model="tiny", server="http://server", out=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_a_training_whose_folder_is_in_use_is_refused(tmp_path: Path) -> None:
    settings = BuiltinSettings(out=str(tmp_path / "builtin"))
    with sole(tmp_path / "builtin", LOCK), pytest.raises(UsageError, match=r"is being run by another process: wait for it or end it$"):
        rounds.train(settings, print)
    assert [path.name for path in (tmp_path / "builtin").iterdir()] == [LOCK]


def test_a_model_that_cannot_be_saved_leaves_no_folder(tmp_path: Path) -> None:
    def full(folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "half").write_text("")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        sft.save(SimpleNamespace(save_pretrained=full), None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("serve", "toy/mase"), "did you mean 'maze'"),
        (("serve", "miniwob/click-tset"), "did you mean"),
        (("serve", "toy/maze", "other"), "only `exact serve model` takes a second argument"),
        (("serve", "model"), "name the model"),
    ],
)
def test_what_cannot_be_served_is_one_line(args: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(args)) != 0
    shown: Any = capsys.readouterr().err.strip()
    assert words in shown and shown.count("\n") == 0 and "Traceback" not in shown


@pytest.mark.parametrize("cut", [None, "", '{"global_step": 3, "log_hist'])
def test_a_checkpoint_whose_state_was_cut_off_is_not_gone_on_from(tmp_path: Path, cut: str | None) -> None:
    for step, state in ((2, '{"global_step": 2}'), (3, cut)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert grpo.last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-2")
