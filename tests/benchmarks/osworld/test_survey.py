"""What a task needs that is not here, by its steps, getters and metrics."""

from __future__ import annotations

import os
from typing import Any

import pytest

from exact.benchmarks.osworld.format import parse
from exact.benchmarks.osworld.suite import FOLDER, OSWorld, check_parts
from exact.benchmarks.osworld.survey import HERE, reason, survey
from exact.errors import UsageError
from tests.benchmarks.osworld.test_format import item

ERRONEOUS = "osworld/libreoffice_writer/ecc2413d-8a48-416e-a3a2-d30106ca36cb"
"""Its metric `contains_page_break` wants rules, and the file has none."""


def needs(config: list[dict[str, Any]] | None = None, result: str = "vm_file", func: str = "exact_match", **more: Any) -> str:
    evaluator = {"func": func, "result": {"type": result}}
    return reason(parse({**item(), "config": config or [], "evaluator": evaluator, **more}, "here"))


def test_the_reason_is_named() -> None:
    assert needs() == HERE
    assert needs([{"type": "download", "parameters": {}}]).startswith("files of the internet")
    assert needs([{"type": "chrome_open_tabs", "parameters": {}}, {"type": "download", "parameters": {}}]).startswith("sites")
    assert needs([{"type": "login", "parameters": {}}]).startswith("an account")
    assert needs(result="vscode_config").startswith("Visual Studio Code") and needs(related_apps=["vs_code"]) == HERE
    assert needs(func="compare_audios").startswith("the package librosa")
    assert needs(result="active_url_from_accessTree").startswith("sites")


@pytest.mark.skipif(FOLDER not in os.environ, reason=f"OSWorld's tasks are not here: {FOLDER} names their folder")
async def test_all_files_of_a_checkout_load_and_resolve() -> None:
    try:
        check_parts()
    except UsageError as error:
        pytest.skip(str(error))
    found = await survey(OSWorld(), resolve=True)
    assert not found.unreadable
    assert set(found.lacking) <= {ERRONEOUS}
    assert len(found.reasons) == len(OSWorld().ids())
