"""What addresses of GETs say."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.presume.address import address_writes, graphql_in, overridden_methods, overriding_methods, writing_address

SITE = "http://shop.test"


@pytest.mark.parametrize(
    "path",
    [
        "/cart/add?id=3", "/items/3/delete", "/item?delete=3", "/index.php?title=A&action=watch", "/?add-to-cart=12", "/removeItem?id=2",
        "/graphql?operationName=addToCart&extensions=x", "/vote?id=3&how=up", "/orders/3/cancel", "/delete-account", "/do.php?op=save",
        "/artikel/3/loeschen", "/panier/3/supprimer", "/koszyk/usun", "/basket/remove/?line=4", "/post/9/publish.aspx",
    ],
)  # fmt: skip
def test_an_address_that_says_a_command_is_presumed_to_write(path: str) -> None:
    assert writing_address(SITE + path)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/search?q=delete", "/blog/how-to-delete-old-files", "/pages/add/", "/edit", "/items/new", "/likes", "/updates", "/saved",
        "/cart", "/checkout", "/orders", "/item?id=3&sort=price", "/star-trek", "/news/start", "/book/42",
        "/archive.org-history-of-the-web", "/api/items?updated=2024", "/search?action=search&q=x", "/login?next=/items/3/delete",
    ],
)  # fmt: skip
def test_an_address_that_shows_something_is_not(path: str) -> None:
    assert not writing_address(SITE + path)


def test_a_parameter_may_ask_for_another_method() -> None:
    assert overridden_methods(SITE + "/items/3?_method=delete") == ("DELETE",)
    assert overridden_methods(SITE + "/items/3?x-http-method-override=PUT") == ("PUT",) and not overridden_methods(SITE + "/items/3")


def test_graphql_in_an_address_says_what_it_does() -> None:
    assert graphql_in(SITE + "/graphql?query=mutation%7Bbuy(id:3)%7Bid%7D%7D") == {"mutation"}
    assert graphql_in(SITE + "/graphql?query=query%20A%7Bitems%7Bid%7D%7D") == {"query"}
    assert not graphql_in(SITE + "/search?query=mutation")


@pytest.mark.parametrize(
    "query",
    [
        "_method[]=put",
        "_method[0]=PATCH", "_METHOD=post", "_method%00=delete", "a=1;_method=delete", "_method=get&_method=delete",
        "_method=DELETE%00GET", "%5Fmethod=purge", ".method=put", "%20_method=put", "[method=put",
        "x_http_method_override=PUT", "_method=get,delete",
    ],
)  # fmt: skip
def test_a_parameter_asks_for_another_method_in_each_spelling_that_servers_read(query: str) -> None:
    assert address_writes(f"{SITE}/items/3?{query}")


def test_a_parameter_in_the_path_asks_for_another_method() -> None:
    assert address_writes(f"{SITE}/items/3;_method=delete") and not address_writes(f"{SITE}/items/3;v=2?_method=GET")


@pytest.mark.parametrize(
    ("name", "value", "methods"),
    [
        ("X-HTTP-Method-Override", "DELETE", ("DELETE",)), ("x-http-method", "get, put", ("GET", "PUT")),
        ("X_Method_Override", " patch ", ("PATCH",)), ("Accept", "DELETE", ()),
    ],
)  # fmt: skip
def test_a_header_asks_for_other_methods(name: str, value: str, methods: tuple[str, ...]) -> None:
    assert overriding_methods([(name, value)]) == methods


@pytest.mark.parametrize(
    "query",
    [
        ",,mutation { a }",
        "\ufeffmutation { a }", 'query Q { a(s: """ " """) } mutation M { b(s: """ " """) }', "query { a } mutation { b }",
        "query { a", "mutation{a}#{", "query Q { a } garbage",
    ],
)  # fmt: skip
def test_a_graphql_text_that_is_not_known_to_read_writes(query: str) -> None:
    assert address_writes(f"{SITE}/graphql?query={quote(query)}")


def test_a_query_within_json_in_a_parameter_counts() -> None:
    assert address_writes(f"{SITE}/graphql?batch=" + quote('[{"query": "mutation { a }"}]'))
    assert not address_writes(f"{SITE}/search?filter=" + quote('{"size": 3}'))


def test_each_query_of_an_address_counts() -> None:
    assert address_writes(f"{SITE}/graphql?query={quote('mutation { a }')}&query={quote('{ a }')}")
    assert not address_writes(f"{SITE}/graphql?query={quote('query Q { a } fragment F on T { b }')}&operationName=Q")


@given(st.text(max_size=80))
def test_any_text_is_an_address_that_says_something_or_nothing(text: str) -> None:
    for url in (text, f"{SITE}/{text}", f"{SITE}/?{text}"):
        assert isinstance(writing_address(url), str)
