"""A tree that was read only where the page has changed is the one that is read as a whole."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.observe.capture import build_capture, capture_commands
from exact.environments.browser.page.accessible import AccessibleTree
from exact.environments.browser.page.ids import Ids
from exact.observation import Element
from tests.conftest import CONFIG, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROWS = "".join(
    f"<li id=row{i}><a href=/{i}>Row {i}</a> <button aria-label='Open {i}'>o</button> <span class=note>note {i}</span></li>"
    for i in range(40)
)
PAGE = f"""<style>body {{ font-family: monospace }} .off {{ display: none }} .veil {{ visibility: hidden }}
.loud {{ text-transform: uppercase }} .before::before {{ content: 'new ' }}
.wide a {{ display: block }}</style><h1 id=head>Rows</h1><ul>{ROWS}</ul>
<form><label for=name>Name</label><input id=name required><label>Mail <input id=mail type=email></label><p id=hint>your age</p>
<input id=age type=number aria-labelledby=hint><input type=checkbox id=box><label for=box>Yes</label>
<input type=radio name=r id=r1><input type=radio name=r id=r2><select id=pick><option>one<option>two</select>
<textarea id=text></textarea><fieldset id=set><legend>Set</legend><button id=in>In</button></fieldset></form>
<details id=more><summary>More</summary><p>Hidden text</p></details><dialog id=ask><p>Sure?</p><button>Yes</button></dialog>
<label for=go id=going>10</label><button id=go></button><button id=two><b>ab</b><b>ba</b></button><a id=same href=/s>12</a>
<div id=tree role=tree><div role=treeitem aria-expanded=false id=leaf>Leaf</div></div>
<x-own id=own>Own</x-own><iframe id=inner srcdoc="<p>Inner</p><button>B</button>"></iframe>
<script>customElements.define('x-own', class extends HTMLElement {{
  constructor() {{ super(); this.inside = this.attachInternals();
    this.attachShadow({{mode: 'open'}}).innerHTML = '<b>shadow</b><slot></slot>'; }}
}});
const get = id => document.getElementById(id);</script>"""
ROW = "document.querySelectorAll('li')[{n} % document.querySelectorAll('li').length]"
MUTATIONS = (
    ROW + ".querySelector('a, span').textContent = 'changed {n}'",
    ROW + ".querySelector('span, a').classList.toggle('off')",
    ROW + ".classList.toggle('veil')",
    ROW + ".classList.toggle('loud')",
    ROW + ".classList.toggle('before')",
    ROW + ".classList.toggle('wide')",
    ROW + ".querySelector('button')?.setAttribute('aria-label', 'Say {n}')",
    ROW + ".querySelector('button')?.toggleAttribute('disabled')",
    ROW + ".querySelector('button')?.focus()",
    ROW + ".toggleAttribute('hidden')",
    ROW + ".setAttribute('aria-hidden', {n} % 2 ? 'true' : 'false')",
    ROW + ".remove()",
    ROW + ".after(Object.assign(document.createElement('li'), {{innerHTML: '<a href=/x>New {n}</a><span>it</span>'}}))",
    ROW + ".parentNode.prepend(" + ROW + ")",
    ROW + ".setAttribute('role', {n} % 2 ? 'listitem' : 'button')",
    ROW + ".querySelector('span')?.append(' and {n}')",
    ROW + ".querySelector('a')?.toggleAttribute('href')",
    "get('name').value = ['', 'Ann'][{n} % 2]",
    "get('name').setCustomValidity(['', 'no'][{n} % 2])",
    "get('mail').value = 'mail{n}'",
    "get('mail').focus()",
    "get('hint').textContent = 'age in {n} years'",
    "get('box').checked = !get('box').checked",
    "get('box').indeterminate = {n} % 2 == 0",
    "get('r' + (1 + {n} % 2)).checked = true",
    "get('pick').selectedIndex = {n} % 2",
    "get('text').value = 'lines {n}'",
    "get('set').toggleAttribute('disabled')",
    "get('more').toggleAttribute('open')",
    "get('ask').open ? get('ask').close() : get('ask').showModal()",
    "get('leaf').setAttribute('aria-expanded', {n} % 2 == 0)",
    "get('same').firstChild.data = 10 + {n} % 10",
    "get('going').firstChild.data = 10 + {n} % 10",
    "get('two').prepend(get('two').lastChild)",
    "get('own').inside.ariaLabel = 'own {n}', get('own').inside.role = {n} % 2 ? 'button' : 'img'",
    "get('own').shadowRoot.querySelector('b').textContent = 'shadow {n}'",
    "document.querySelector('[for=box]').textContent = 'Yes {n}'",
    "get('inner').contentDocument.querySelector('p').textContent = 'Inner {n}'",
    "get('inner').contentDocument.querySelector('button').focus()",
    "get('head').title = 'Title {n}'",
    "document.activeElement.blur()",
    "get('tree').setAttribute('aria-activedescendant', {n} % 2 ? 'leaf' : '')",
    "document.body.toggleAttribute('inert')",
)


async def seen(env: BrowserEnvironment) -> tuple[Element, ...]:
    """Return the elements of the page, numbered anew."""
    tab, config = env.episode.tabs.present, env.episode.tabs.config
    return build_capture(tab, Ids(), config, await asyncio.gather(*capture_commands(tab, config))).elements


async def check(env: BrowserEnvironment, parts: AccessibleTree, changes: str) -> None:
    """Change the page, and compare what is read of it in parts and as a whole."""
    tab = env.episode.tabs.present
    tab.accessible = parts
    await tab.evaluate(changes, in_page=True)
    found = await seen(env)
    tab.accessible = AccessibleTree(tab, least=10**9)
    assert found == await seen(env), changes


async def test_each_change_alone_gives_the_elements_of_the_whole_page(visit: Visit) -> None:
    async with visit(PAGE, config=CONFIG) as (env, _):
        parts = env.episode.tabs.present.accessible = AccessibleTree(env.episode.tabs.present, least=1)
        await seen(env)
        for change in MUTATIONS:
            for number in (7, 8):
                await check(env, parts, change.format(n=number))


@pytest.mark.parametrize("seed", range(3))
async def test_changes_in_any_order_give_the_elements_of_the_whole_page(visit: Visit, seed: int) -> None:
    rng = random.Random(seed)
    async with visit(PAGE, config=CONFIG) as (env, _):
        parts = env.episode.tabs.present.accessible = AccessibleTree(env.episode.tabs.present, least=1)
        await seen(env)
        for _ in range(15):
            changes = (rng.choice(MUTATIONS).format(n=rng.randrange(1000)) for _ in range(rng.choice((1, 1, 2, 4))))
            await check(env, parts, "; ".join(changes))


async def test_of_a_small_change_of_a_large_page_only_that_is_asked(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"<li><a href=/{i}>Row {i}</a>" for i in range(1000))
    async with visit(f"<ul>{rows}</ul>", config=CONFIG) as (env, _):
        tab, asked = env.episode.tabs.present, list[str]()
        inner = tab.cdp.send

        async def send(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            asked.append(method)
            return await inner(method, params)

        monkeypatch.setattr(tab.cdp, "send", send)
        await seen(env)
        await tab.evaluate("document.links[500].textContent = 'Other'", in_page=True)
        asked.clear()
        assert next(each for each in await seen(env) if each.name == "Other").role == "link"
    assert "Accessibility.getFullAXTree" not in asked and 1 <= asked.count("Accessibility.getPartialAXTree") < 20


async def test_a_node_that_goes_away_while_it_is_read_has_the_whole_page_read(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visit(PAGE, config=CONFIG) as (env, _):
        tab = env.episode.tabs.present
        tab.accessible, inner = AccessibleTree(tab, least=1), tab.cdp.send

        async def send(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            if method == "Accessibility.getPartialAXTree":
                await tab.evaluate("document.querySelector('ul')?.remove()", in_page=True)
                await inner("HeapProfiler.collectGarbage")
            return await inner(method, params)

        await seen(env)
        await tab.evaluate(ROW.format(n=3) + ".querySelector('a').textContent = 'gone soon'", in_page=True)
        monkeypatch.setattr(tab.cdp, "send", send)
        assert any(each.name == "Name" for each in await seen(env))
