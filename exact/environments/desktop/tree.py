"""The windows of a desktop as elements: applications' reports in the form of a page's observation.

A filter on this process's system calls and its children's, for calls that a sandbox's kernel answers differently from Linux.

Correction of boxes that LibreOffice reports: it leaves its menu bar, which GTK draws, out of account.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import platform
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from exact.environments.browser.observe.describe import elements_text
from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import Accessibility, AccessibleNode, ObjectCall, Ref, grouped, property_of
from exact.environments.desktop.walk import Popup, completed
from exact.observation import Box, Element

_LONGEST = 2000
"""Maximum length of a value in the text of an observation, in characters."""
_OBJECT = "\ufffc"
"""Character that stands for an object in a text."""
_SCREEN = 0
"""AT-SPI coordinate type: from the corner of the screen."""


class Seen(NamedTuple):
    """Observation of a desktop with its references."""

    elements: tuple[Element, ...]
    refs: dict[str, Ref]
    """Objects by element id."""
    owners: dict[str, str]
    """Names of applications on the bus, by element id."""
    windows: dict[str, str]
    """Window titles by element id."""
    caret: str
    """Position of the caret in the focused text, and its selection."""
    copied: str = ""
    """Text that was copied or cut last, which is not shown; empty if nothing was."""

    @property
    def text(self) -> str:
        return elements_text(msgspec.structs.replace(each, value=_cut(each.value)) for each in self.elements)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the state: depth, role, name, value and states of each element, the caret, and the copied text.

        Boxes and ids are left out. Without the copied text, to copy would change nothing, and a search would drop it.
        """
        parts = [[each.depth, each.role, each.name, each.value, each.states] for each in self.elements]
        identity = json.dumps([parts, self.caret, *([self.copied] if self.copied else [])], ensure_ascii=False)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()

    def element(self, id: str) -> Element | None:
        return next((each for each in self.elements if each.id == id), None)


class _Line(NamedTuple):
    """AccessibleNode that becomes an element."""

    node: AccessibleNode
    role: str
    depth: int
    window: str
    box: Box | None
    visible: bool


class DesktopTree:
    """Observer of a desktop. Ids stay as long as their objects live; `forget` starts again."""

    def __init__(self, accessibility: Accessibility, mask: Callable[[str], str], popup: Popup) -> None:
        """Configure the observer.

        mask: removes from a text the parts that differ between equal desktops. popup: whether a point lies in a popup.
        """
        self._bus, self._mask, self._popup = accessibility, mask, popup
        self._ids: dict[Ref | tuple[Ref, int], str] = {}
        self._toolkits: dict[str, str] = {}

    def forget(self) -> None:
        self._ids.clear()
        self._toolkits.clear()

    def look(self, applications: Sequence[str]) -> Seen:
        """Observe the windows of applications, given by name on the bus. Raises Silent."""
        whole = completed(self._bus, self._bus.nodes(applications), self._popup)
        boxes = self._boxes([node for each in whole.values() for node in each])
        placed = {name: below_menu_bars(whole[name], boxes) for name in applications}
        shown = {name: shown_parts(whole[name], placed[name]) if self._toolkit(name) == _QT else placed[name] for name in applications}
        lines = [line for name in applications for line in _lines(whole[name], placed[name], shown[name])]
        answered = _Answers(self._bus, lines)
        for line in lines:
            self._ids.setdefault(_identity(line.node), str(len(self._ids) + 1))
        elements = tuple(self._element(line, answered, at) for at, line in enumerate(lines))
        ids = [element.id for element in elements]
        return Seen(
            elements=elements,
            refs={id: line.node.ref for id, line in zip(ids, lines, strict=True)},
            owners={id: line.node.ref[0] for id, line in zip(ids, lines, strict=True)},
            windows={id: line.window for id, line in zip(ids, lines, strict=True)},
            caret=answered.caret,
        )

    def _toolkit(self, name: str) -> str:
        """Return the toolkit of an application; empty if it does not report one."""
        if name not in self._toolkits:
            (answer,) = self._bus.ask([property_of((name, "/org/a11y/atspi/accessible/root"), "Application", "ToolkitName")])
            if answer is None:
                return ""
            self._toolkits[name] = str(answer[0][1])
        return self._toolkits[name]

    def _boxes(self, nodes: list[AccessibleNode]) -> dict[Ref, Box]:
        """Return the boxes of all visible objects."""
        known = {node.ref: node.box for node in nodes if node.box}
        showing = [node.ref for node in nodes if node.states & roles.SHOWING and "Component" in node.interfaces and node.ref not in known]
        answers = self._bus.ask([ObjectCall(ref, "org.a11y.atspi.Component", "GetExtents", "u", (_SCREEN,)) for ref in showing])
        return known | {ref: Box(*map(float, answer[0])) for ref, answer in zip(showing, answers, strict=True) if answer}

    def _element(self, line: _Line, answered: _Answers, at: int) -> Element:
        node, role = line.node, line.role
        value = answered.value(at, line)
        name = self._mask(answered.text(at) if role in roles.CAPTIONED and not node.name else node.name)
        return Element(
            id=self._ids[_identity(node)],
            role=role,
            name=name.replace(_OBJECT, "").strip(),
            value=None if value is None else self._mask(value),
            states=roles.states(node.states, role),
            visible=line.visible,
            box=line.box,
            depth=line.depth,
        )


class _Answers:
    """Batch of requests about all lines: texts, values, and the caret of the focused one."""

    def __init__(self, bus: Accessibility, lines: Sequence[_Line]) -> None:
        self._kinds: dict[tuple[int, str], int] = {}
        questions: list[ObjectCall] = []
        for at, line in enumerate(lines):
            for kind, question in _questions(line):
                self._kinds[at, kind] = len(questions)
                questions.append(question)
        self._found = bus.ask(questions)
        spots = [self._get(at, kind) for at, kind in self._kinds if kind in ("caret", "selection")]
        self.caret = json.dumps([spot and spot[-1] for spot in spots]) if spots else ""

    def _get(self, at: int, kind: str) -> tuple[Any, ...] | None:
        index = self._kinds.get((at, kind))
        return None if index is None else self._found[index]

    def text(self, at: int) -> str:
        found = self._get(at, "text")
        return str(found[0]) if found else ""

    def value(self, at: int, line: _Line) -> str | None:
        """Return the text of a field, the number of a slider, the choice of a drop-down."""
        if line.role in roles.FIELDS and "Text" in line.node.interfaces:
            text = self.text(at)
            if line.node.role == roles.TERMINAL:
                return text.rstrip()
            return "•" * len(text) if line.node.role == roles.PASSWORD else text
        if line.role == "cell" and (text := self.text(at).replace(_OBJECT, "")) not in ("", line.node.name):
            return text
        if number := self._get(at, "number"):
            return f"{number[0][1]:g}"
        return line.node.name if line.role == "combobox" else None


_WRITTEN = roles.FIELDS | roles.CAPTIONED | {"cell"}
"""Roles whose text is requested."""


def _identity(node: AccessibleNode) -> Ref | tuple[Ref, int]:
    """Return the lasting key of an object: its reference, or the place in its table for a cell, which is new at each request."""
    return (node.parent, node.position) if node.box else node.ref


def _questions(line: _Line) -> Iterator[tuple[str, ObjectCall]]:
    ref, interfaces = line.node.ref, line.node.interfaces
    if "Text" in interfaces and line.role in _WRITTEN:
        yield "text", ObjectCall(ref, "org.a11y.atspi.Text", "GetText", "ii", (0, -1))
        if line.node.states & roles.FOCUSED and line.role in roles.FIELDS:
            yield "caret", property_of(ref, "Text", "CaretOffset")
            yield "selection", ObjectCall(ref, "org.a11y.atspi.Text", "GetSelection", "i", (0,))
    elif "Value" in interfaces and line.role in ("slider", "progressbar", "meter", "spinbutton"):
        yield "number", property_of(ref, "Value", "CurrentValue")


def _lines(nodes: list[AccessibleNode], boxes: dict[Ref, Box], shown: Mapping[Ref, Box]) -> Iterator[_Line]:
    """Yield the visible elements of an application in reading order, without meaningless wrappers.

    `shown`: parts of the boxes that are in view.
    """
    inside, known = grouped(nodes), {node.ref for node in nodes}
    tops = [node for parent, group in inside.items() if parent not in known for node in group]
    loose = [node for node in tops if node.role != roles.APPLICATION and node.ref in boxes]  # a menu's items: the menu itself is not told
    tops = [*(node for node in tops if node not in loose), *_in_reading_order(loose, boxes)]

    def below(node: AccessibleNode, depth: int, window: str, top: bool, around: str = "") -> Iterator[_Line]:
        if node.role != roles.APPLICATION:
            if not node.states & roles.SHOWING or node.role in (roles.TOOLTIP, roles.SEPARATOR):
                return
            role = roles.ROLES.get(node.role, "group" if node.name.strip() else "")
            role = "dialog" if top and role not in roles.WINDOWS else role
            window = node.name if top else window
            if role and not _empty(node, role, inside):
                if role == around == "cell":  # GTK reports the focus for its parts at random
                    node = node._replace(states=node.states & ~roles.FOCUSED)
                yield _Line(node, role, depth, window, shown.get(node.ref), node.ref in shown or node.ref not in boxes)
                depth, around = depth + 1, role
        children = inside.get(node.ref, [])
        for child in children if node.role == roles.APPLICATION else _in_reading_order(children, boxes):
            yield from below(child, depth, window, node.role == roles.APPLICATION, around)

    for top in tops:
        yield from below(top, 0, "", False)


def _in_reading_order(nodes: list[AccessibleNode], boxes: dict[Ref, Box]) -> list[AccessibleNode]:
    """Return the nodes row by row from the left; an application has them in order of creation. Nodes in one row overlap by half."""
    placed = sorted((node for node in nodes if node.ref in boxes), key=lambda node: boxes[node.ref].y)
    rows: list[list[AccessibleNode]] = []
    for node in placed:
        first = boxes[rows[-1][0].ref] if rows else None
        here = boxes[node.ref]
        if first and here.y < first.y + min(first.height, here.height) / 2:
            rows[-1].append(node)
        else:
            rows.append([node])
    return [node for row in rows for node in sorted(row, key=lambda node: boxes[node.ref].x)]


def _empty(node: AccessibleNode, role: str, inside: dict[Ref, list[AccessibleNode]]) -> bool:
    """Return whether a node carries no information: a status bar, an image or a text without a word, a scroll bar, a popup's window."""
    if role == "window" and not node.name:
        return not any(child.states & roles.SHOWING for child in inside.get(node.ref, ()))
    if role == "scrollbar":
        return True
    if role in ("status", "image", "StaticText", "toolbar", "menubar") and not node.name.strip():
        return not inside.get(node.ref)
    return False


def _cut(value: str | None) -> str | None:
    if value is None or len(value) <= _LONGEST:
        return value
    return f"{value[:_LONGEST]} ... ({len(value) - _LONGEST} more characters)"


_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
"""PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP and SECCOMP_MODE_FILTER of linux/prctl.h and linux/seccomp.h."""
_CLOSE_RANGE = 436
"""Number of close_range, the same on all architectures."""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def refuse_close_range() -> None:
    """Let close_range be unknown from now on, so that callers close one file at a time. Raises OSError.

    GLib before 2.78 asks for the range up to the largest unsigned number, gVisor refuses that as invalid, and GLib then starts no program.
    """
    if platform.machine() not in ("x86_64", "aarch64"):
        return
    program = b"".join(
        struct.pack("HBBI", *each)
        for each in (
            (_LOAD, 0, 0, 0),  # the call's number
            (_EQUAL, 0, 1, _CLOSE_RANGE),
            (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0)):
        if libc.prctl(*call):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def below_menu_bars(nodes: Sequence[AccessibleNode], boxes: Mapping[Ref, Box]) -> dict[Ref, Box]:
    """Return the boxes of an application's objects, with the content of a window below its menu bar.

    Content that begins at the top of the menu bar beside it is reported too high by the bar's height.
    """
    panes = [node for node in nodes if node.role == roles.ROOT_PANE and node.ref in boxes]
    if not panes:
        return dict(boxes)
    parents = {node.ref: node.parent for node in nodes if node.role != roles.APPLICATION}
    bars = [node for node in nodes if node.role == roles.MENU_BAR and node.ref in boxes and boxes[node.ref].height > 0]
    shifts: dict[Ref, float] = {}
    for pane in panes:
        window = _above(pane.ref, parents)[-1:]
        beside = [bar for bar in bars if pane.ref not in (above := _above(bar.ref, parents)) and above[-1:] == window]
        if beside and boxes[beside[0].ref].y == boxes[pane.ref].y:
            shifts[pane.ref] = boxes[beside[0].ref].height
    moved = {ref: _moved(box, next((shifts[at] for at in (ref, *_above(ref, parents)) if at in shifts), 0.0)) for ref, box in boxes.items()}
    return moved if shifts else dict(boxes)


def _above(ref: Ref, parents: Mapping[Ref, Ref]) -> list[Ref]:
    """Return an object's parent, that one's parent, and so on."""
    found: list[Ref] = []
    while (ref := parents.get(ref, ("", ""))) in parents and ref not in found:
        found.append(ref)
    return found


def _moved(box: Box, down: float) -> Box:
    return Box(box.x, box.y + down, box.width, box.height) if down else box


_QT = "Qt"
_DRAWN_APART = roles.WINDOWS | roles.MENU | {"menu"}
"""Roles that are drawn over the objects which hold them, as is all that a combobox holds."""


def shown_parts(nodes: Sequence[AccessibleNode], boxes: Mapping[Ref, Box]) -> dict[Ref, Box]:
    """Return the parts of an application's objects that lie in the objects around them. An object without such a part is left out.

    Qt reports an object as showing that is scrolled out of the view around it.
    """
    inside, known = grouped(nodes), {node.ref for node in nodes}
    found: dict[Ref, Box] = {}
    waiting: list[tuple[AccessibleNode, Box | None]] = [(node, None) for node in nodes if node.parent not in known]
    while waiting:
        node, view = waiting.pop()
        box, role = boxes.get(node.ref), roles.ROLES.get(node.role)
        if box is not None and box.width >= 1 and box.height >= 1:
            view = box if view is None or role in _DRAWN_APART else _overlap(box, view)
            if view.width >= 1 and view.height >= 1:
                found[node.ref] = view
        waiting += [(child, None if role == "combobox" else view) for child in inside.get(node.ref, ())]
    return found


def _overlap(one: Box, other: Box) -> Box:
    """Return the part of a rectangle in another one; without width or height if there is none."""
    x, y = max(one.x, other.x), max(one.y, other.y)
    right, bottom = min(one.x + one.width, other.x + other.width), min(one.y + one.height, other.y + other.height)
    return Box(x, y, max(0.0, right - x), max(0.0, bottom - y))
