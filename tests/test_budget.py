"""Budgets are reserved before they are spent, in nested scopes."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.budget import Budget
from exact.errors import BudgetExceeded


def test_the_scope_and_the_kind_that_ran_out_are_named() -> None:
    task = Budget({"calls": 3})
    search = Budget({"calls": 5, "money": 0.5}, scope="search", parent=task)
    search.spend("calls", 3)
    with pytest.raises(BudgetExceeded, match="the task's budget of 3 calls is used up") as error:
        search.check("calls")
    assert (error.value.scope, error.value.kind, error.value.limit) == ("task", "calls", 3)
    with pytest.raises(BudgetExceeded, match=r"the search's budget of 0\.5 money"):
        search.check("money", 0.6)


def test_spending_of_an_inner_scope_counts_in_the_outer_one_and_not_in_siblings() -> None:
    task = Budget({"calls": 3})
    first, second = (Budget({"calls": 2}, scope="search", parent=task) for _ in range(2))
    first.spend("calls", 2)
    assert (first.remaining("calls"), second.remaining("calls"), task.remaining("calls")) == (0, 1, 1)


def test_a_kind_without_a_limit_is_counted_and_never_refused() -> None:
    budget = Budget({"money": None})
    budget.spend("money", 1e9)
    budget.check("money", 1e9)
    assert budget.remaining("money") is None and budget.spent["money"] == 1e9


def test_a_limit_of_nothing_admits_nothing() -> None:
    budget = Budget({"calls": 0, "money": 0})
    budget.check("money", 0.0)
    with pytest.raises(BudgetExceeded):
        budget.check("calls")


def test_a_reserved_amount_cannot_be_reserved_again() -> None:
    budget = Budget({"money": 1.0})
    with budget.reserve({"money": 0.7}):
        with pytest.raises(BudgetExceeded), budget.reserve({"money": 0.4}):
            raise AssertionError("never under way")
        with budget.reserve({"money": 0.3}):
            assert budget.remaining("money") == pytest.approx(0)
    assert budget.remaining("money") == 1.0


def test_a_refused_reservation_holds_nothing_back_in_any_scope() -> None:
    task = Budget({"calls": 1})
    search = Budget({"money": 1.0}, scope="search", parent=task)
    with pytest.raises(BudgetExceeded), search.reserve({"money": 0.5, "calls": 2}):
        raise AssertionError("never under way")
    assert search.remaining("money") == 1.0 and task.remaining("calls") == 1


def test_ten_tenths_fit_into_one() -> None:
    budget = Budget({"money": 1.0})
    for _ in range(10):
        budget.check("money", 0.1)
        budget.spend("money", 0.1)
    with pytest.raises(BudgetExceeded):
        budget.check("money", 0.001)


class Broke(Exception):
    pass


steps = st.lists(st.tuples(st.sampled_from(["task", "search"]), st.integers(0, 4), st.sampled_from(["keep", "spend", "raise", "release"])))


@given(steps, st.integers(0, 8), st.integers(0, 8))
def test_no_limit_is_ever_passed_and_reservations_are_released_after_any_error(
    doings: list[tuple[str, int, str]], outer: int, inner: int
) -> None:
    task = Budget({"calls": outer})
    scopes = {"task": task, "search": Budget({"calls": inner}, scope="search", parent=task)}
    with suppress(Broke), ExitStack() as open_:
        for scope, amount, then in doings:
            budget = scopes[scope]
            before = budget.remaining("calls")
            held = ExitStack()
            try:
                held.enter_context(budget.reserve({"calls": amount}))
            except BudgetExceeded:
                assert before is not None and before < amount
                continue
            if then == "raise":
                open_.push(held)
                raise Broke
            if then == "keep":
                open_.push(held)
                continue
            held.close()
            if then == "spend":
                budget.spend("calls", amount)
            for each in scopes.values():
                assert each.spent.get("calls", 0) + each.reserved.get("calls", 0) <= each.limits["calls"]
    assert {each.reserved.get("calls", 0) for each in scopes.values()} == {0}
    assert all(each.spent.get("calls", 0) <= each.limits["calls"] for each in scopes.values())
