import pytest

from exact.origins import is_web, origin, origins, refusal, target_refusal

HERE = ("https://shop.example",)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://shop.example/cart?a=1#x", "https://shop.example"),
        ("HTTPS://Shop.Example:443/", "https://shop.example"),
        ("http://shop.example:443/", "http://shop.example:443"),
        ("http://user:pw@shop.example./", "http://shop.example"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://SHOP.example..:80/", "http://shop.example"),
        ("https://Büro.example/", "https://xn--bro-hoa.example"),
        ("https://xn--bro-hoa.example./", "https://xn--bro-hoa.example"),
        ("http://./", ""),
        ("wss://shop.example/feed", "https://shop.example"),
        ("about:blank", ""),
        ("http://[broken", ""),
        ("http://shop.example:99999999/", ""),
        ("", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port_only(url: str, expected: str) -> None:
    assert origin(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [("https://shop.example/cart", True), ("HTTP://[::1]:8080/", True)]
    + [
        (url, False) for url in ("wss://shop.example", "http://[::1", "http://a:99999", "http://", "shop.example", "file:///etc/passwd", "")
    ],
)
def test_an_address_of_the_web_is_http_with_a_host(url: str, expected: bool) -> None:
    assert is_web(url) is expected


def test_origins_are_distinct_and_in_order() -> None:
    assert origins("http://b.test/1", "http://a.test/", "http://b.test/2", "about:blank") == ("http://b.test", "http://a.test")


@pytest.mark.parametrize(
    "url", ["https://shop.example/x", "data:text/html,hi", "about:srcdoc", "blob:https://shop.example/1-2", "blob:null/1-2"]
)
def test_requests_that_belong_to_the_task_are_sent(url: str) -> None:
    assert refusal(url, HERE) == ""


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/",
        "https://shop.example:8443/",
        "https://shop.example.evil.test/",
        "https://shop.example@evil.test/",
        "https://evil.test/?https://shop.example",
        "blob:https://evil.test/1-2",
        "blob:blob:https://evil.test/1-2",
        "file:///etc/passwd",
        "chrome://version",
        "javascript:alert(1)",
        "",
    ],
)
def test_requests_outside_the_task_are_refused(url: str) -> None:
    assert refusal(url, HERE)


def test_an_agent_goes_to_web_pages_only() -> None:
    assert target_refusal("data:text/html,hi", HERE) == "data: addresses are not allowed"
    assert target_refusal("https://shop.example/", HERE) == ""


def test_a_refusal_names_the_origin() -> None:
    assert refusal("https://evil.test/x", HERE) == "https://evil.test is outside the task's origins"
