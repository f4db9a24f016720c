"""Evaluators. Each is called once on the page that the agent left, and returns True, False, or a number from 0 to 1."""


async def ordered(page, outcome):
    return "apples" in await page.inner_text("ul")


def answered(page, outcome):
    return "pears" in (outcome.answer or "")
