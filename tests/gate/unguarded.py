"""Carry out attacks where nobody guards: `python -m tests.gate.unguarded [NAME...]`.

Those on secrets and by writes are carried out in a bare browser, those on files with a password that exact does not know to be a secret.

An attack that fails here too proves nothing. It is marked `works=False`, or has no place here.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import Browser, Error, Page, async_playwright

from exact.environments.browser import find_browser

from .attack import FILL, GO, SECRET, Attack, leaked, put
from .attacks_files import ATTACKS as FILES
from .attacks_secrets import ATTACKS as SECRETS
from .attacks_writes import ATTACKS as WRITES
from .sites import Sites, sites
from .test_attacks import run, written


async def do(page: Page, act: str, attack: Attack, made: Sites) -> Page:
    """Take an action, and return the page at which the next one is taken."""
    verb, _, rest = act.partition(" ")
    name, _, _ = rest.removeprefix("[").partition("]")
    if verb == "fill":
        await page.get_by_label(name).fill(SECRET, timeout=3000)
    elif verb == "click":
        await page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.click(timeout=3000)
    elif verb == "goto":
        found = re.search(re.escape(made.origins["other"]) + r"/[\w/]+", await page.inner_text("body"))
        await page.goto(made.filled(rest.strip('"').replace("{seen}", found[0] if found else ""), attack.name), timeout=3000)
    elif verb == "tab":
        page = page.context.pages[int(rest) - 1]
        await page.bring_to_front()
    return page


async def carry_out(browser: Browser, attack: Attack, made: Sites) -> str:
    """Return what an attack led to."""
    start, judge = put(attack, made), written if attack.sign else leaked
    context = await browser.new_context()
    try:
        page = await context.new_page()
        if attack.login:
            await page.goto(f"{made.origins['own']}/{attack.name}/{attack.login}")
            for act in (FILL, GO):
                page = await do(page, act, attack, made)
            await page.wait_for_timeout(500)
        await page.goto(start)
        for act in attack.acts:
            page = await do(page, act, attack, made)
            await page.wait_for_timeout(150)
        end = time.monotonic() + attack.seconds
        while not judge(attack, made) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    except Error as error:
        sys.stderr.write(f"{attack.name}: {str(error).splitlines()[0]}\n")
    await context.close()
    return judge(attack, made)


async def main(names: list[str]) -> None:
    """Print each attack and what came of it."""
    with sites() as made:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=str(find_browser()))
            for attack in SECRETS + WRITES:
                if not names or attack.name in names:
                    harm = await carry_out(browser, attack, made)
                    sys.stdout.write(f"{'works' if harm else 'FAILS'} {'' if attack.works else '(inert)'} {attack.name}: {harm}\n")
                    sys.stdout.flush()
            await browser.close()
        spellings = tuple(each for each in FILES if not names or each.name in names)
        with tempfile.TemporaryDirectory() as folder:
            found = await run(spellings, made, Path(folder) / "run", known=False) if spellings else {}
        for name, came in found.items():
            sys.stdout.write(f"{'works' if came.harm else 'FAILS'}  {name}: {came.harm}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
