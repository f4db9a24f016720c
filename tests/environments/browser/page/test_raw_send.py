"""Answers that come the short way are those that Playwright gives."""

from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Error

from exact.environments.browser.page.cdp import raw_send
from tests.conftest import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASKED = "DOMSnapshot.captureSnapshot", {"computedStyles": ["display"]}


async def test_an_answer_is_the_same_either_way(visit: Visit) -> None:
    async with visit("<p>Here <a href=/x>there</a>") as (env, _):
        cdp = env.episode.tabs.present.cdp
        send = raw_send(cdp)
        assert send is not cdp.send
        assert await send(*ASKED) == await cdp.send(*ASKED)


async def test_an_error_is_playwrights(visit: Visit) -> None:
    async with visit("<p>Here") as (env, _):
        with pytest.raises(Error, match="wasn't found"):
            await raw_send(env.episode.tabs.present.cdp)("Nothing.atAll", {})


async def test_where_playwright_is_built_otherwise_its_own_way_is_taken() -> None:
    async def send(method: str, params: dict[str, Any], *, unknown: int) -> None: ...

    async def known(method: str, params: dict[str, Any] | None = None) -> str:
        return method

    for inner in (None, SimpleNamespace(send=send)):
        cdp: Any = SimpleNamespace(_impl_obj=inner, send="its own")
        assert raw_send(cdp) == "its own"
    cdp = SimpleNamespace(_impl_obj=SimpleNamespace(send=known), send="its own")
    assert await raw_send(cdp)("A.b", {}) == "A.b"
