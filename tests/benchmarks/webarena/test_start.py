"""An attempt does not begin on a site that is out of order: that would end as a score."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from exact.benchmarks.webarena import WebArena
from exact.config import BrowserConfig, ModelsConfig
from exact.errors import EnvironmentFailure
from tests.benchmarks.webarena.conftest import item


def unused() -> int:
    """Return a port without a server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(("up", "why"), [(True, "status 503"), (False, "ERR_CONNECTION_REFUSED")])
async def test_a_start_page_that_is_not_given_names_the_variable(
    up: bool, why: str, judged: bool, httpserver: HTTPServer, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/down").respond_with_data("down", status=503)
    monkeypatch.setenv("WA_SHOPPING", f"http://127.0.0.1:{httpserver.port if up else unused()}")
    (tmp_path / "tasks.json").write_text(json.dumps([item(start_url="__SHOPPING__/down")]))
    suite = WebArena(path=tmp_path / "tasks.json")
    said = rf"the start page http://127\.0\.0\.1:\d+/down cannot be opened \(.*{why}.*\): is WA_SHOPPING right, and the site up\?"
    opened = suite.with_models(ModelsConfig()) if judged else suite  # as the commands open them
    async with opened.environments(BrowserConfig(screenshots=False)) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(EnvironmentFailure, match=said):
            await environment.reset(suite.task("webarena/7"))
