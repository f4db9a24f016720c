"""Keys of an X display: chords by name, texts by character, including characters without a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from exact.errors import ActionError

_NAMES = {
    **{"Enter": "Return", "Escape": "Escape", "Backspace": "BackSpace", "PageUp": "Prior", "PageDown": "Next", "ContextMenu": "Menu"},
    **{"ArrowUp": "Up", "ArrowDown": "Down", "ArrowLeft": "Left", "ArrowRight": "Right", "Space": "space"},
    **{"Control": "Control_L", "Alt": "Alt_L", "Meta": "Super_L", "Shift": "Shift_L"},
}
"""X's names of keys that differ from ours."""
_WRITTEN = {"\n": "Return", "\r": "Return", "\t": "Tab"}
_UNICODE = 0x01000000
"""Offset that makes a code point outside Latin 1 an X symbol."""


class Keyboard:
    """Keyboard of one display."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._held = list[int]()
        self._shift = self._code("Shift_L")
        self._spare = self._unused()
        self._lent = dict[int, int]()
        """Codes of spare keys by the symbols that they were given, oldest first."""

    def press(self, chord: str) -> None:
        """Press the keys of a chord in its canonical form, and release them in reverse order."""
        *modifiers, key = _parts(chord)
        codes = [self._code(_NAMES[name]) for name in modifiers]
        for code in codes:
            self._fake(code, down=True)
        self._stroke(*self._place(key))
        for code in reversed(codes):
            self._fake(code, down=False)

    def hold(self, key: str) -> None:
        code, _ = self._place(key)
        self._held.append(code)
        self._fake(code, down=True)

    def release(self, key: str) -> None:
        code, _ = self._place(key)
        if code in self._held:
            self._held.remove(code)
        self._fake(code, down=False)

    def let_go(self) -> None:
        """Release every held key."""
        while self._held:
            self._fake(self._held.pop(), down=False)

    def has(self, text: str) -> bool:
        """Return whether there is a key for each character."""
        return all(self._own(_WRITTEN.get(each, each)) for each in text.replace("\r\n", "\n"))

    def type(self, text: str, rest: Callable[[], object]) -> None:
        """Type one character after the other.

        rest: waits until programs know the keys that got other symbols. Raises ActionError if more characters have no key than there
        are spare keys.
        """
        characters = [_WRITTEN.get(each, each) for each in text.replace("\r\n", "\n")]
        foreign = [_symbol(each) for each in dict.fromkeys(characters) if self._own(each) is None]
        if len(foreign) > len(self._spare):
            raise ActionError(f"the keyboard lacks {len(foreign)} of these characters, and has {len(self._spare)} keys to spare: type less")
        if self._lend(foreign):
            rest()
        for character in characters:
            self._stroke(*self._place(character))

    def _stroke(self, code: int, shifted: bool) -> None:
        if shifted:
            self._fake(self._shift, down=True)
        self._fake(code, down=True)
        self._fake(code, down=False)
        if shifted:
            self._fake(self._shift, down=False)

    def _place(self, key: str) -> tuple[int, bool]:
        """Return a key's code, and whether it needs Shift."""
        own = self._own(key)
        if own is None:
            self._lend([_symbol(key)])
        return own or (self._lent[_symbol(key)], False)

    def _own(self, key: str) -> tuple[int, bool] | None:
        """Return the code of a key that the keyboard has by itself; None if it has none."""
        from Xlib import XK

        symbol = _symbol(key) if len(key) == 1 else int(XK.string_to_keysym(_NAMES.get(key, key)))
        found = sorted(self._display.keysym_to_keycodes(symbol), key=lambda code: code[1])
        return next(((int(code), column == 1) for code, column in found if column < 2 and code not in self._spare), None)

    def _lend(self, symbols: Sequence[int]) -> bool:
        """Map symbols to spare keys, reusing those mapped longest ago. Return whether anything changed."""
        wanted = [symbol for symbol in symbols if symbol not in self._lent]
        for symbol in wanted:
            free = [code for code in self._spare if code not in self._lent.values()]
            old = next((each for each in self._lent if each not in symbols), 0)
            code = free[0] if free else self._lent.pop(old)
            self._lent[symbol] = code
        by_code = {code: symbol for symbol, code in self._lent.items()}
        for run in _runs(sorted(self._lent[symbol] for symbol in wanted)):  # as few requests as can be: programs read all keys after each
            self._display.change_keyboard_mapping(run[0], [(by_code[code], by_code[code]) for code in run])
        if wanted:
            self._display.sync()
        return bool(wanted)

    def _unused(self) -> list[int]:
        low, high = self._display.display.info.min_keycode, self._display.display.info.max_keycode
        mapping = self._display.get_keyboard_mapping(low, high - low + 1)
        return [low + at for at, symbols in enumerate(mapping) if not any(symbols)]

    def _code(self, name: str) -> int:
        from Xlib import XK

        return int(self._display.keysym_to_keycode(XK.string_to_keysym(name)))

    def _fake(self, code: int, *, down: bool) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.KeyPress if down else X.KeyRelease, code)
        self._display.flush()


def _parts(chord: str) -> list[str]:
    """Return the names in a canonical chord; a plus sign at the end is the key itself."""
    return [*chord[:-2].split("+"), "+"] if chord.endswith("++") else [chord] if len(chord) == 1 else chord.split("+")


def _symbol(character: str) -> int:
    code = ord(character)
    return code if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF else _UNICODE + code


def _runs(codes: Sequence[int]) -> list[list[int]]:
    """Return consecutive numbers as groups."""
    found: list[list[int]] = []
    for code in codes:
        if found and code == found[-1][-1] + 1:
            found[-1].append(code)
        else:
            found.append([code])
    return found
