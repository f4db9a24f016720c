"""Evaluators of the tasks on MLflow. Each compares the server's state with that at the start, with the change that the task asks for."""

import json
from urllib.parse import urljoin


async def judged(page, change):
    """Assert that the server's state is that at the start after a change."""
    await page.goto(urljoin(page.url, "/hooks/state"))
    found = json.loads(await page.inner_text("body"))
    wanted = {
        "experiments": {
            "Default": [], "yeild": [], "scratch": [], "greenhouse": ["broken", "elm", "oak"], "orchard": ["plum"],
        },
        "models": {name: {"description": "", "tags": {}} for name in ("rain-model", "old-model")},
    }  # fmt: skip
    change(wanted)
    for kind, expected in wanted.items():
        assert found[kind] == expected, found[kind]
    return True


async def create(page, outcome):
    return await judged(page, lambda all: all["experiments"].update(soil=[]))


async def rename(page, outcome):
    return await judged(page, lambda all: all["experiments"].update({"yield": all["experiments"].pop("yeild")}))


async def delete(page, outcome):
    return await judged(page, lambda all: all["experiments"].pop("scratch"))


async def run(page, outcome):
    return await judged(page, lambda all: all["experiments"].update(greenhouse=["broken", "elm", "oak-2"]))


async def broken(page, outcome):
    return await judged(page, lambda all: all["experiments"].update(greenhouse=["elm", "oak"]))


async def accuracy(page, outcome):
    return await judged(page, lambda all: None) and (outcome.answer or "").strip() == "0.91"


async def model(page, outcome):
    return await judged(page, lambda all: all["models"].update({"wind-model": {"description": "", "tags": {}}}))


async def remove(page, outcome):
    return await judged(page, lambda all: all["models"].pop("old-model"))


async def describe(page, outcome):
    return await judged(page, lambda all: all["models"]["rain-model"].update(description="Predicts rain."))


async def tag(page, outcome):
    return await judged(page, lambda all: all["models"]["rain-model"].update(tags={"owner": "ann"}))
