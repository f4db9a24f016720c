"""Kernels of OpenBLAS."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exact.errors import UsageError
from exact.learning.builtin.controls import imitation, shuffled
from exact.learning.builtin.fit import FitSettings
from exact.learning.builtin.machine import COMMON, VARIABLE, _runs_common, use_common_kernels, used_kernels
from exact.learning.builtin.rounds import BuiltinSettings, train

_TOLD = "from exact.learning.builtin.machine import use_common_kernels, used_kernels; use_common_kernels(); print(used_kernels())"


@pytest.mark.skipif(not _runs_common("x86_64", Path("/proc/cpuinfo")), reason="needs a processor with AVX2")
def test_a_fresh_process_and_those_that_it_starts_use_the_common_kernels() -> None:
    code = (
        f"{_TOLD}; import subprocess, sys; subprocess.run([sys.executable, '-c', {_TOLD.split('; use')[0] + '; print(used_kernels())'!r}])"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert len(told) == 2 and set(told) <= {COMMON, "Zen"}


def test_kernels_that_the_environment_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "Nehalem")
    told = subprocess.run([sys.executable, "-c", _TOLD], check=True, capture_output=True, text=True).stdout.split()
    assert told == (["Nehalem"] if _runs_common("x86_64", Path("/proc/cpuinfo")) else [used_kernels()])


@pytest.mark.parametrize(
    ("machine", "text", "wanted"),
    [
        ("x86_64", "flags\t\t: fpu avx2 fma\n", True),
        ("x86_64", "flags\t\t: fpu avx fma\n", False),
        ("x86_64", "", False),
        ("aarch64", "flags\t\t: fpu avx2 fma\n", False),
    ],
)
def test_kernels_are_chosen_only_where_they_run(machine: str, text: str, wanted: bool, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert _runs_common(machine, tmp_path / "cpuinfo") is wanted
    assert not _runs_common(machine, tmp_path / "absent")


def test_the_environment_is_left_alone_where_they_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    use_common_kernels()
    assert VARIABLE not in os.environ


@pytest.mark.usefixtures("executable")
def test_a_training_does_not_go_on_with_other_kernels(tmp_path: Path) -> None:
    pytest.importorskip("miniwob")
    settings = BuiltinSettings(out=str(tmp_path), seeds=(1,), tasks=("miniwob/click-tab",), fit=FitSettings(epochs=1), processes=1)
    train(settings, print)
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert manifest["kernels"] == used_kernels()
    (tmp_path / "run.json").write_text(json.dumps({**manifest, "kernels": "Cray"}))
    for made in (lambda: train(settings, print), lambda: shuffled(tmp_path, print), lambda: imitation(tmp_path, print)):
        with pytest.raises(UsageError, match=r"begun with the kernels of Cray: set OPENBLAS_CORETYPE=Cray"):
            made()
