"""Servers of strangers that are named as OpenEnv servers."""

import pytest
from pytest_httpserver import HTTPServer

from exact.environments.openenv import openenv_factory
from exact.errors import UsageError

DEEP = "[" * 100_000


@pytest.mark.parametrize("body", ["x" * (65 << 20), DEEP, f'{{"action": {DEEP}', "[]", '{"action": {"required": 3}}', "\0"])
async def test_an_answer_that_is_no_schema_is_one_line(httpserver: HTTPServer, body: str) -> None:
    for path in ("/schema", "/openapi.json"):
        httpserver.expect_request(path).respond_with_data(body)
    with pytest.raises(UsageError) as refused:
        async with openenv_factory(httpserver.url_for("")):
            pass
    assert "no OpenEnv server at" in str(refused.value) and len(str(refused.value)) < 400
