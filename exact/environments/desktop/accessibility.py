"""What applications tell assistive technology over AT-SPI: D-Bus by jeepney, all calls in flight at once."""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.blocking import DBusConnection

Ref = tuple[str, str]
"""Reference of an object: name on the bus, and path."""

ANSWER_SECONDS = 5.0
"""Seconds after which an application that does not answer counts as hung."""

_REGISTRY: Ref = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_ACCESSIBLE, _CACHE = "org.a11y.atspi.Accessible", "org.a11y.atspi.Cache"


class AccessibleNode(NamedTuple):
    """Object of an application, as its cache has it."""

    ref: Ref
    parent: Ref
    position: int
    """Index among its parent's children."""
    interfaces: frozenset[str]
    """Last parts of the interface names: Component, Text, Value, ..."""
    name: str
    role: int
    states: int
    """State bits; see `roles`."""


class ObjectCall(NamedTuple):
    """Call to one object."""

    ref: Ref
    interface: str
    method: str
    signature: str = ""
    arguments: tuple[Any, ...] = ()


class Silent(EnvironmentFailure):
    """Failure of an application that does not answer. `names`: its names on the bus."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(f"an application does not answer for {ANSWER_SECONDS:g} s")
        self.names = frozenset(names)


def property_of(ref: Ref, interface: str, name: str) -> ObjectCall:
    """Return the call that reads a property; the answer is `(signature, value)`."""
    return ObjectCall(ref, "org.freedesktop.DBus.Properties", "Get", "ss", (f"org.a11y.atspi.{interface}", name))


class Accessibility:
    """Connection to the accessibility bus of a session."""

    def __init__(self, address: str) -> None:
        """Connect.

        address: the session bus, which starts the accessibility bus. Raises EnvironmentFailure.
        """
        from jeepney.io.blocking import open_dbus_connection

        try:
            with open_dbus_connection(address, auth_timeout=ANSWER_SECONDS) as session:
                reply = session.send_and_get_reply(_call(("org.a11y.Bus", "/org/a11y/bus"), "org.a11y.Bus", "GetAddress"), timeout=20.0)
            self._bus: DBusConnection = open_dbus_connection(reply.body[0], auth_timeout=ANSWER_SECONDS)
            self.events = 0
            """How many signals came so far."""
            self._wake()
        except (OSError, LookupError) as error:
            raise EnvironmentFailure(f"the accessibility bus cannot be reached: {error}") from error

    def fileno(self) -> int:
        """Return the descriptor, readable when a message has arrived."""
        return int(self._bus.sock.fileno())

    def close(self) -> None:
        self._bus.close()

    def ask(self, questions: Sequence[ObjectCall], seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...] | None]:
        """Return the answers in order; None where an object is gone or has none.

        Raises Silent, and EnvironmentFailure if the bus is gone.
        """
        from jeepney import HeaderFields, MessageType

        waiting = dict[int, int]()
        answers: list[tuple[Any, ...] | None] = [None] * len(questions)
        end = time.monotonic() + seconds
        try:
            for at, question in enumerate(questions):
                serial = next(self._bus.outgoing_serial)
                self._bus.send(_message(question), serial=serial)
                waiting[serial] = at
            while waiting:
                message = self._bus.receive(timeout=max(0.0, end - time.monotonic()))
                to = message.header.fields.get(HeaderFields.reply_serial)
                at = waiting.pop(to, -1)
                if message.header.message_type is MessageType.signal:
                    self.events += 1
                elif at >= 0 and message.header.message_type is MessageType.method_return:
                    answers[at] = message.body
        except TimeoutError:
            raise Silent(questions[at].ref[0] for at in waiting.values()) from None
        except OSError as error:
            raise EnvironmentFailure(f"the accessibility bus is gone: {error}") from error
        return answers

    def take(self) -> None:
        """Read the signals that have arrived."""
        while select.select([self._bus.sock], [], [], 0)[0]:
            try:
                self._bus.receive(timeout=0)
            except TimeoutError:
                return
            except OSError as error:
                raise EnvironmentFailure(f"the accessibility bus is gone: {error}") from error
            self.events += 1

    def applications(self) -> list[str]:
        """Return the names on the bus in order of registration."""
        (answer,) = self.ask([ObjectCall(_REGISTRY, _ACCESSIBLE, "GetChildren")])
        return [name for name, _ in answer[0]] if answer else []

    def nodes(self, names: Sequence[str]) -> dict[str, list[AccessibleNode]]:
        """Return all objects of applications by name on the bus; none of an application that has ended. Raises Silent."""
        answers = self.ask([ObjectCall((name, "/org/a11y/atspi/cache"), _CACHE, "GetItems") for name in names])
        return {name: [_node(item) for item in answer[0]] if answer else [] for name, answer in zip(names, answers, strict=True)}

    def _wake(self) -> None:
        """Register for events: applications report nothing without a listener, and the events show when they are idle."""
        registry: Ref = ("org.a11y.atspi.Registry", "/org/a11y/atspi/registry")
        kinds = ("object:state-changed", "object:children-changed", "object:text-changed", "object:property-change", "window:")
        self.ask([ObjectCall(registry, "org.a11y.atspi.Registry", "RegisterEvent", "s", (kind,)) for kind in kinds], 20.0)
        bus: Ref = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
        rules = ("type='signal',interface='org.a11y.atspi.Event.Object'", "type='signal',interface='org.a11y.atspi.Event.Window'")
        self.ask([ObjectCall(bus, "org.freedesktop.DBus", "AddMatch", "s", (rule,)) for rule in rules])


def _node(item: tuple[Any, ...]) -> AccessibleNode:
    """Return a node from a cache item.

    An item is (object, application, parent, index, children, interfaces, name, role, description, states); older versions list the
    children instead.
    """
    ref, _, parent, *middle, interfaces, name, role, _, states = item
    position = middle[0] if len(middle) == 2 else -1
    return AccessibleNode(
        ref, parent, position, frozenset(i.rpartition(".")[2] for i in interfaces), name, role, states[0] | states[1] << 32
    )


def _message(question: ObjectCall) -> Message:
    ref, interface, method, signature, arguments = question
    return _call(ref, interface, method, signature, arguments)


def _call(ref: Ref, interface: str, method: str, signature: str = "", arguments: tuple[Any, ...] = ()) -> Message:
    from jeepney import DBusAddress, new_method_call

    return new_method_call(DBusAddress(ref[1], bus_name=ref[0], interface=interface), method, signature or None, arguments)


def grouped(nodes: Iterable[AccessibleNode]) -> dict[Ref, list[AccessibleNode]]:
    """Return the nodes by parent, in order."""
    found: dict[Ref, list[AccessibleNode]] = {}
    for parent, inside in itertools.groupby(sorted(nodes, key=lambda node: (node.parent, node.position)), key=lambda node: node.parent):
        found[parent] = list(inside)
    return found
