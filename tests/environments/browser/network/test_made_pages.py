"""Pages without a server: an agent cannot go to them, and those that a page makes are shown and obey the policy."""

from __future__ import annotations

import pytest

from exact.errors import ActionError
from tests.conftest import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
MADE = """<script>
function made(text) {
  const send = 'fetch("http://127.0.0.2:9/x", {method: "POST"}).catch(() => document.title = "refused")'
  return window.URL.createObjectURL(new Blob([`<p>${text}</p><script>${send}<` + "/script>"], {type: "text/html"}))
}
function print_view() { window.open("about:blank").document.write("<title>Print</title><p>the page to print") }
</script>
<button onclick="window.location.href = made('in place')">in place</button>
<button onclick="window.open(made('in a tab'))">in a tab</button>
<button onclick="print_view()">the page to print</button>
<iframe srcdoc="<p>text of a frame"></iframe>"""


@pytest.mark.parametrize(
    "url",
    [
        "data:text/html,<p>x", "DATA:text/html,x", " data:text/html,x", "about:blank", "about:srcdoc", "javascript:alert(1)", "file:///etc/passwd",
        "blob:http://x/1", "filesystem:http://x/1", "chrome://version", "view-source:http://localhost/", "ftp://x/", "ws://localhost/",
    ],
)  # fmt: skip
async def test_an_agent_cannot_go_to_an_address_without_a_site(visit: Visit, url: str) -> None:
    async with visit("<p>here") as (environment, _):
        with pytest.raises(ActionError, match=r"not allowed|outside the task's origins"):
            await environment.step(environment.actions.action("goto", url))


@pytest.mark.parametrize("name", ["in place", "in a tab", "the page to print"])
async def test_a_page_that_a_page_makes_is_shown_and_sends_nothing_elsewhere(visit: Visit, name: str) -> None:
    async with visit(MADE) as (environment, seen):
        assert "text of a frame" in seen.text
        button = next(each.id for each in seen.elements if each.name == name)
        came = await environment.step(environment.actions.parse(f"click [{button}]"))
    assert came.observation is not None and name in came.observation.text
    refused = [effect for effect in came.effects if effect.kind == "blocked"]
    assert [effect.url for effect in refused] == ([] if name == "the page to print" else ["http://127.0.0.2:9/x"])
