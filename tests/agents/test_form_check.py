import json

import pytest

from exact.cli.model_check import check_forms
from exact.config import ModelConfig
from exact.models.scripted import ScriptedServer, Status

LINES, OBJECT = "Buy.\nAction (70%): click [3]", json.dumps({"thought": "", "actions": [{"why": "", "action": "click [3]", "percent": 70}]})


@pytest.mark.parametrize(
    ("plain", "by_schema", "refused", "found", "advice", "row"),
    [
        (LINES, OBJECT, False, (True, True, True), "auto", "lines are read, JSON by a schema is read"),
        ("Hm.", OBJECT, False, (False, True, True), "always", "lines are not read, JSON by a schema is read: set models.policy.structured"),
        ("Hm.", "Hm.", False, (False, False, True), None, "JSON by a schema is not read: use a larger model"),
        ("Action (5%): click [99]", OBJECT, True, (False, False, False), None, "lines are not read, no schema is taken"),
        (LINES, OBJECT, True, (True, False, False), "auto", "lines are read, no schema is taken"),
    ],
)
async def test_the_check_tells_which_forms_are_read(plain, by_schema, refused, found, advice, row):
    def is_schema() -> bool:
        return "response_format" in server.bodies[-1]

    def faults(question, times):
        return Status(400, "response_format is not supported") if refused and is_schema() else None

    async with ScriptedServer(lambda question, sample: by_schema if is_schema() else plain, faults=faults) as server:
        report = await check_forms(ModelConfig(model="m", base_url=server.base_url))
    assert (report.lines, report.json, report.constrained) == found and report.advice == advice and row in report.row()
