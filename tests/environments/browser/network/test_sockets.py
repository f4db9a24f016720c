"""Messages on WebSockets: sent by the live environment and counted, refused in a simulation."""

from __future__ import annotations

import pytest

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.task import Task
from tests.environments.browser.outside import serving
from tests.environments.browser.pages import do, find

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = """<button onclick="socket.send(JSON.stringify({type: 'say', text: 'hi'})); said.textContent = 'Said'">Say hi</button><p id=said></p>
<button onclick="said.textContent = 'Only looked'">Look</button><p id=state>Opening</p>
<script>const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
socket.onopen = () => { socket.send(JSON.stringify({type: 'hello'})); state.textContent = 'Open'; };
socket.onerror = () => { state.textContent = 'Refused'; };</script>"""


@pytest.mark.parametrize("simulation", [False, True])
async def test_a_message_that_an_action_sends_is_a_write_outside(browser: Browser, simulation: bool) -> None:
    with serving() as site:
        site.pages["/chat"] = f"<!doctype html><title>Chat</title>{CHAT}"
        config = BrowserConfig(screenshots=False)
        task = Task(id="test/chat", instruction="Say hi.", start=f"http://localhost:{site.port}/chat")
        async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=simulation) as environment:
            seen = await environment.reset(task)
            assert find(seen, "Refused" if simulation else "Open")
            looked = (await do(environment, f"click [{find(seen, 'Look').id}]")).effects
            assert [(effect.kind, effect.late) for effect in looked] == [("blocked", True)] * simulation  # as the page came
            said = await do(environment, f"click [{find(seen, 'Say hi').id}]")
            assert [(effect.method, effect.is_write) for effect in said.effects] == ([] if simulation else [("WEBSOCKET", True)])
            assert site.sockets == (0 if simulation else 1)
