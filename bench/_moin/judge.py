"""Evaluators of the tasks on the wiki. Each reads the server's state, and whether other pages are as they were."""

import json
from urllib.parse import urljoin


async def state(page):
    """Return the wiki's state: items by name, and the user's profile."""
    await page.goto(urljoin(page.url, "/hooks/state"))
    return json.loads(await page.inner_text("body"))


def others(found, *changed):
    """Assert that pages other than those are as they were at the start."""
    start = {"Home": 1, "Garden": 1, "Tomatos": 1, "Spam": 1, "Opening hours": 2, "Notes": 1}
    now = {name: each["rev_number"] for name, each in found["items"].items()}
    wrong = [name for name in {**start, **now} if name not in changed and start.get(name) != now.get(name)]
    assert not wrong, f"other pages changed: {wrong}"
    return found["items"]


async def edit(page, outcome):
    items = others(await state(page), "Garden")
    text = " ".join(items["Garden"]["text"].split())
    assert items["Garden"]["rev_number"] == 2, items["Garden"]
    assert text == "The beds are on the south side. The pond is to the north.", text
    return True


async def create(page, outcome):
    items = others(await state(page), "Compost")
    assert "Compost" in items, sorted(items)
    return items["Compost"]["text"].strip() == "Turn it in spring." and "markdown" in items["Compost"]["contenttype"]


async def rename(page, outcome):
    items = others(await state(page), "Tomatos", "Tomatoes")
    return "Tomatoes" in items and "Tomatos" not in items


async def delete(page, outcome):
    found = await state(page)
    items = others(found, "Spam", *(name for name, each in found["items"].items() if each.get("trash")))
    assert "Spam" not in items or items["Spam"].get("trash"), items["Spam"]
    return any(each.get("trash") and each.get("comment") == "advertising" for each in items.values())


async def revert(page, outcome):
    items = others(await state(page), "Opening hours")
    assert items["Opening hours"]["rev_number"] == 3, items["Opening hours"]
    return items["Opening hours"]["text"] == "Open from 9 to 17."


async def subscribe(page, outcome):
    found = await state(page)
    id = others(found)["Notes"]["itemid"]
    assert found["profile"].get("subscriptions") == [f"itemid:{id}"], found["profile"].get("subscriptions")
    return True


async def quicklink(page, outcome):
    found = await state(page)
    others(found)
    assert [each.rpartition("/")[2] for each in found["profile"].get("quicklinks", [])] == ["Notes"], found["profile"].get("quicklinks")
    return True


async def settings(page, outcome):
    found = await state(page)
    others(found)
    assert found["profile"].get("results_per_page") == 25, found["profile"].get("results_per_page")
    return True


async def count(page, outcome):
    others(await state(page))
    return (outcome.answer or "").strip() == "2"


async def tags(page, outcome):
    items = others(await state(page), "Notes")
    notes = items["Notes"]
    assert notes["rev_number"] == 2, notes
    return notes["tags"] == ["tools"] and notes["summary"] == "What to bring" and notes["text"].strip() == "Bring gloves."
