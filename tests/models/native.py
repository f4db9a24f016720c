"""A server of recorded answers, for tests of the native APIs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.http_server import BriefServer

Answer = dict[str, Any] | tuple[int, dict[str, Any]] | tuple[int, dict[str, Any], dict[str, str]]


class RecordedServer:
    """Answers each request with what `answers(body)` returns: JSON, and a status and headers where they are not 200 and none."""

    def __init__(self, http: HTTPServer, answers: Callable[[dict[str, Any]], Answer]) -> None:
        self.bodies, self.headers, self.paths, self._answers = [], [], [], answers
        self.base_url = f"http://127.0.0.1:{http.port}/v1"
        http.expect_request("/v1/responses").respond_with_handler(self._answer)
        http.expect_request("/v1/messages").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.bodies.append(json.loads(request.data))
        self.headers.append(dict(request.headers))
        self.paths.append(request.path)
        given = self._answers(self.bodies[-1])
        status, data, headers = (*given, {})[:3] if isinstance(given, tuple) else (200, given, {})
        return Response(json.dumps(data), status=status, content_type="application/json", headers=headers)


@contextmanager
def recorded(*answers: Answer | Callable[[dict[str, Any]], Answer]) -> Iterator[RecordedServer]:
    """Serve answers in turn, the last one for all further requests; or those of one function of the body."""
    left = list(answers)

    def answer(body: dict[str, Any]) -> Answer:
        given = left.pop(0) if len(left) > 1 else left[0]
        return given(body) if callable(given) else given

    http = BriefServer(host="127.0.0.1")
    http.start()
    try:
        yield RecordedServer(http, answer)
    finally:
        http.stop()
