"""The accessibility tree of a desktop in OSWorld's XML: roles as tags, states, boxes, texts, values and actions as attributes.

Connections to ports of a desktop's loopback, made for a host that has no network into the sandbox. `tunnel.py` is the host's side.

Applications that open a window, by the commands that start them.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import re
import selectors
import shlex
import socket
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exact.environments.desktop.accessibility import HUGE, Accessibility, ObjectCall, Ref, property_of, visible_cells
from exact.environments.desktop.screen import TopLevelWindow

_NAMESPACE = "https://accessibility.ubuntu.example.org/ns/"
NAMESPACES = {
    "st": f"{_NAMESPACE}state", "attr": f"{_NAMESPACE}attributes", "cp": f"{_NAMESPACE}component", "doc": f"{_NAMESPACE}document",
    "docattr": f"{_NAMESPACE}document/attributes", "txt": f"{_NAMESPACE}text", "val": f"{_NAMESPACE}value", "act": f"{_NAMESPACE}action",
}  # fmt: skip
"""Prefixes of the attributes, as OSWorld's evaluators look for them."""
STATES = (
    "invalid", "active", "armed", "busy", "checked", "collapsed", "defunct", "editable", "enabled", "expandable", "expanded", "focusable",
    "focused", "has_tooltip", "horizontal", "iconified", "modal", "multi_line", "multiselectable", "opaque", "pressed", "resizable",
    "selectable", "selected", "sensitive", "showing", "single_line", "stale", "transient", "vertical", "visible", "manages_descendants",
    "indeterminate", "required", "truncated", "animated", "invalid_entry", "supports_autocompletion", "selectable_text", "is_default",
    "visited", "checkable", "has_popup", "read_only",
)  # fmt: skip
"""Names of AT-SPI's state bits, from the lowest."""
_DEPTH, _WIDTH, _NODES = 50, 1024, 20_000
"""Maximum number of levels, children of a node, and nodes that are read."""
_BATCH = 400
"""Maximum number of calls that are sent at once."""
_ROOT: Ref = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_SCREEN = 0
_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""
_NAMES = {"Chromium": "Google Chrome"}
"""Applications by the names that OSWorld's evaluators look for."""
_PLACEHOLDERS = re.compile("[\ufffc\ufffd]")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")

for _prefix, _uri in NAMESPACES.items():
    ET.register_namespace(_prefix, _uri)


class _Told(NamedTuple):
    """Properties that an object reports."""

    name: str
    role: str
    states: frozenset[str]
    interfaces: frozenset[str]
    children: int


def accessibility_xml(bus: Accessibility) -> str:
    """Return the whole tree as XML. The root is `desktop-frame`, its children are the applications. Raises Silent."""
    root = ET.Element("desktop-frame", {"name": "main"})
    level = [(_children(bus, [(_ROOT, 0)])[0], root)]
    found = 0
    for _ in range(_DEPTH):
        wanted = [(ref, parent) for refs, parent in level for ref in refs][: _NODES - found]
        if not wanted:
            break
        found += len(wanted)
        told = _about(bus, [ref for ref, _ in wanted])
        alive = [(ref, parent, each) for (ref, parent), each in zip(wanted, told, strict=True) if each]
        elements = _elements(bus, alive)
        inside = _children(bus, [(ref, each.children) for ref, _, each in alive])
        level = list(zip(inside, elements, strict=True))
    return ET.tostring(root, encoding="unicode")


def _about(bus: Accessibility, refs: Sequence[Ref]) -> list[_Told | None]:
    """Return the properties of objects; None for those that are gone."""
    accessible = "org.a11y.atspi.Accessible"
    asked = [
        call
        for ref in refs
        for call in (
            property_of(ref, "Accessible", "Name"), ObjectCall(ref, accessible, "GetRoleName"), ObjectCall(ref, accessible, "GetState"),
            ObjectCall(ref, accessible, "GetInterfaces"), property_of(ref, "Accessible", "ChildCount"),
        )
    ]  # fmt: skip
    answers, size = _asked(bus, asked), 5
    return [_told(answers[at : at + size]) for at in range(0, len(answers), size)]


def _asked(bus: Accessibility, calls: Sequence[ObjectCall]) -> list[tuple[Any, ...] | None]:
    """Return the answers to any number of calls: each batch has the time of one look."""
    return [each for at in range(0, len(calls), _BATCH) for each in bus.ask(calls[at : at + _BATCH])]


def _told(answers: Sequence[tuple[Any, ...] | None]) -> _Told | None:
    name, role, states, interfaces, children = answers
    if not (name and role and states and interfaces):
        return None
    bits = states[0][0] | states[0][1] << 32
    named = frozenset(word for at, word in enumerate(STATES) if bits >> at & 1)
    kinds = frozenset(str(each).rpartition(".")[2] for each in interfaces[0])
    return _Told(str(name[0][1]), str(role[0]), named, kinds, int(children[0][1]) if children else 0)


def _children(bus: Accessibility, holders: Sequence[tuple[Ref, int]]) -> list[list[Ref]]:
    """Return the children of each object; for a sheet with millions of cells, the visible ones."""
    small = [(ref, ObjectCall(ref, "org.a11y.atspi.Accessible", "GetChildren")) for ref, count in holders if count <= HUGE]
    answers = dict(zip((ref for ref, _ in small), _asked(bus, [call for _, call in small]), strict=True))
    found = []
    for ref, count in holders:
        answer = answers.get(ref)
        refs = visible_cells(bus, ref) if count > HUGE else [(str(name), str(path)) for name, path in (answer[0] if answer else [])]
        found.append([each for each in refs if not each[1].endswith("/null")][:_WIDTH])
    return found


def _elements(bus: Accessibility, nodes: Sequence[tuple[Ref, ET.Element, _Told]]) -> list[ET.Element]:
    """Add the elements of objects to their parents, and return them."""
    asked = [(at, kind, call) for at, (ref, _, told) in enumerate(nodes) for kind, call in _questions(ref, told)]
    answers: dict[tuple[int, str], tuple[Any, ...]] = {}
    for (at, kind, _), answer in zip(asked, _asked(bus, [call for *_, call in asked]), strict=True):
        if answer:
            answers[at, kind] = answer
    found = []
    for at, (_, parent, told) in enumerate(nodes):
        tag = re.sub(r"[^\w.-]", "-", told.role.strip()) or "unknown"
        name = _NAMES.get(told.name, told.name) if tag == "application" else told.name
        element = ET.SubElement(parent, tag if _WORD.fullmatch(tag) else f"x{tag}", {"name": _legal(name)})
        _fill(element, told, {kind: answers[at, kind] for kind in _KINDS if (at, kind) in answers})
        found.append(element)
    return found


_VALUES = {"value": "CurrentValue", "min": "MinimumValue", "max": "MaximumValue", "step": "MinimumIncrement"}
_KINDS = ("attributes", "extents", "text", "actions", *_VALUES)


def _questions(ref: Ref, told: _Told) -> list[tuple[str, ObjectCall]]:
    found = [("attributes", ObjectCall(ref, "org.a11y.atspi.Accessible", "GetAttributes"))]
    if "Component" in told.interfaces and told.states >= {"visible", "showing"}:
        found.append(("extents", ObjectCall(ref, "org.a11y.atspi.Component", "GetExtents", "u", (_SCREEN,))))
    if "Text" in told.interfaces:
        found.append(("text", ObjectCall(ref, "org.a11y.atspi.Text", "GetText", "ii", (0, -1))))
    if "Action" in told.interfaces:
        found.append(("actions", ObjectCall(ref, "org.a11y.atspi.Action", "GetActions")))
    if "Value" in told.interfaces:
        found += [(key, property_of(ref, "Value", name)) for key, name in _VALUES.items()]
    return found


def _fill(element: ET.Element, told: _Told, answers: dict[str, tuple[Any, ...]]) -> None:
    for state in sorted(told.states):
        element.set(_name("st", state), "true")
    for name, value in (answers["attributes"][0] if "attributes" in answers else {}).items():
        if _WORD.fullmatch(str(name)):
            element.set(_name("attr", str(name)), _legal(str(value)))
    if "extents" in answers:
        x, y, width, height = map(int, answers["extents"][0])
        element.set(_name("cp", "screencoord"), f"({x}, {y})")
        element.set(_name("cp", "size"), f"({width}, {height})")
    for interface in ("Image", "Selection"):
        if interface in told.interfaces:
            element.set(interface.lower(), "true")
    for key in _VALUES:
        if key in answers:
            element.set(_name("val", key), str(answers[key][0][1]))
    for name, description, binding in answers["actions"][0] if "actions" in answers else ():
        word = re.sub(r"[^\w.-]", "-", str(name))
        if _WORD.fullmatch(word):
            element.set(_name("act", f"{word}_desc"), _legal(str(description)))
            element.set(_name("act", f"{word}_kb"), _legal(str(binding)))
    if "text" in answers and (text := _PLACEHOLDERS.sub("", _legal(str(answers["text"][0])))):
        element.text = text


def _name(prefix: str, word: str) -> str:
    return f"{{{NAMESPACES[prefix]}}}{word}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)


def terminal_text(xml: str) -> str | None:
    """Return the text of the terminal that has the focus, in a tree of `accessibility_xml`; None if none has it."""
    root, active = ET.fromstring(xml), _name("st", "active")
    frames = [frame for application in root for frame in application if frame.get(active) == "true"]
    terminals = [each for frame in frames for each in frame.iter("terminal") if each.get(_name("st", "focused")) == "true"]
    return (terminals[0].text or "").rstrip() if len(terminals) == 1 else None


_MOST = 4 << 20
"""Maximum bytes of one connection in one exchange."""
_CONNECT_SECONDS = 5.0


class Streams:
    """Open connections, by the ids that the host gave them."""

    def __init__(self) -> None:
        self._open: dict[str, socket.socket] = {}
        self._waiting: dict[str, bytearray] = {}
        """Bytes that a connection has not taken yet."""

    def exchange(self, opened: dict[str, int], sent: dict[str, str], closed: list[str], seconds: float) -> dict[str, Any]:
        """Open, feed and close connections, then wait until one has data, at most `seconds`.

        `opened`: ports by id. `sent`: bytes in base64 by id. Return `received`, bytes by id, and `ended`, the ids of those that ended.
        """
        ended = [id for id, port in opened.items() if not self._connect(id, port)]
        for id, data in sent.items():
            if id in self._open:
                self._waiting[id] += base64.b64decode(data)
        for id in closed:
            self._close(id)
        received: dict[str, bytes] = {}
        with selectors.DefaultSelector() as selector:
            for id, stream in self._open.items():
                selector.register(stream, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting[id] else 0), id)
            for key, events in selector.select(seconds) if self._open else ():
                if not self._serve(key.data, events, received):
                    ended.append(key.data)
                    self._close(key.data)
        return {"received": received, "ended": ended}

    def close(self) -> None:
        """Close all connections."""
        for id in list(self._open):
            self._close(id)

    def _connect(self, id: str, port: int) -> bool:
        try:
            stream = socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS)
        except OSError:
            return False
        stream.setblocking(False)
        self._open[id], self._waiting[id] = stream, bytearray()
        return True

    def _serve(self, id: str, events: int, received: dict[str, bytes]) -> bool:
        """Write the waiting bytes and read those that have come. Return whether the connection stays open."""
        stream, waiting = self._open[id], self._waiting[id]
        try:
            if events & selectors.EVENT_WRITE:
                del waiting[: stream.send(waiting)]
            if not events & selectors.EVENT_READ:
                return True
            parts = bytearray()
            with contextlib.suppress(BlockingIOError):
                while len(parts) < _MOST:
                    part = stream.recv(1 << 18)
                    parts += part
                    if not part:
                        received[id] = bytes(parts)
                        return False
            received[id] = bytes(parts)
        except OSError:
            return False
        return True

    def _close(self, id: str) -> None:
        if stream := self._open.pop(id, None):
            stream.close()
            del self._waiting[id]


_ENTRIES = Path("/usr/share/applications")
_OTHERS = frozenset({"google-chrome", "gimp", "gnome-terminal", "soffice", "xterm"})
"""Commands that no desktop entry names."""


@functools.cache
def commands(folder: Path = _ENTRIES) -> frozenset[str]:
    """Return the names of the commands that desktop entries start with a window."""
    found = set(_OTHERS)
    for path in folder.glob("*.desktop"):
        lines = path.read_text("utf-8", "replace").splitlines()
        if "Terminal=true" not in lines:
            found |= {program(line.removeprefix("Exec=")) for line in lines if line.startswith("Exec=")}
    return frozenset(found - {""})


class Opening:
    """Whether a window has opened since this object was made. The X server gives the id of a window that has closed to another one."""

    def __init__(self, windows: Sequence[TopLevelWindow]) -> None:
        self._before = {(each.id, each.pid) for each in windows}

    def seen(self, windows: Sequence[TopLevelWindow]) -> bool:
        """Return whether one of the present windows is new. Call it often: what closes and comes back between two calls is not noticed."""
        now = {(each.id, each.pid) for each in windows}
        self._before &= now
        return bool(now - self._before)


def titles(window: TopLevelWindow) -> list[str]:
    """Return the title of a window, and that which OSWorld's tasks expect, if it differs."""
    theirs = window.title
    for ours, name in _NAMES.items():
        theirs = theirs.replace(ours, name)
    return list(dict.fromkeys([window.title, theirs]))


def opens_window(command: str | Sequence[str]) -> bool:
    """Return whether a command starts an application that opens a window."""
    return program(command) in commands()


def program(command: str | Sequence[str]) -> str:
    """Return the name of the program that a command starts. Empty if it cannot be read."""
    return Path(executable(command)).name


def executable(command: str | Sequence[str]) -> str:
    """Return the program that a command starts, as it is written there. Empty if it cannot be read."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        return ""
    return next((word for word in words if "=" not in word and word not in ("env", "exec", "nohup")), "")
