"""Pages that change by themselves while the agent thinks: it goes on from the page as it is now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.browser.factory import BrowserFactory
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.page.setup import PageSetup
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.spending import MOST_CHANGES
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.conftest import CONFIG

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = "<!doctype html><div id=d><button onclick=\"d.innerHTML = '<h1>Done</h1>'\">Go</button></div>"
ANEW = "d.innerHTML = `<button onclick=\"d.innerHTML = '<h1>Done</h1>'\">${%r}</button>`"


class Live(BrowserFactory):
    """A factory that knows its live environment, whose page a test changes."""

    live: Any = None

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Any]:
        async with super().open(simulation=simulation) as environment:
            self.live = self.live if simulation else environment
            yield environment


class Clicks:
    """Clicks the button that it is shown. While it thinks, the live page changes."""

    def __init__(self, environments: Live, scripts: list[str]) -> None:
        self._environments, self._scripts = environments, scripts
        self.shown: list[Context] = []

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self.shown.append(context)
        files = {each.name: each.id for each in context.observation.elements if each.role in ("listitem", "generic")}
        if "notes.md" in files and "moved" not in context.observation.text:
            if self._scripts:
                await self._environments.live.page.evaluate(self._scripts.pop(0))
            return (Proposal(action=actions.action("drag", files["notes.md"], files["Trash"]), prior=1.0),)
        button = next((each for each in context.observation.elements if each.role == "button"), None)
        if self._scripts:
            await self._environments.live.page.evaluate(self._scripts.pop(0))
        chosen = actions.action("stop", "done") if button is None else actions.action("click", button.id)
        return (Proposal(action=chosen, prior=1.0),)


class Even:
    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=0.5)


LIST = (
    "<!doctype html><style>li, p { user-select: none }</style><ul id=u>"
    + "".join(f"<li onmousedown='from = this.textContent'>{each}</li>" for each in ("map.txt", "notes.md", "poem.txt", "zoo.png"))
    + "</ul><p tabindex=0 onmouseup=\"out.textContent += `moved ${from}. `\">Trash</p><p id=out></p><script>let from = ''</script>"
)
SHIFTED = "['new.csv', 'map.txt', 'notes.md', 'poem.txt'].forEach((name, i) => { u.children[i].textContent = name; })"
Attempted = tuple[ResultLine, list[ev.AnyEvent], Clicks]


@pytest.fixture
def attempt(browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path) -> Callable[..., Any]:
    async def attempted(scripts: list[str], *, page: str = PAGE, isolated: bool = False, **search: object) -> Attempted:
        httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
        environments = Live(browser, PageSetup(), CONFIG, isolated=isolated)
        policy = Clicks(environments, scripts)
        config = parse({"search": search, "reflection": {"kind": "none"}, "limits": {"actions": 6}})
        task = task_at()
        run = create(tmp_path / "run", (task,), config, benchmark=False)
        agent = Agent(policy=policy, value=Even())
        opened = lambda task: nullcontext(environments)  # noqa: E731
        (line,) = await Runner(folder=run, config=config, open_environments=opened, build_agent=lambda *_: agent).run()
        return line, list(read_journal(run.task_folder(task) / "journal.jsonl")), policy

    return attempted


async def test_after_a_refusal_because_the_page_changed_the_agent_sees_the_page_as_it_is_now(attempt: Callable[..., Any]) -> None:
    line, events, policy = await attempt([ANEW % "Go on"], algorithm="greedy")
    assert (line.status, line.answer, line.actions) == ("judged", "done", 2)
    first, second, last = policy.shown
    assert "Go on" not in first.observation.text and "Go on" in second.observation.text and "Done" in last.observation.text
    refused, waited = second.history
    assert refused.action.name == "click" and "the page changed by itself" in refused.error
    assert (waited.action.key, waited.observation) == ("wait", first.observation)
    assert [event.refused != "" for event in events if isinstance(event, ev.Committed) and event.changed] == [True, False]


async def test_a_button_that_the_page_draws_anew_is_clicked_at_once(attempt: Callable[..., Any]) -> None:
    line, events, policy = await attempt([ANEW % "Go"], algorithm="greedy")
    assert (line.answer, line.actions, len(policy.shown)) == ("done", 2, 2)
    assert not [event for event in events if isinstance(event, ev.Committed) and event.refused]


async def test_a_page_that_never_stops_changing_uses_up_the_actions(attempt: Callable[..., Any]) -> None:
    line, _, policy = await attempt([ANEW % str(i) for i in range(60)], algorithm="greedy")
    assert line.status == "judged" and line.actions == 6 and "6 actions" in line.reason
    assert len(policy.shown) == 6 + MOST_CHANGES


@pytest.mark.parametrize("isolated", [True, False])
async def test_a_search_goes_on_from_the_page_as_it_is_now(attempt: Callable[..., Any], isolated: bool) -> None:
    line, events, policy = await attempt([ANEW % "Go on"], isolated=isolated, algorithm="mcts", iterations=4, k=1, depth=3)
    assert (line.status, line.answer, line.failures) == ("judged", "done", 0)
    assert any("Go on" in context.observation.text for context in policy.shown)
    assert not [event for event in events if isinstance(event, ev.Arrived) and event.match == "drifted"]


async def test_the_file_that_was_meant_is_moved_although_the_list_has_moved(attempt: Callable[..., Any]) -> None:
    _, _, policy = await attempt([SHIFTED], page=LIST, algorithm="greedy")
    assert policy.shown[-1].observation.text.count("moved") == 1 and "moved notes.md." in policy.shown[-1].observation.text


async def test_no_other_file_is_moved_if_the_one_that_was_meant_is_gone(attempt: Callable[..., Any]) -> None:
    line, _, policy = await attempt([SHIFTED.replace("notes.md", "b.csv")], page=LIST, algorithm="greedy")
    assert (line.status, line.answer) == ("judged", "done") and "moved" not in policy.shown[-1].observation.text
    assert 'gone: listitem "notes.md"' in policy.shown[-1].history[-1].note


def told(events: list[ev.AnyEvent]) -> list[tuple[str, bool, bool]]:
    """Return the commits: action, whether it was refused, and whether the page had changed by itself."""
    return [(event.action.split()[0], event.refused != "", event.changed) for event in events if isinstance(event, ev.Committed)]


ELSEWHERE = "document.body.insertAdjacentHTML('beforeend', '<p>Sold out</p>')"


async def test_what_changed_while_the_agent_thought_is_told_before_it_acts(attempt: Callable[..., Any]) -> None:
    line, events, policy = await attempt([ELSEWHERE], algorithm="react")
    assert (line.status, line.answer, line.actions) == ("judged", "done", 2)
    assert told(events) == [("click", True, True), ("wait", False, True), ("click", False, False), ("stop", False, False)]
    refused, waited = policy.shown[1].history
    assert "changed by itself while it was chosen" in refused.error and 'new: StaticText "Sold out"' in waited.note


async def test_a_search_begins_at_the_page_as_it_is_now_with_the_actions_that_are_left(attempt: Callable[..., Any]) -> None:
    line, events, policy = await attempt([ELSEWHERE], algorithm="mcts", iterations=4, k=1, depth=3)
    assert (line.status, line.answer, line.failures) == ("judged", "done", 0)
    changed = next(event for event in events if isinstance(event, ev.Committed) and event.action == "wait")
    assert changed.changed and len(changed.kept) == 1 and "Sold out" in changed.info["changed"]
    assert any("Sold out" in context.observation.text for context in policy.shown)


CLOCK = "setInterval(() => { document.title = n++; t.textContent = 'tick ' + n; }, 450)"


async def test_a_page_that_always_changes_does_not_keep_the_agent_from_acting(attempt: Callable[..., Any]) -> None:
    page = f"{PAGE}<title>0</title><p id=t>tick</p><script>let n = 0</script>"
    ticks = f"() => new Promise(done => {{ {CLOCK}; setTimeout(done, 2000); }})"
    line, events, _ = await attempt([ticks], page=page, algorithm="react")
    assert (line.status, line.answer) == ("judged", "done")
    assert told(events)[:1] == [("click", False, False)]
