"""Cells of tables that are too large to be listed, such as the sheet of a spreadsheet."""

from __future__ import annotations

from typing import NamedTuple

from exact.environments.desktop.accessibility import Accessibility, ObjectCall, Ref, property_of
from exact.observation import Box

HUGE = 5000
"""Children above which a table is not asked for all of them: a sheet claims two thousand millions, and hangs over the list."""
_MOST_CELLS = 3000
_SCREEN = 0
_INSET = 2
"""Pixels from the border of a table at which its outermost cells are looked for."""


class TableCell(NamedTuple):
    """Visible cell of a table."""

    ref: Ref
    position: int
    """Index among the table's children, which is the same whenever the cell is asked for; its reference is not."""
    box: Box | None
    """Box of its column and its row."""


def visible_cells(bus: Accessibility, table: Ref) -> list[Ref]:
    """Return the references of the cells of a table that can be seen, row by row. Raises Silent."""
    return [cell.ref for cell in table_cells(bus, table)]


def table_cells(bus: Accessibility, table: Ref) -> list[TableCell]:
    """Return the cells of a table that can be seen, row by row; none where it does not tell. Raises Silent."""
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
