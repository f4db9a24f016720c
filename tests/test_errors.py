"""The error model: the type says whose fault it is and what may be done."""

from __future__ import annotations

import pytest

from exact import errors
from exact.errors import (
    ActionError,
    AnswerError,
    BudgetExceeded,
    ExactError,
    InfrastructureError,
    ModelError,
    PromptRefused,
    UsageError,
    unknown,
)
from exact.search.tree import SearchError


def test_wrong_usage_ends_with_2_and_anything_else_with_1() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ExactError)]
    assert {kind.__name__ for kind in kinds if kind.exit_code == 2} == {"UsageError", "EvaluatorError"}
    assert {kind.exit_code for kind in kinds} == {1, 2}


def test_only_failures_of_the_machinery_are_infrastructure() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InfrastructureError)]
    failures = {"InfrastructureError", "EnvironmentFailure", "ModelError", "AnswerError", "PromptRefused", "JournalError"}
    assert {kind.__name__ for kind in kinds} == failures
    assert issubclass(AnswerError, ModelError) and issubclass(PromptRefused, AnswerError)
    assert not any(issubclass(kind, InfrastructureError) for kind in (ActionError, UsageError, BudgetExceeded, SearchError))


@pytest.mark.parametrize(
    "name, says",
    [
        ("clickk", "unknown verb 'clickk': did you mean 'click'?"),
        ("zzz", "unknown verb 'zzz': valid: click, fill, stop"),
        ("", "unknown verb '': valid: click, fill, stop"),
        ("a\nb", r"unknown verb 'a\nb'"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_or_with_all(name: str, says: str) -> None:
    error = unknown("verb", name, ["stop", "click", "fill"])
    assert says in str(error) and "\n" not in str(error)


def test_a_long_list_of_names_is_cut() -> None:
    error = unknown("task", "?", (f"{i:03}" for i in range(100)), way_out="(see `exact list tasks`)")
    assert str(error).endswith("010, 011, ... (see `exact list tasks`)")


@pytest.mark.parametrize(("where", "told"), [("tasks.yaml", "unknown task 'tee' in tasks.yaml: did"), ("'tee'", "unknown task 'tee': did")])
def test_an_unknown_name_error_says_where_it_was_written(where: str, told: str) -> None:
    assert str(unknown("task", "tee", ["tea"], where=where)).startswith(told)


def test_the_beginning_of_a_name_finds_it_and_another_name_those_beside_it() -> None:
    tasks = [f"osworld/{domain}/{id}-2cd5-4ede-8de9-598629438c6e" for domain in ("chrome", "os") for id in ("d06f0d4d", "8ba5ae7a")]
    assert f"did you mean '{tasks[2]}'?" in str(unknown("task", "osworld/os/d06f0d4d", tasks))
    assert str(unknown("task", "osworld/os/x", tasks)).endswith(f"valid: {tasks[3]}, {tasks[2]}")


def test_a_name_without_its_suite_finds_the_nearest_task() -> None:
    assert "did you mean 'toy/maze'?" in str(unknown("task", "mase", ["toy/maze", "toy/form"]))
    assert "did you mean 'miniwob/click-test'?" in str(unknown("task", "click-tset", ["miniwob/click-test", "miniwob/click-tab"]))


def test_an_unknown_name_of_any_length_is_repeated_at_its_beginning_only() -> None:
    assert len(str(unknown("suite", "x" * 3_000_000, ["miniwob"]))) < 300
