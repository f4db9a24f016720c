"""20,000 addresses through the guard and 20,000 actions through the parser.

There are typed errors only, and no request to another server is let through.
"""

from __future__ import annotations

import random
from ipaddress import ip_address
from urllib.parse import urlsplit

from exact.action import Action
from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.browser.network.body import kind_of
from exact.environments.browser.network.deny import DenyList, forms, is_private, written_address
from exact.environments.browser.network.dial import Destinations
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.rules import PolicyRules
from exact.errors import ActionError
from exact.origins import origin, target_refusal

COUNT = 20_000
ALLOWED = ("http://shop.example", "https://shop.example:8443", "http://127.0.0.1:8000")
PARTS = (
    *("http", "https", "ws", "wss", "file", "data", "blob", "javascript", "HTTP", "ht\ttp", "about", "", "view-source", "filesystem"),
    *(
        "://",
        ":",
        "//",
        "/",
        "\\",
        "@",
        "?",
        "#",
        "%",
        "%2f",
        "%00",
        "[",
        "]",
        ".",
        "..",
        "\0",
        "\n",
        "\t",
        " ",
        "\u3002",
        "\uff0f",
        "\u202e",
    ),
    *("shop.example", "SHOP.example.", "shop.example.evil.test", "evil.test", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "::1"),
    *("[::ffff:127.0.0.1]", "büro.example", "xn--", "xn--a", "ß", "\ud800", ":80", ":8443", ":99999", ":-1", ":٣", "user:pw@", "localhost"),
)
METHODS = ("GET", "POST", "get", "DELETE", "PROPFIND", "", "WEBSOCKET", "G\nT")


class _Frames:
    def has(self, frame: str) -> bool:
        return False

    def tab_of(self, frame: str) -> str:
        return frame

    async def ask(self) -> None:
        pass

    def end(self, why: str) -> None:
        """Do nothing."""


def address(chance: random.Random) -> str:
    if chance.random() < 0.3:
        return "".join(chr(chance.randrange(0x250)) for _ in range(chance.randrange(40)))
    return "".join(chance.choice(PARTS) for _ in range(chance.randrange(1, 9)))


def test_20000_addresses_through_the_guard_are_decided() -> None:
    rules = PolicyRules(allowed=ALLOWED, deny=DenyList(("https://shop.example:8443",)), learns=True)
    chance, policy = random.Random(1), Gate(rules, _Frames())
    destinations = Destinations({"shop.example": "127.0.0.1:81"}, DenyList(("*.evil.test", "10.0.0.0/8")))
    destinations.admit(ALLOWED, ())
    for _ in range(COUNT):
        url = address(chance)
        body = address(chance) if chance.random() < 0.3 else ""
        request = BrowserMessage(chance.choice(METHODS), url, body, frame="f", referrer=address(chance), is_document=chance.random() < 0.3)
        decision = policy.decide(request)
        if not decision.refused and url.strip().lower().partition(":")[0] in ("http", "https", "ws", "wss"):
            assert origin(url) in ALLOWED and origin(url) != "https://shop.example:8443"
            assert request.method in ("GET", "HEAD", "OPTIONS")
        target_refusal(url, ALLOWED)
        policy.record_refused_socket(url)
        host, port = (urlsplit(origin(url)).hostname or url), chance.randrange(65536)
        if not destinations.refusal(host, port):
            assert {
                origin(f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}") for scheme in ("http", "https")
            } & {*ALLOWED}
        destinations.server(host, port)
        written_address(host)
    policy.take_effects()


def test_20000_addresses_of_machines_are_told_private_or_public() -> None:
    chance, found = random.Random(2), Destinations()
    found.admit(ALLOWED, ())
    server = found.server("shop.example", 80)
    for _ in range(COUNT):
        number = chance.getrandbits(32) if chance.random() < 0.5 else chance.getrandbits(128)
        each = ip_address(number)
        assert bool(found.address_refusal(server, each)) is is_private(each)
        assert is_private(each) or not any(map(is_private, forms(each)))


def test_first_bytes_of_any_kind_are_told() -> None:
    chance = random.Random(3)
    for _ in range(COUNT):
        data = chance.randbytes(chance.randrange(200))
        assert kind_of(data).value and (data[:1] == b"\x16" or data[:1].isalpha() or kind_of(data).name == "OTHER")


VERBS = (*BROWSER_ACTIONS.verbs, "Click", "rm", "", "click_at ", "__import__")
WORDS = (
    '"',
    "'",
    "[",
    "]",
    "[1]",
    "[99999999999999999999]",
    "[-1]",
    "[٣]",
    "\\",
    "\\u0000",
    "\n",
    "\0",
    "é",
    "\ud83d",
    "1e999",
    "NaN",
    "-",
    ",",
    "<secret:x>",
    "{}",
    "$(id)",
)


def test_20000_actions_through_the_parser_are_actions_or_typed_errors() -> None:
    chance, read = random.Random(4), 0
    for _ in range(COUNT):
        text = " ".join([chance.choice(VERBS), *(chance.choice(WORDS) + chance.choice((*WORDS, "")) for _ in range(chance.randrange(5)))])
        if chance.random() < 0.2:
            text = "".join(chr(chance.randrange(1, 0x3000)) for _ in range(chance.randrange(60)))
        for space in (BROWSER_ACTIONS, PAGE_ACTIONS):
            try:
                action = space.parse(text)
            except ActionError:
                continue
            read += 1
            assert isinstance(action, Action) and space.parse(str(action)) == action
    assert read > 100
