"""The deny-list: addresses that are never reached, even if they are allowed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from exact.errors import UsageError
from exact.origins import host_name, origin

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")
"""Addresses behind carriers' and clouds' translators (RFC 6598), which Python counts neither as private nor as global."""


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
        forms = {address, embedded(address)}
        return any(each.version == network.version and each in network for network in self._networks for each in forms)


def written_address(host: str) -> Address | None:
    """Return the address that a host is written as, with or without brackets; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for; the address itself if it stands for none."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_private(address: Address) -> bool:
    """Return whether an address is of this machine, of a private network or of a link, and not of the public internet."""
    real = embedded(address)
    return not real.is_global or real.is_multicast or (real.version == 4 and real in _SHARED)


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _is_name(entry: str) -> bool:
    return _NAME.fullmatch(host_name(entry)) is not None
