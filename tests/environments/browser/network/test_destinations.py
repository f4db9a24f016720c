"""Which servers may be reached: by origin, by deny-list, and by the addresses that names lead to."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

import pytest

from exact.environments.browser.network.deny import Address, DenyList
from exact.environments.browser.network.dial import Destinations, Dialler, ForbiddenAddress
from exact.errors import UsageError

ALLOWED = ("http://shop.example", "http://127.0.0.1:8000", "https://[::1]:8443", "http://wiki", "http://localhost:3000", "http://10.0.0.5")


def destinations(hosts: dict[str, str] | None = None, deny: tuple[str, ...] = ()) -> Destinations:
    found = Destinations(hosts, DenyList(deny))
    found.admit(ALLOWED, ("http://shop.example",))
    return found


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("shop.example", 80, True),
        ("SHOP.example.", 80, True),
        ("shop.example", 8080, False),
        ("127.0.0.1", 8000, True),
        ("127.0.0.2", 8000, False),
        ("::1", 8443, True),
        ("evil.example", 80, False),
        ("shop.example.evil.test", 80, False),
    ],
)
def test_hosts_and_ports_of_allowed_origins_are_reached(host: str, port: int, expected: bool) -> None:
    assert bool(destinations().refusal(host, port)) is not expected


@pytest.mark.parametrize(
    ("host", "address", "expected"),
    [
        ("shop.example", "93.184.216.34", True),
        ("shop.example", "10.0.0.5", True),  # allowed as an origin of its own
        ("shop.example", "10.0.0.6", False),
        ("shop.example", "127.0.0.1", False),  # allowed at another port only
        ("shop.example", "127.0.0.2", False),
        ("shop.example", "169.254.169.254", False),
        ("shop.example", "100.64.0.1", False),
        ("shop.example", "0.0.0.0", False),
        ("shop.example", "::ffff:10.0.0.6", False),
        ("shop.example", "64:ff9b::a9fe:a9fe", False),
        ("shop.example", "2002:a00:6::", False),
        ("shop.example", "fe80::1", False),
        ("shop.example", "fd00::1", False),
        ("shop.example", "224.0.0.1", False),
        ("shop.example", "2606:2800:220:1::1", True),
        ("localhost", "127.0.0.1", True),
        ("wiki", "192.168.1.4", True),
        ("wiki", "169.254.169.254", False),
        ("wiki.internal", "192.168.1.4", True),
    ],
)
def test_a_public_name_may_not_lead_to_a_private_address(host: str, address: str, expected: bool) -> None:
    found = destinations()
    assert bool(found.address_refusal(found.server(host, 80), ip_address(address))) is not expected


def test_the_table_of_hosts_may_lead_anywhere_and_knows_every_spelling() -> None:
    found = destinations(
        {"Shop.Example.": "169.254.1.1:81", "wiki:80": "127.0.0.1:82", "six.test": "[::1]:83", "büro.example": "127.0.0.1"}
    )
    assert [found.server(host, 80)[1:3] for host in ("shop.example", "SHOP.EXAMPLE.", "wiki", "six.test", "xn--bro-hoa.example.")] == [
        ("169.254.1.1", 81),
        ("169.254.1.1", 81),
        ("127.0.0.1", 82),
        ("::1", 83),
        ("127.0.0.1", 80),
    ]
    assert found.server("wiki", 81)[1:3] == ("wiki", 81)
    assert not found.address_refusal(found.server("shop.example", 80), ip_address("169.254.1.1"))


@pytest.mark.parametrize("entry", ["http://shop.example", "shop.example", "*.example", "SHOP.example."])
def test_what_is_denied_is_not_reached_where_it_is_allowed(entry: str) -> None:
    assert destinations(deny=(entry,)).refusal("shop.example", 80) == "http://shop.example is on the deny-list"
    assert not destinations(deny=(entry,)).refusal("wiki", 80)
    assert DenyList((entry,)).refusal("ws://shop.example./feed")


def test_a_denied_network_is_not_reached_by_any_name() -> None:
    found = destinations({"shop.example": "10.1.2.3"}, deny=("10.0.0.0/8", "::1"))
    assert found.refusal("10.0.0.5", 80) and found.refusal("::1", 8443)
    assert "deny-list" in found.address_refusal(found.server("shop.example", 80), ip_address("10.1.2.3"))
    assert "deny-list" in found.address_refusal(found.server("shop.example", 80), ip_address("::ffff:10.1.2.3"))


@pytest.mark.parametrize("entry", ["https://", "https://shop.example/admin", "a b", "shop.example:80", "10.0.0.0/99", "*"])
def test_a_deny_list_says_what_to_write(entry: str) -> None:
    with pytest.raises(UsageError, match=r"browser\.deny: invalid entry .*: write https://host"):
        DenyList((entry,))


async def test_a_name_is_resolved_once_and_keeps_its_address() -> None:
    asked, servers = (
        list[str](),
        [await asyncio.start_server(_greet(name), f"127.0.0.{number}", 0) for number, name in ((1, b"a"), (2, b"b"))],
    )
    port = servers[0].sockets[0].getsockname()[1]
    moved = await asyncio.start_server(_greet(b"b"), "127.0.0.2", port)

    async def resolve(name: str) -> tuple[Address, ...]:
        asked.append(name)
        return (ip_address(f"127.0.0.{len(asked)}"),)

    found, dialler = destinations(), Dialler(resolve=resolve)
    try:
        for _ in range(3):
            route = await dialler.connect(found.server("localhost", port), lambda address: "")
            assert await route.reader.read() == b"a"
            route.writer.close()
    finally:
        for server in (*servers, moved):
            server.close()
    assert asked == ["localhost"]


async def test_a_name_that_leads_to_a_private_address_is_refused_with_the_way_out() -> None:
    async def resolve(name: str) -> tuple[Address, ...]:
        return (ip_address("192.168.0.7"), ip_address("127.0.0.1"))

    found = destinations()
    server = found.server("shop.example", 80)
    with pytest.raises(
        ForbiddenAddress, match=r"shop.example leads to the private address 192\.168\.0\.7: .* --allow-origin, or .*`hosts`"
    ):
        await Dialler(resolve=resolve).connect(server, lambda address: found.address_refusal(server, address))


async def test_a_name_that_was_not_found_is_looked_up_again() -> None:
    asked = list[str]()

    async def resolve(name: str) -> tuple[Address, ...]:
        asked.append(name)
        raise OSError("no such name")

    dialler = Dialler(resolve=resolve)
    for _ in range(2):
        with pytest.raises(OSError, match="no such name"):
            await dialler.connect(destinations().server("wiki", 80), lambda address: "")
    assert asked == ["wiki", "wiki"]


def _greet(said: bytes):  # type: ignore[no-untyped-def]
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    return greet
