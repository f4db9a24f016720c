"""Correction of boxes that LibreOffice reports: it leaves its menu bar, which GTK draws, out of account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import AccessibleNode, Ref
from exact.observation import Box


def below_menu_bars(nodes: Sequence[AccessibleNode], boxes: Mapping[Ref, Box]) -> dict[Ref, Box]:
    """Return the boxes of an application's objects, with the content of a window below its menu bar.

    Content that begins where the menu bar beside it begins is reported too high by the bar's height.
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
