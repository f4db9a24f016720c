"""The origins that a site talks to are proposed, one yes each or one for a registrable domain, before any secret is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.cli.main import main
from exact.cli.partners import agreed, by_domain, registrable_domain

WORD = "Tern&Dolomite-64#w"
SITE = """
name: shop
url: http://shop.test/
hosts: {{shop.test: "{at}", api.shop.test: "{at}", cdn.parts.test: "{at}", count.parts.test: "{at}"}}
browser:
  login:
    url: /in
    secrets: {{user: ann, password: "{word}"}}
    script: ['fill [textbox "Password"] "<password>"', 'press "Enter"']
    headers: {{X-Gate: "{word}"}}
"""


@pytest.mark.parametrize(
    ("site", "domain"),
    [
        ("https://a.b.example.co.uk", "example.co.uk"),
        ("https://example.com:8443", "example.com"),
        ("https://ann.github.io", "ann.github.io"),  # anybody gets a name there
        ("https://www.city.kobe.jp", "city.kobe.jp"),
        ("http://127.0.0.1:8000", "127.0.0.1"),
        ("http://[::1]:8000", "::1"),
        ("http://localhost", "localhost"),
        ("https://co.uk", "co.uk"),
        ("http://api.shop.test", "shop.test"),
    ],
)
def test_a_registrable_domain_is_what_somebody_registered(site: str, domain: str) -> None:
    assert registrable_domain(site) == domain


def test_one_yes_is_enough_for_a_registrable_domain_and_a_no_asks_for_each() -> None:
    sites = ["https://a.example.com", "https://pay.example.org", "https://b.example.com", "https://ann.github.io", "https://bob.github.io"]
    asked = list[str]()

    def ask(question: str) -> bool:
        asked.append(question)
        return "example.com (" in question or "bob" in question

    assert agreed(sites, ask) == ["https://bob.github.io", "https://a.example.com", "https://b.example.com"]
    assert len(asked) == 4 and "all of example.com (https://a.example.com, https://b.example.com)" in asked[2]
    assert agreed(["https://a.example.com", "https://b.example.com"], lambda question: "b.ex" in question and "all" not in question) == [
        "https://b.example.com"
    ]
    assert list(by_domain(sites)) == ["ann.github.io", "bob.github.io", "example.com", "example.org"]


def served(httpserver: HTTPServer) -> list[Request]:
    """Serve a shop whose log-in page loads a script from a third origin, which posts to an API. Return the requests, as they come."""
    seen = list[Request]()
    pages = {
        "http://shop.test/": "<title>Shop</title><a href=/in>Log in</a><img src='http://count.parts.test/dot.gif?v=3'>",
        "http://shop.test/in": "<title>In</title><label>Password <input type=password></label><script src='http://cdn.parts.test/a.js'></script>",
        "http://cdn.parts.test/a.js": "fetch('http://api.shop.test/session', {method: 'POST', mode: 'no-cors', body: 'warm'})",
    }

    def answer(request: Request) -> Response:
        seen.append(request)
        kind = "text/javascript" if request.path.endswith(".js") else "text/html"
        return Response(pages.get(request.base_url, ""), content_type=kind)

    httpserver.expect_request("").respond_with_handler(answer)
    httpserver.expect_request("/").respond_with_handler(answer)
    for path in ("/in", "/a.js", "/session", "/dot.gif"):
        httpserver.expect_request(path).respond_with_handler(answer)
    return seen


def test_a_dry_run_proposes_the_origins_that_a_site_talks_to_and_sends_no_secret(
    httpserver: HTTPServer, executable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, site = served(httpserver), tmp_path / "site.yaml"
    site.write_text(SITE.format(at=f"127.0.0.1:{httpserver.port}", word=WORD))
    out = tmp_path / "run"
    assert main(["run", "--site", str(site), "--goal", "Look.", "--out", str(out), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "talks to     http://cdn.parts.test, http://count.parts.test, http://api.shop.test" in said, said
    assert "login: {partner_origins: [http://api.shop.test]}" in said
    assert "allow_origins: [http://api.shop.test, http://cdn.parts.test, http://count.parts.test]" in said
    assert WORD not in said and not out.exists()
    assert {request.path for request in seen} >= {"/", "/in", "/a.js"} and {request.method for request in seen} == {"GET"}
    assert not [request for request in seen if WORD in str(request.headers) or WORD in request.url]


def test_a_dry_run_opens_no_site_without_secrets_and_says_why_a_site_was_not_seen(
    httpserver: HTTPServer, executable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, site = served(httpserver), tmp_path / "site.yaml"
    site.write_text(f"name: shop\nurl: {httpserver.url_for('/')}\n")
    assert main(["run", "--site", str(site), "--goal", "Look.", "--dry-run"]) == 0
    assert not seen and "opened" not in capsys.readouterr().out
    site.write_text(SITE.format(at="127.0.0.1:1", word=WORD))
    assert main(["run", "--site", str(site), "--goal", "Look.", "--dry-run"]) == 0
    assert "not seen     the origins that http://shop.test/ talks to: " in capsys.readouterr().out
