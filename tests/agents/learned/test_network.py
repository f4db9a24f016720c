"""The model and its file of weights."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from exact.agents.learned import network
from exact.agents.learned.features import join
from exact.agents.learned.network import LARGEST, SHAPES, About, Network, forward, load, save, untrained
from exact.errors import UsageError
from tests.agents.learned.states import features


def saved(path: Path, **changed: object) -> Path:
    """Write weights, some parts of them changed or left out (None)."""
    save(untrained(), path)
    with np.load(path) as held:
        parts: dict[str, object] = dict(held) | changed
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})  # type: ignore[arg-type]
    return path


async def test_states_together_give_what_each_gives_alone() -> None:
    made = untrained()
    made.parameters["policy"] += 0.5
    made.parameters["value"] += 0.5
    alone = [await features("Select Ann and click Submit."), await features("Click Bob.")]
    together = forward(made.parameters, join(alone))
    each = [forward(made.parameters, one) for one in alone]
    assert together.priors == pytest.approx(np.concatenate([one.priors for one in each]), abs=1e-5)
    assert together.value == pytest.approx(np.concatenate([one.value for one in each]), abs=1e-5)


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = Network(untrained(3).parameters, About(round=2, episodes=5, trained_with_reward=True))
    save(made, tmp_path / "w.npz")
    again = load(tmp_path / "w.npz")
    assert again.about == made.about
    assert all(again.parameters[name] == pytest.approx(part, abs=1e-3) for name, part in made.parameters.items())


@pytest.mark.parametrize(
    "changed",
    [
        {"policy": None},
        {"more": np.zeros(1, np.float16)},
        {"policy": np.zeros(7, np.float16)},
        {"policy": np.zeros(SHAPES["policy"], np.float32)},
        {"policy": np.full(SHAPES["policy"], np.nan, np.float16)},
        {"about": np.frombuffer(b'{"format": 99}', np.uint8)},
        {"about": np.frombuffer(b"{", np.uint8)},
        {"about": np.frombuffer(b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}", np.uint8)},
    ],
)
def test_other_files_are_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="do not load"):
        load(saved(tmp_path / "w.npz", **changed))


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    held = np.array([Touch()], dtype=object)
    buffer = io.BytesIO()
    np.savez(buffer, policy=held, allow_pickle=True)
    for data in (buffer.getvalue(), pickle.dumps(Touch())):
        (tmp_path / "w.npz").write_bytes(data)
        with pytest.raises(UsageError):
            load(tmp_path / "w.npz")
    assert not (tmp_path / "made").exists()


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(bytes(LARGEST + 1))
    with pytest.raises(UsageError, match="has more than 4,000,000 bytes"):
        load(tmp_path / "w.npz")


def test_an_archive_that_unpacks_to_much_more_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_MOST_UNPACKED", 50_000)
    with zipfile.ZipFile(saved(tmp_path / "w.npz", policy=None), "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("policy.npy", bytes(100_000))
    with pytest.raises(UsageError, match=r"its arrays have more than 50,000 bytes"):
        load(tmp_path / "w.npz")


@pytest.mark.parametrize("shape", [f"({10**13},)", f"({10**30},)", "(-1,)", "(" * 60 + ")" * 60])
def test_an_array_that_says_to_be_huge_is_refused(tmp_path: Path, shape: str) -> None:
    head = f"{{'descr': '<f2', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
    with zipfile.ZipFile(saved(tmp_path / "w.npz", policy=None), "a") as file:
        file.writestr("policy.npy", array)
    with pytest.raises(UsageError, match="do not load"):
        load(tmp_path / "w.npz")


def test_the_package_has_weights_that_were_trained_on_the_training_split() -> None:
    about = load().about
    assert about.trained_with_reward
    assert about.round >= 2
    assert about.episodes > 0


@pytest.mark.parametrize("data", [b"text", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_archive_is_refused_without_advice_to_unpickle_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(data)
    with pytest.raises(UsageError, match="no npz file") as refused:
        load(str(tmp_path / "w.npz"))
    assert "pickle" not in str(refused.value)
