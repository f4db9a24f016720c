"""The deny-list: addresses that are never reached, even if they are allowed. Which addresses are not of the public internet.

The latter are those of IANA's registries of special-purpose addresses, which lie beside this file as IANA publishes them (CC0). The answers
are therefore the same on every version of Python, whose `ipaddress` knows newer blocks only in newer versions.
"""

from __future__ import annotations

import csv
import functools
import ipaddress
import re
from collections.abc import Iterable
from importlib.resources import files
from urllib.parse import urlsplit

from exact.errors import UsageError
from exact.origins import host_name, origin

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_REGISTRIES = ("iana-ipv4-special-registry-1.csv", "iana-ipv6-special-registry-1.csv")
"""Tables from https://www.iana.org/assignments/iana-ipv4-special-registry/ and iana-ipv6-special-registry, as of July 2026."""
_OTHERS = ("224.0.0.0/4", "168.63.129.16/32")
"""Special addresses of other tables: multicast (RFC 5771), and the server of a cloud that answers its virtual machines alone."""
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The block of which IANA assigns the unicast addresses of the internet (RFC 4291)."""
_STANDS_FOR = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""Blocks whose addresses lead to the IPv4 address in them, be it public or not: mapped, and by the public prefix of translators."""
_AT_END = (*_STANDS_FOR, *map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96")))
"""Blocks whose last 32 bits are an IPv4 address: those, IPv4-compatible (RFC 4291) and IPv4-translated ones (RFC 2765)."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b:1::/48")
_LAYOUTS = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
"""Bytes of the IPv4 address, by the length of the prefix that the translators of a local network chose in this block (RFC 6052, 8215)."""
_ISATAP = re.compile(rb".{8}[\0-\3]\0\x5e\xfe.{4}", re.DOTALL)
"""Addresses of any network that hold an IPv4 address for a tunnel in its site (RFC 5214)."""
_NEARBY = tuple(map(ipaddress.ip_network, ("169.254.0.0/16", "fe80::/10", "224.0.0.0/4", "ff00::/8", "192.0.0.0/24")))
"""Addresses of a link, of groups and of protocols. Servers of metadata are among them, and none that a local name should lead to."""


class DenyList:
    """Origins, host names, addresses and networks that are never reached."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """Read entries: `https://pay.example`, `pay.example`, `*.ads.example` (with `ads.example`), `10.1.2.3` or `10.0.0.0/8`.

        Raises UsageError for anything else.
        """
        self._origins, self._names, self._suffixes, self._networks = set[str](), set[str](), set[str](), list[Network]()
        for entry in filter(None, map(str.strip, entries)):
            self._add(entry)

    def _add(self, entry: str) -> None:
        if network := _network(entry):
            self._networks.append(network)
        elif "://" in entry and origin(entry) and urlsplit(entry).path in ("", "/"):
            self._origins.add(origin(entry))
        elif entry.startswith("*.") and _is_name(entry[2:]):
            self._suffixes.add(host_name(entry[2:]))
        elif _is_name(entry):
            self._names.add(host_name(entry))
        else:
            raise UsageError(f"browser.deny: invalid entry {entry!r}: write https://host, host, *.host, an address or a network 10.0.0.0/8")

    def refusal(self, url: str) -> str:
        """Return the reason if a URL is denied; empty if it is not."""
        found = origin(url)
        if not found:
            return ""
        return f"{found} is on the deny-list" if found in self._origins or self.denies_host(urlsplit(found).hostname or "") else ""

    def denies_host(self, host: str) -> bool:
        """Return whether a host name or a written address is denied, whatever the port."""
        name = host_name(host)
        if name in self._names or any(name == each or name.endswith(f".{each}") for each in self._suffixes):
            return True
        address = written_address(host)
        return address is not None and self.denies_address(address)

    def denies_address(self, address: Address) -> bool:
        """Return whether an address to which a name leads is denied."""
        return any(each in network for network in self._networks for each in forms(address))


def written_address(host: str) -> Address | None:
    """Return the address that a host is written as, with or without brackets; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def forms(address: Address) -> tuple[Address, ...]:
    """Return an address and the IPv4 addresses that translators or tunnels find in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    octets, found = address.packed, [*(address.teredo or ()), *filter(None, (address.sixtofour,))]
    if _ISATAP.fullmatch(octets) or any(address in block for block in _AT_END):
        found.append(ipaddress.IPv4Address(octets[12:]))
    if address in _TRANSLATED:
        found += (ipaddress.IPv4Address(bytes(octets[at] for at in layout)) for layout in _LAYOUTS)
    return (address, *found)


def is_private(address: Address) -> bool:
    """Return whether an address is of this machine, a private network, a link or a special purpose, and not of the public internet.

    An address that an IPv4 address is written into is private if that one is.
    """
    itself, *inner = forms(address)
    special = any(itself in block for block in _special()) or (itself.version == 6 and itself not in _UNICAST)
    return (special and not any(itself in block for block in _STANDS_FOR)) or any(map(is_private, inner))


def is_nearby(address: Address) -> bool:
    """Return whether an address is link-local, of a group or of a protocol, so that not even a local name leads to it."""
    return any(each in network for network in _NEARBY for each in forms(address))


@functools.cache
def _special() -> tuple[Network, ...]:
    """Return the blocks that are not of the public internet. A block inside of one of them is not either, whatever its row says."""
    rows = [row for name in _REGISTRIES for row in csv.DictReader(files(__package__).joinpath(name).read_text("ascii").splitlines(True))]
    blocks = [
        each.split()[0] for row in rows if not row["Globally Reachable"].startswith("True") for each in row["Address Block"].split(", ")
    ]
    return tuple(map(ipaddress.ip_network, (*_OTHERS, *blocks)))


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _is_name(entry: str) -> bool:
    return _NAME.fullmatch(host_name(entry)) is not None
