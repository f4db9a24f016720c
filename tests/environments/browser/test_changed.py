"""Pages that change by themselves between an observation and an action."""

from __future__ import annotations

import pytest

from exact.environments.base import StateChanged, step_in
from exact.environments.browser import BrowserEnvironment
from exact.errors import ActionError
from tests.conftest import Visit
from tests.environments.browser.pages import do, find

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = "<div id=d><button onclick=\"document.title = 'sent'\">Send</button></div>"
OTHER = "d.innerHTML = '<p>Signed out</p><button>Sign in</button>'"
SAME = "d.innerHTML = d.innerHTML"
GONE = "d.innerHTML = ''"


async def change(environment: BrowserEnvironment, script: str) -> None:
    await environment.page.evaluate(script)


@pytest.mark.parametrize("script", [OTHER, GONE])
async def test_a_refusal_because_the_page_changed_brings_the_page_as_it_is_now(visit: Visit, script: str) -> None:
    async with visit(PAGE) as (environment, seen):
        await change(environment, script)
        with pytest.raises(StateChanged, match=r"\[\d+\] it is gone: the page changed by itself before click \[\d+\]") as refused:
            await do(environment, f"click [{find(seen, 'Send').id}]")
        now = refused.value.came.observation
        assert now is not None and "Send" not in now.text and ("Sign in" in now.text) == (script == OTHER)
        assert environment.observation == now
        if script == OTHER:
            await do(environment, f"click [{find(now, 'Sign in').id}]")


async def test_an_element_that_the_page_draws_anew_is_acted_on(visit: Visit) -> None:
    async with visit(PAGE) as (environment, seen):
        await change(environment, SAME)
        click = environment.actions.parse(f"click [{find(seen, 'Send').id}]")
        came = (await step_in(environment, click, seen.fingerprint)).observation
        assert came is not None and came.title == "sent"


async def test_a_refusal_on_a_page_that_is_as_it_was_is_no_change(visit: Visit) -> None:
    async with visit(PAGE) as (environment, _):
        with pytest.raises(ActionError, match="no element") as refused:
            await do(environment, "click [99]")
        assert not isinstance(refused.value, StateChanged)
