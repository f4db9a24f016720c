import pytest

from exact.agents.value.samples import SCALES, grade_scale
from exact.errors import UsageError


def test_each_scale_goes_from_one_to_nothing_and_never_up():
    for scale in SCALES.values():
        values = [scale.value(letter) for letter in "ABCDE"]
        assert values[0] == 1.0 and values[-1] == 0.0 and values == sorted(values, reverse=True)


def test_a_signed_scale_is_carried_over_by_one_stated_transform():
    assert [grade_scale("desktop").value(letter) for letter in "ABCDE"] == pytest.approx([1.0, 0.75, 0.6, 0.4, 0.0])
    assert [grade_scale("reinforced").value(letter) for letter in "ABCDE"] == pytest.approx([1.0, 0.85, 0.75, 0.4, 0.0])


def test_an_unknown_scale_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'web'"):
        grade_scale("wep")
