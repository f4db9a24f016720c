"""AT-SPI's numbers of roles and states in ARIA's words."""

from __future__ import annotations

ROLES = {
    2: "alert", 5: "grid", 6: "Canvas", 7: "checkbox", 8: "menuitemcheckbox", 9: "dialog", 10: "columnheader", 11: "combobox", 16: "dialog",
    18: "Canvas", 23: "window", 26: "image", 27: "image", 29: "StaticText", 31: "listbox", 32: "option",
    33: "menuitem", 34: "menubar", 35: "menuitem", 37: "tab", 38: "tablist", 40: "textbox", 41: "menu", 42: "progressbar", 43: "button",
    44: "radio", 45: "menuitemradio", 47: "rowheader", 48: "scrollbar", 51: "slider", 52: "spinbutton", 54: "status", 55: "table",
    56: "cell", 57: "columnheader", 58: "rowheader", 60: "textbox", 61: "textbox", 62: "button", 63: "toolbar", 65: "tree", 66: "treegrid",
    69: "window", 73: "paragraph", 79: "textbox", 80: "image", 83: "heading", 88: "link", 90: "row", 91: "treeitem", 98: "listbox",
    101: "alert", 102: "alert", 103: "meter", 116: "StaticText", 129: "button", 130: "switch",
}  # fmt: skip
"""ARIA roles by AT-SPI number. A role that is missing is a wrapper without meaning unless it has a name: then `group`."""

WINDOWS = frozenset({"window", "dialog", "alert"})
TOOLTIP, APPLICATION, PASSWORD, SEPARATOR, SUBMENU, TERMINAL, MENU_BAR, ROOT_PANE = 64, 75, 40, 50, 33, 60, 34, 46
MENU = frozenset({"menuitem", "menuitemcheckbox", "menuitemradio"})
LAID_OUT = frozenset({"table", "tree", "treegrid", "listbox", "grid"})
"""Roles whose children an application reports only when each is requested."""
FIELDS = frozenset({"textbox", "spinbutton"})
_NEVER_SENSITIVE = frozenset({"cell", "table", "group"})
"""Roles that are enabled in LibreOffice without being sensitive. GTK's tabs are neither, and can be clicked."""
CAPTIONED = frozenset({"StaticText", "paragraph", "heading"})

ACTIVE, CHECKED, EDITABLE, ENABLED, EXPANDABLE, EXPANDED = 1 << 1, 1 << 4, 1 << 7, 1 << 8, 1 << 9, 1 << 10
FOCUSED, MODAL, PRESSED, SELECTED, SENSITIVE, SHOWING = 1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 24, 1 << 25
VISIBLE, INDETERMINATE, REQUIRED = 1 << 30, 1 << 32, 1 << 33


def states(bits: int, role: str) -> tuple[str, ...]:
    """Return the states as sorted words; none for plain text."""
    if role in CAPTIONED:
        return ()
    found = {
        "active": bool(bits & ACTIVE) and role in WINDOWS,
        "modal": bool(bits & MODAL),
        "checked": bool(bits & CHECKED) and role != "button",
        "pressed": role == "button" and bool(bits & (CHECKED | PRESSED)),
        "mixed": bool(bits & INDETERMINATE),
        "expanded": bool(bits & EXPANDED),
        "collapsed": bool(bits & EXPANDABLE) and not bits & EXPANDED,
        "focused": bool(bits & FOCUSED),
        "selected": bool(bits & SELECTED) and role not in MENU,
        "required": bool(bits & REQUIRED),
        "readonly": role == "textbox" and not bits & EDITABLE,
        "disabled": not bits & SENSITIVE and role != "tab" and not (role in _NEVER_SENSITIVE and bits & ENABLED),
    }
    return tuple(sorted(word for word, holds in found.items() if holds))
