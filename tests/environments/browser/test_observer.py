"""What is asked of the browser to see a page, and in which order."""

from functools import wraps
from typing import Any

import msgspec
import pytest

from exact.environments.browser import PageSetup
from tests.conftest import CONFIG, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("screenshots", [False, True])
async def test_the_end_of_the_episode_is_checked_last(visit: Visit, monkeypatch: pytest.MonkeyPatch, screenshots: bool) -> None:
    setup, config = PageSetup(terminated="globalThis.over"), msgspec.structs.replace(CONFIG, screenshots=screenshots)
    async with visit("<p>Here", setup=setup, config=config) as (env, _):
        session, sent = env.episode.tabs.present.cdp, list[str]()
        session = getattr(session, "_impl_obj", session)  # of Playwright, where the browser's pipe is left to its driver

        @wraps(session.send)
        async def send(method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
            if method != "Page.getFrameTree":  # asked in the background, where a request names a frame that is not known yet
                sent.append(method)
            return await inner(method, params, **more)

        inner = session.send
        monkeypatch.setattr(session, "send", send)
        seen, over = await env.episode.observer.observe_page(config, env.episode.tabs.downloads, setup.terminated)
        assert (over, bool(seen.screenshot)) == (False, screenshots)
        assert sent[-1] == "Runtime.evaluate" and set(sent[:-1]) == {
            "DOMSnapshot.captureSnapshot",
            "Accessibility.getFullAXTree",
            *(["Page.captureScreenshot"] if screenshots else []),
        }
        await env.episode.tabs.present.evaluate("globalThis.over = true", in_page=True)
        seen, over = await env.episode.observer.observe_page(config, env.episode.tabs.downloads, setup.terminated)
        assert over and seen.screenshot is None
