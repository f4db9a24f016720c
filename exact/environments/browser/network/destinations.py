"""The destinations of one browser: which servers its connections may reach, and where the table of hosts puts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from exact.environments.browser.network.deny import Address, DenyList, embedded, is_private, written_address
from exact.errors import EnvironmentFailure
from exact.origins import host_name, origin

_LOCAL_SUFFIXES = ("localhost", "test", "local", "internal", "home.arpa")
"""Ends of names that are no public names (RFC 6761, 6762, 8375, and ICANN for `internal`), so that nobody outside can point them here."""


class Destination(NamedTuple):
    """The server that a connection is made to."""

    name: str
    """Host as the browser asks for it, in its one form."""
    host: str
    """Host or address that is connected to."""
    port: int
    is_mapped: bool
    """Whether the table of hosts gives the address."""


class Destinations:
    """Servers that a browser may reach. Nothing is reached before `admit`."""

    def __init__(self, hosts: Mapping[str, str] | None = None, deny: DenyList | None = None) -> None:
        """Make destinations. `hosts`: addresses of names or of `name:port`, as in Outside. `deny`: what is never reached."""
        self._hosts = {_key(name): address for name, address in (hosts or {}).items()}
        self._deny = deny or DenyList()
        self._allowed: frozenset[str] = frozenset()
        self._sockets: frozenset[str] = frozenset()
        self._addresses: frozenset[tuple[Address, int]] = frozenset()
        """Addresses and ports that allowed origins are written with."""

    def admit(self, allowed: Iterable[str], sockets: Iterable[str]) -> None:
        """Allow connections to these origins from now on. `sockets`: origins that WebSockets may be opened to."""
        self._allowed, self._sockets = frozenset(allowed), frozenset(sockets)
        self._addresses = frozenset(found for each in self._allowed if (found := _written(each)))

    def move(self, base: str, address: str) -> None:
        """Connect to the URL `address` from now on when the browser asks for the server of the URL `base`."""
        parts, host = urlsplit(address), urlsplit(base).hostname
        if not parts.hostname or not host:
            raise EnvironmentFailure(f"the site's hook fork printed {address[:80]!r}, which is no address: let it print http://host:port")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._hosts[_key(host)] = f"[{parts.hostname}]:{port}" if ":" in parts.hostname else f"{parts.hostname}:{port}"

    def refusal(self, host: str, port: int) -> str:
        """Return why the browser may not connect to a host and port; empty where it may."""
        shown = _origins(host, port)
        if not any(each in self._allowed for each in shown):
            return f"{host}:{port} is outside the task's origins"
        if denied := [why for each in shown if each in self._allowed and (why := self._deny.refusal(each))]:
            return denied[0]
        return ""

    def admits_socket(self, host: str, port: int) -> bool:
        """Return whether a WebSocket may be opened to a host and port."""
        return any(each in self._sockets for each in _origins(host, port))

    def server(self, host: str, port: int) -> Destination:
        """Return the server for a host and port, by the table of hosts."""
        name = host_name(host)
        given = self._hosts.get(f"{name}:{port}") or self._hosts.get(name)
        if given is None:
            return Destination(name, name.strip("[]"), port, is_mapped=False)
        address, colon, number = given.rpartition(":")
        if colon and number.isdigit() and (written_address(given) is None or given.startswith("[")):
            return Destination(name, address.strip("[]"), int(number), is_mapped=True)
        return Destination(name, given.strip("[]"), port, is_mapped=True)

    def address_refusal(self, server: Destination, address: Address) -> str:
        """Return why a server may not be reached at an address that its name led to; empty where it may.

        A public name may not lead to a private address: its owner would reach this machine or its network through the browser.
        """
        if self._deny.denies_address(address):
            return f"{server.name} leads to {address}, which is on the deny-list"
        if server.is_mapped or (address, server.port) in self._addresses or not is_private(address):
            return ""
        real, name = embedded(address), server.name
        local = "." not in name or any(name == each or name.endswith(f".{each}") for each in _LOCAL_SUFFIXES)
        if local and not real.is_link_local and not real.is_multicast:
            return ""
        shown = _origins(str(address), server.port)[server.port == 443]
        kind = "link-local" if real.is_link_local else "private"
        way_out = f"if it belongs to the task, allow {shown} with --allow-origin, or name the host in `hosts`"
        return f"{name} leads to the {kind} address {address}: {way_out}"


def _key(name: str) -> str:
    """Return a name, or `name:port`, in the form in which the table of hosts is searched."""
    if written_address(name) is not None:
        return host_name(name.strip("[]"))
    host, colon, port = name.rpartition(":")
    return f"{host_name(host.strip('[]'))}:{port}" if colon and port.isdigit() else host_name(name)


def _written(origin: str) -> tuple[Address, int] | None:
    """Return the address and port of an origin that is written with an address."""
    parts = urlsplit(origin)
    address = written_address(parts.hostname or "")
    return (address, parts.port or (443 if parts.scheme == "https" else 80)) if address else None


def _origins(host: str, port: int) -> tuple[str, ...]:
    """Return the origins that a host and port may be."""
    shown = f"[{host}]" if ":" in host else host
    return tuple(origin(f"{scheme}://{shown}:{port}") for scheme in ("http", "https"))
