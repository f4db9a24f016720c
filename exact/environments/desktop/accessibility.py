"""Reports of applications to assistive technology over AT-SPI: D-Bus, all calls in flight at once. jeepney connects, `wire` does the rest.

Cells of tables that are too large to be listed, such as the sheet of a spreadsheet.
"""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.desktop import wire
from exact.errors import EnvironmentFailure
from exact.observation import Box

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.blocking import DBusConnection


Ref = tuple[str, str]
"""Reference of an object: name on the bus, and path."""

ANSWER_SECONDS = 10.0
"""Seconds after which an application that does not answer counts as hung."""

_ROOT = "/org/a11y/atspi/accessible/root"
_REGISTRY: Ref = ("org.a11y.atspi.Registry", _ROOT)
_LAUNCHER: Ref = ("org.a11y.Bus", "/org/a11y/bus")
_START_SECONDS = 20.0
_FIRST_SERIAL = 1000
"""First serial of our calls. jeepney takes lower ones to connect."""
_CHUNK = 1 << 20
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
    """Name as `named` returns it."""
    role: int
    states: int
    """State bits; see `roles`."""
    children: int = -1
    """Number of children that it claims; -1 if it does not report it."""
    box: Box | None = None
    """Box on the screen, if that is already known."""


class ObjectCall(NamedTuple):
    """Call to one object."""

    ref: Ref
    interface: str
    method: str
    signature: str = ""
    arguments: tuple[Any, ...] = ()


class Silent(EnvironmentFailure):
    """Failure of an application that does not answer. `names`: its names on the bus."""

    def __init__(self, names: Iterable[str], seconds: float = ANSWER_SECONDS) -> None:
        super().__init__(f"an application does not answer for {seconds:g} s")
        self.names = frozenset(names)


def property_of(ref: Ref, interface: str, name: str) -> ObjectCall:
    """Return the call that reads a property; the answer is `(signature, value)`."""
    return ObjectCall(ref, "org.freedesktop.DBus.Properties", "Get", "ss", (f"org.a11y.atspi.{interface}", name))


class Accessibility:
    """Connection to the accessibility bus of a session."""

    def __init__(self, address: str, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connect, and announce assistive technology: most toolkits report nothing to a session without it.

        address: the session bus, which starts the accessibility bus. answer_seconds: time after which an application that does not answer
        counts as hung. Raises EnvironmentFailure.
        """
        from jeepney.io.blocking import open_dbus_connection

        self._answer_seconds = answer_seconds
        try:
            with open_dbus_connection(address, auth_timeout=ANSWER_SECONDS) as session:
                enable = _call(_LAUNCHER, "org.freedesktop.DBus.Properties", "Set", "ssv", ("org.a11y.Status", "IsEnabled", ("b", True)))
                session.send_and_get_reply(enable, timeout=_START_SECONDS)
                reply = session.send_and_get_reply(_call(_LAUNCHER, "org.a11y.Bus", "GetAddress"), timeout=_START_SECONDS)
            self._bus: DBusConnection = open_dbus_connection(reply.body[0], auth_timeout=ANSWER_SECONDS)
            self._bus.receive(timeout=_START_SECONDS)  # our name, the last message that jeepney reads
            self._serial, self._unread = _FIRST_SERIAL, bytearray()
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

    def ask(self, questions: Sequence[ObjectCall], seconds: float | None = None) -> list[tuple[Any, ...] | None]:
        """Return the answers in order; None if an object is gone or has none.

        seconds: time without any answer after which the applications that still owe one count as hung; by default that of this
        connection. Raises Silent, and EnvironmentFailure if the bus is gone.
        """
        seconds = self._answer_seconds if seconds is None else seconds
        calls = [wire.method_call(self._serial + at, *_parts(question)) for at, question in enumerate(questions)]
        first, self._serial = self._serial, self._serial + len(questions)
        answers: list[tuple[Any, ...] | None] = [None] * len(questions)
        waiting = set(range(len(questions)))
        end = time.monotonic() + seconds
        try:
            self._bus.sock.settimeout(seconds)
            self._bus.sock.sendall(b"".join(calls))
            while waiting:
                for message in self._arrived(max(0.0, end - time.monotonic())):
                    at = message.reply_serial - first
                    if at in waiting:
                        waiting.remove(at)
                        answers[at] = message.body if message.type == wire.RETURN else None
                        end = time.monotonic() + seconds
        except TimeoutError:
            raise Silent((questions[at].ref[0] for at in waiting), seconds) from None
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"the accessibility bus is gone: {error}") from error
        return answers

    def take(self) -> None:
        """Read the signals that have arrived."""
        try:
            while select.select([self._bus.sock], [], [], 0)[0]:
                for _ in self._arrived(0.0):
                    pass
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"the accessibility bus is gone: {error}") from error

    def _arrived(self, seconds: float) -> Iterator[wire.WireMessage]:
        """Yield the messages that arrive next, at least a part of one. Raises TimeoutError, OSError and ValueError."""
        if not select.select([self._bus.sock], [], [], seconds)[0]:
            raise TimeoutError
        part = self._bus.sock.recv(_CHUNK)
        if not part:
            raise ConnectionResetError("it was closed")
        self._unread += part
        at = 0
        while (size := wire.message_size(self._unread, at)) and len(self._unread) - at >= size:
            message = wire.read_message(bytes(self._unread[at : at + size]))
            self.events += message.type == wire.SIGNAL
            at += size
            yield message
        del self._unread[:at]

    def applications(self) -> list[str]:
        """Return the names on the bus in order of registration."""
        (answer,) = self.ask([ObjectCall(_REGISTRY, _ACCESSIBLE, "GetChildren")])
        return [name for name, _ in answer[0]] if answer else []

    def names(self, applications: Sequence[str]) -> list[str]:
        """Return the names of applications, such as soffice; an empty one if an application has ended. Raises Silent."""
        answers = self.ask([property_of((each, _ROOT), "Accessible", "Name") for each in applications])
        return [answer[0][1] if answer else "" for answer in answers]

    def nodes(self, names: Sequence[str]) -> dict[str, list[AccessibleNode]]:
        """Return all objects of applications by name on the bus; none for an application that has ended. Raises Silent."""
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
    ref, _, parent, *middle, interfaces, name, role, description, states = item
    position, children = middle if len(middle) == 2 else (-1, len(middle[0]))
    kinds = frozenset(each.rpartition(".")[2] for each in interfaces)
    return AccessibleNode(ref, parent, position, kinds, named(name, description), role, states[0] | states[1] << 32, children)


def named(name: str, description: str) -> str:
    """Return the name of an object; for one without, such as a button with an icon, the first line of its description."""
    return name or description.partition("\n")[0]


def _parts(question: ObjectCall) -> tuple[str, str, str, str, str, tuple[Any, ...]]:
    ref, interface, method, signature, arguments = question
    return ref[0], ref[1], interface, method, signature, arguments


def _call(ref: Ref, interface: str, method: str, signature: str = "", arguments: tuple[Any, ...] = ()) -> Message:
    from jeepney import DBusAddress, new_method_call

    return new_method_call(DBusAddress(ref[1], bus_name=ref[0], interface=interface), method, signature or None, arguments)


def grouped(nodes: Iterable[AccessibleNode]) -> dict[Ref, list[AccessibleNode]]:
    """Return the nodes by parent, in order."""
    found: dict[Ref, list[AccessibleNode]] = {}
    for parent, inside in itertools.groupby(sorted(nodes, key=lambda node: (node.parent, node.position)), key=lambda node: node.parent):
        found[parent] = list(inside)
    return found


HUGE = 5000
"""Children above which a table is not listed as a whole: a sheet claims two thousand million, and hangs while listing them."""
_MOST_CELLS = 3000
_SCREEN = 0
_INSET = 2
"""Pixels from the border of a table at which its outermost cells are searched."""


class TableCell(NamedTuple):
    """Visible cell of a table."""

    ref: Ref
    position: int
    """Index among the table's children, which is the same at each request for the cell; its reference is not."""
    box: Box | None
    """Box of its column and its row."""


def visible_cells(bus: Accessibility, table: Ref) -> list[Ref]:
    """Return the references of the visible cells of a table, row by row. Raises Silent."""
    return [cell.ref for cell in table_cells(bus, table)]


def table_cells(bus: Accessibility, table: Ref) -> list[TableCell]:
    """Return the visible cells of a table, row by row; none if it does not report them. Raises Silent."""
    extents, columns = bus.ask([_extents(table), property_of(table, "Table", "NColumns")])
    if not extents or not columns or columns[0][1] < 1:
        return []
    x, y, width, height = map(int, extents[0])
    corners = ((x + _INSET, y + _INSET), (x + width - _INSET, y + height - _INSET))
    found = bus.ask([ObjectCall(table, "org.a11y.atspi.Component", "GetAccessibleAtPoint", "iiu", (*at, _SCREEN)) for at in corners])
    refs = [(str(each[0][0]), str(each[0][1])) for each in found if each and not str(each[0][1]).endswith("/null")]
    places = bus.ask([ObjectCall(ref, "org.a11y.atspi.Accessible", "GetIndexInParent") for ref in refs])
    if len(refs) < len(corners) or not all(places):
        return []
    across = int(columns[0][1])
    (top, left), (bottom, right) = (divmod(int(place[0]), across) for place in places if place)
    wanted = [(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)][:_MOST_CELLS]
    answers = bus.ask([ObjectCall(table, "org.a11y.atspi.Table", "GetAccessibleAt", "ii", each) for each in wanted])
    cells = {at: (str(cell[0][0]), str(cell[0][1])) for at, cell in zip(wanted, answers, strict=True) if cell and cell[0][1] != _NULL}
    boxes = _boxes(bus, cells)
    return [TableCell(ref, row * across + column, boxes.get((row, column))) for (row, column), ref in cells.items()]


_NULL = "/org/a11y/atspi/null"


def _boxes(bus: Accessibility, cells: dict[tuple[int, int], Ref]) -> dict[tuple[int, int], Box]:
    """Return the boxes of cells: those of the first row give the columns, and those of the first column give the rows."""
    if not cells:
        return {}
    top, left = min(row for row, _ in cells), min(column for _, column in cells)
    edge = [at for at in cells if top == at[0] or left == at[1]]
    asked = dict(zip(edge, bus.ask([_extents(cells[at]) for at in edge]), strict=True))
    across = {column: answer[0] for (row, column), answer in asked.items() if row == top and answer}
    down = {row: answer[0] for (row, column), answer in asked.items() if column == left and answer}
    return {
        (row, column): Box(float(across[column][0]), float(down[row][1]), float(across[column][2]), float(down[row][3]))
        for row, column in cells
        if column in across and row in down
    }


def _extents(ref: Ref) -> ObjectCall:
    return ObjectCall(ref, "org.a11y.atspi.Component", "GetExtents", "u", (_SCREEN,))
