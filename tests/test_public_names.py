import pytest

import exact


def test_every_public_name_is_there() -> None:
    assert [name for name in exact.__all__ if getattr(exact, name, None) is None] == []


def test_every_lazy_name_is_public() -> None:
    assert set(exact._HOME) == set(exact.__all__)


def test_public_names_are_sorted() -> None:
    assert exact.__all__ == sorted(exact.__all__)


def test_a_public_name_is_the_one_of_its_module() -> None:
    from exact.task import Task

    assert exact.Task is Task


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Tusk"):
        exact.Tusk  # noqa: B018
