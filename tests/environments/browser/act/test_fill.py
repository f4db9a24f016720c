"""What a field holds after it was filled, where that is not what was typed."""

from __future__ import annotations

import pytest

from exact.environments.base import reported_info
from tests.conftest import Visit
from tests.environments.browser.pages import do

pytestmark = pytest.mark.asyncio(loop_scope="session")

MASK = "<input id=i aria-label=Date oninput=\"i.value = i.value.replace(/\\D/g, '').replace(/(..)(?=.)/, '$1/')\">"
TIDY = '<input id=i aria-label=Name onchange="i.value = i.value.toUpperCase()" onkeyup="i.value = i.value.toUpperCase()">'


@pytest.mark.parametrize(
    ("field", "typed", "holds"),
    [
        (MASK, "1224", 'holds "12/24" now, not "1224"'),
        (TIDY, "Ann", 'holds "ANN" now, not "Ann"'),
        ("<input maxlength=3>", "abcdef", 'holds "abc" now, not "abcdef"'),
        ("<input type=number>", "two", 'holds nothing now, not "two"'),
        ("<textarea maxlength=2></textarea>", "xyz", 'holds "xy" now, not "xyz"'),
    ],
)
async def test_a_step_tells_what_a_field_holds_instead_of_the_text(visit: Visit, field: str, typed: str, holds: str) -> None:
    async with visit(field) as (environment, seen):
        done = await do(environment, f'fill [{seen.elements[0].id}] "{typed}"')
        assert done.observation is not None and holds in reported_info(done.info)


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("<input>", "a  b"),
        ("<input value=old>", ""),
        ("<input type=number>", "5.0"),
        ("<input type=password>", "secret"),
        ("<input type=date>", "2024-01-31"),
        ("<textarea></textarea>", "two\\nlines"),
        ("<div contenteditable>Note</div>", "Other"),
        ("<form onsubmit='return false'><input></form>", "x"),
    ],
)
async def test_a_step_tells_nothing_of_a_field_that_holds_the_text(visit: Visit, field: str, typed: str) -> None:
    async with visit(field) as (environment, seen):
        assert (await do(environment, f'fill [{seen.elements[-1].id}] "{typed}"')).info == {}
