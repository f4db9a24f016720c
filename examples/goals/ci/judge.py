def closes(page, outcome):
    return "17" in (outcome.answer or "")


async def books(page, outcome):
    assert page.url.endswith("/book"), f"the agent ended at {page.url}"
    return True
