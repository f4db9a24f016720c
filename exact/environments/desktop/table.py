"""Cells of tables that are too large to be listed, such as the sheet of a spreadsheet."""

from __future__ import annotations

from exact.environments.desktop.accessibility import Accessibility, ObjectCall, Ref, property_of

HUGE = 5000
"""Children above which a table is not asked for all of them: a sheet claims two thousand millions, and hangs over the list."""
_MOST_CELLS = 3000
_SCREEN = 0
_INSET = 2
"""Pixels from the border of a table at which its outermost cells are looked for."""


def visible_cells(bus: Accessibility, table: Ref) -> list[Ref]:
    """Return the cells of a table that can be seen, row by row; none where it does not tell. Raises Silent."""
    extents, columns = bus.ask(
        [ObjectCall(table, "org.a11y.atspi.Component", "GetExtents", "u", (_SCREEN,)), property_of(table, "Table", "NColumns")]
    )
    if not extents or not columns or columns[0][1] < 1:
        return []
    x, y, width, height = map(int, extents[0])
    corners = ((x + _INSET, y + _INSET), (x + width - _INSET, y + height - _INSET))
    found = bus.ask([ObjectCall(table, "org.a11y.atspi.Component", "GetAccessibleAtPoint", "iiu", (*at, _SCREEN)) for at in corners])
    refs = [(str(each[0][0]), str(each[0][1])) for each in found if each and not str(each[0][1]).endswith("/null")]
    places = bus.ask([ObjectCall(ref, "org.a11y.atspi.Accessible", "GetIndexInParent") for ref in refs])
    if len(refs) < len(corners) or not all(places):
        return []
    (top, left), (bottom, right) = (divmod(int(place[0]), int(columns[0][1])) for place in places if place)
    wanted = [(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)][:_MOST_CELLS]
    cells = bus.ask([ObjectCall(table, "org.a11y.atspi.Table", "GetAccessibleAt", "ii", each) for each in wanted])
    return [(str(cell[0][0]), str(cell[0][1])) for cell in cells if cell and not str(cell[0][1]).endswith("/null")]
