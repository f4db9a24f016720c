"""The HTML that an agent is shown of a page."""

import msgspec
import pytest

from tests.conftest import CONFIG, Visit
from tests.environments.browser.pages import look

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("separator", ["\n", "\v", "\x85", "\u2028"])
async def test_the_value_of_a_field_keeps_its_white_space_on_one_line(visit: Visit, separator: str) -> None:
    async with visit("<meta charset=utf-8><textarea></textarea>", config=msgspec.structs.replace(CONFIG, html=True)) as (env, _):
        await env.page.evaluate("text => document.querySelector('textarea').value = text", f"a{separator}  b ")
        seen = await look(env, "wait")
        lines = [line for line in seen.html.splitlines() if "textarea" in line]
        assert len(lines) == 1 and f'value="a&#{ord(separator)};  b "' in lines[0]


async def test_the_value_of_a_password_is_not_told(visit: Visit) -> None:
    async with visit("<input type=password value='a  b '>", config=msgspec.structs.replace(CONFIG, html=True)) as (_, seen):
        assert "a  b" not in seen.html and "•••••" in seen.html
