"""The page of a training run, and the other places that TRL logs to."""

from __future__ import annotations

import math

import pytest

from exact.errors import UsageError
from exact.learning.train.curves import curves, reported, training_page

HISTORY = [
    {"reward": 0.25 * step, "loss": 1.0 / (step + 1), "completions/mean_length": 9.0, "entropy": 0.5, "epoch": 1.0} for step in range(5)
]


def test_each_figure_of_every_step_has_a_curve() -> None:
    reward, loss, length, entropy = curves(HISTORY)
    assert (reward.first, reward.last, reward.least, reward.most) == ("0", "1", "0", "1")
    assert reward.points == "0.0,150.0 105.0,112.5 210.0,75.0 315.0,37.5 420.0,0.0"
    assert loss.title == "Loss" and length.points.endswith("420.0,150.0") and "Entropy" in entropy.title
    assert [each.title for each in curves([each | {"kl": 0.1} for each in HISTORY])][4] == "Divergence from the first model (KL)"


def test_a_figure_that_some_steps_lack_has_none_and_one_that_is_no_number_is_a_gap() -> None:
    found = curves([*HISTORY, {"reward": math.nan}])
    assert [each.title for each in found] == ["Reward of an episode, mean of the step"]
    assert found[0].last == "nan" and len(found[0].points.split()) == 5
    assert curves([]) == [] and curves([{"loss": math.inf}])[0].points == ""


def test_the_page_is_one_file_without_scripts_and_names_are_data() -> None:
    page = training_page("<b>run</b>", HISTORY)
    assert (
        "&lt;b&gt;run" in page and page.count("<polyline") == 4 and "<script" not in page and "http" not in page.replace("http-equiv", "")
    )


def test_a_place_whose_package_is_missing_is_refused_with_the_way_out() -> None:
    reported(())
    with pytest.raises(UsageError, match="pip install no_such_tracker"):
        reported(("no_such_tracker",))
