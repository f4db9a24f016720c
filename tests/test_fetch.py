"""Requests of this process itself, to servers of strangers."""

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.origins import fetch


@pytest.mark.parametrize("url", ["file:///etc/passwd", "data:,x", "ftp://a.test/", "zzz://x", "http://127.0.0.1:99999/", "http:///x", "x"])
def test_only_web_addresses_are_asked(url: str) -> None:
    with pytest.raises(OSError, match="is no web address"):
        fetch(url, seconds=5, most=100)


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/", "data:,x"])
def test_no_redirect_leads_to_another_scheme(httpserver: HTTPServer, to: str) -> None:
    httpserver.expect_request("/").respond_with_data("", 302, {"Location": to})
    with pytest.raises(OSError):
        fetch(httpserver.url_for("/"), seconds=5, most=100)


def test_headers_are_sent_to_their_own_origin_alone(httpserver: HTTPServer) -> None:
    came = {}

    def answer(request: Request) -> Response:
        came[request.path] = request.headers.get("X-Key")
        return Response("yes") if request.path != "/" else Response("", 302, {"Location": f"http://localhost:{httpserver.port}/there"})

    for path in ("/", "/there"):
        httpserver.expect_request(path).respond_with_handler(answer)
    assert fetch(f"http://127.0.0.1:{httpserver.port}/", headers={"X-Key": "k"}, seconds=5, most=100) == b"yes"
    assert came == {"/": "k", "/there": None}


def test_a_long_answer_is_not_kept(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("x" * 200_000)
    with pytest.raises(OSError, match="more than 100 bytes"):
        fetch(httpserver.url_for("/"), seconds=5, most=100)


@pytest.mark.parametrize("headers", [{"A\r\nB": "c"}, {"A": "b\r\nC: d"}])
def test_headers_that_cannot_be_sent_are_an_error(httpserver: HTTPServer, headers: dict[str, str]) -> None:
    with pytest.raises(OSError):
        fetch(httpserver.url_for("/"), headers=headers, seconds=5, most=100)
