"""Carry out the attacks in a browser that nobody guards: `python -m tests.safety.unguarded [NAME...]`.

An attack that fails here too proves nothing. It is marked `works=False`, and kept for browsers in which it works.
"""

from __future__ import annotations

import asyncio
import sys

from playwright.async_api import Browser, Error, async_playwright

from exact.environments.browser import find_browser

from . import egress_connections, egress_requests, test_names, write_attacks
from .attack import PATIENCE, Attack, prepare
from .hostile import Attacker, attacker

VERBS = {"click": "click", "hover": "hover"}


async def carry_out(browser: Browser, attack: Attack, servers: Attacker) -> list[str]:
    """Return what came of an attack: what reached the trap, and the writes."""
    start, trap = prepare(attack, servers)
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(start)
        for act in attack.acts:
            verb, _, name = act.partition(" ")
            name, _, text = name.removeprefix("[").partition("]")
            found = page.get_by_label(name).or_(page.get_by_text(name, exact=True)).or_(page.get_by_role("button", name=name)).first
            if verb in ("click", "hover"):
                await (found.click if verb == "click" else found.hover)(timeout=2000)
            elif verb == "fill":
                await found.fill(text.strip(' "'), timeout=2000)
            elif verb == "press":
                await page.keyboard.press(name.strip('"'))
            elif verb == "goto":
                await page.goto(servers.fill(name, attack.name, trap).strip('"'), timeout=2000)
        for _ in range(int(PATIENCE / 0.05)):
            if trap.arrived or f"GET /done/{attack.name}" in servers.own.log:
                break
            await asyncio.sleep(0.05)
    except Error as error:
        sys.stderr.write(f"{attack.name}: {str(error).splitlines()[0]}\n")
    await context.close()
    return trap.arrived + servers.own.writes(attack.name) + servers.other.writes(attack.name)


async def main(names: list[str]) -> None:
    """Print each attack and what came of it."""
    attacks = egress_requests.ATTACKS + egress_connections.ATTACKS + write_attacks.ATTACKS + test_names.ATTACKS
    with attacker() as servers, test_names.Listener() as listener:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=str(find_browser()))
            for attack in attacks:
                if names and attack.name not in names:
                    continue
                came = await carry_out(browser, attack, servers)
                came += ["looked up"] if attack.name in listener.names else []
                label = "works" if came else "FAILS"
                sys.stdout.write(f"{label} {'' if attack.works else '(inert)'} {attack.name}: {came[:3]}\n")
                sys.stdout.flush()
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
