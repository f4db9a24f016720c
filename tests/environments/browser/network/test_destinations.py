"""Which servers may be reached: by origin, by deny-list, and by the addresses that names lead to."""

from __future__ import annotations

import asyncio
import ipaddress
import random
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from exact.environments.browser.network import deny
from exact.environments.browser.network.deny import Address, DenyList, is_private
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
        ("wiki", "fec0::4", True),
        ("wiki", "64:ff9b:1::c0a8:104", True),
        ("wiki", "::ffff:169.254.169.254", False),
        ("wiki", "64:ff9b:1:a9fe:a9:fe00::", False),
        ("wiki", "192.0.0.192", False),
        ("wiki", "ff02::1", False),
    ],
)
def test_a_public_name_may_not_lead_to_a_private_address(host: str, address: str, expected: bool) -> None:
    found = destinations()
    assert bool(found.address_refusal(found.server(host, 80), ip_address(address))) is not expected


SPECIAL = (
    "fec0::1", "feff::1", "64:ff9b:1::808:808", "64:ff9b:1:ffff::1", "64:ff9b::10.0.0.6", "::10.0.0.6", "::8.8.8.8", "::ffff:0:8.8.8.8",
    "::ffff:192.168.1.1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "3fff::1", "5f00::1", "100::1",
    "100:0:0:1::1", "2606:4700::5efe:10.0.0.6", "2606:4700::200:5efe:169.254.1.1", "4000::1", "fbff::1", "::", "::1", "fd00:ec2::254",
    "192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.192", "192.88.99.1", "198.18.0.1", "198.19.255.255", "203.0.113.7", "240.0.0.1",
    "255.255.255.255", "239.1.1.1", "100.100.100.200", "168.63.129.16", "0.1.2.3",
)  # fmt: skip
PUBLIC = (
    "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1", "223.255.255.255", "192.31.196.1",
    "2a00:1450::1", "2620:4f:8000::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2606:4700::200:5efe:8.8.8.8", "2003::1",
)  # fmt: skip


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_address_is_not_of_the_public_internet(address: str) -> None:
    assert is_private(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_of_the_public_internet(address: str) -> None:
    assert not is_private(ip_address(address))


def test_no_address_that_python_knows_as_special_counts_as_public() -> None:
    """A block that a new Python knows, and that our copy of the registries lacks, fails here: fetch the registries anew."""
    chance = random.Random(4)
    edges = [int(each) for block in deny._special() for each in (block[0], block[-1])]
    numbers = [each + step for each in edges for step in (-1, 0, 1)] + [chance.getrandbits(size) for size in (32, 128) for _ in range(5000)]
    tried = [IPv4Address(each) for each in numbers if 0 <= each < 1 << 32] + [IPv6Address(each) for each in numbers if 0 <= each < 1 << 128]
    tried += [each for network in _known_to_python() for each in (network[0], network[-1])]
    wrong = [each for each in tried if (not each.is_global or each.is_multicast) and not is_private(each)]
    assert [each for each in wrong if not any(each in block for block in deny._STANDS_FOR)] == []


def test_a_denied_address_is_found_in_every_form() -> None:
    written = ["::ffff:5db8:d822", "::93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::1", "2001::a247:27dd", "fe80::5efe:5db8:d822"]
    assert all(DenyList(("93.184.216.0/24",)).denies_address(ip_address(each)) for each in written)
    assert not DenyList(("93.184.216.0/24",)).denies_address(ip_address("64:ff9b::93.184.217.34"))


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


def _known_to_python() -> list[deny.Network]:
    """Return the blocks that this Python knows as private; none if it keeps them by another name."""
    kinds = [getattr(ipaddress, name, None) for name in ("_IPv4Constants", "_IPv6Constants")]
    return [each for kind in kinds for each in getattr(kind, "_private_networks", ())]


def _greet(said: bytes):  # type: ignore[no-untyped-def]
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    return greet
