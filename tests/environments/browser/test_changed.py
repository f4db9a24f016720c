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
        with pytest.raises(StateChanged, match=r"\[\d+\] was .* it is gone: the page changed by itself before click \[\d+\]") as refused:
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


async def test_the_state_is_observed_again_only_if_something_has_changed_that_matters(visit: Visit) -> None:
    async with visit(PAGE + "<p id=t>tick</p>") as (environment, seen):
        assert await environment.changes() is None
        again = "new Promise(done => { let n = 0; setInterval(() => { t.textContent = 'tick ' + ++n; n > 3 && done(); }, 450); })"
        await change(environment, again)
        assert await environment.changes() is None, "it changes again and again"
        await change(environment, "document.body.append('Sold out')")
        came = await environment.changes([find(seen, "Send").id])
        assert came is not None and came.observation is not None and "Sold out" in came.observation.text
        assert 'StaticText "Sold out"' in came.info["changed"] and came.info["still"] == find(seen, "Send").id
        assert await environment.changes() is None and environment.observation == came.observation


async def test_an_id_of_which_another_element_has_the_node_is_not_kept(visit: Visit) -> None:
    async with visit("<ul><li><b id=b>poem.txt</b> <button>Delete</button></ul>") as (environment, seen):
        await change(environment, "b.textContent = 'notes.md'")
        came = await environment.changes([find(seen, "Delete").id])
        assert came is not None and came.info["still"] == ""
        assert 'gone: StaticText "poem.txt"' in came.info["changed"]


async def test_a_dialog_that_opens_by_itself_is_a_change(visit: Visit) -> None:
    async with visit(PAGE) as (environment, _):
        async with environment.page.expect_event("dialog"):
            await change(environment, "void setTimeout(() => alert('Time is up'))")
        came = await environment.changes()
        assert came is not None and came.observation is not None and "Time is up" in came.observation.text
        assert await environment.changes() is None
