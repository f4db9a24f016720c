"""The committed path of an attempt as a Playwright test that runs without exact.

The test finds elements by role and name, as an agent saw them. All text from pages or models is a Python literal, never code.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

from exact.action import Action
from exact.observation import Element, Observation
from exact.report.model.reading import Reading
from exact.report.model.text import one_line
from exact.runs.targets import row_of
from exact.task import Task

_SPOKEN = frozenset(
    {
        "alert",
        "alertdialog",
        "article",
        "banner",
        "button",
        "cell",
        "checkbox",
        "columnheader",
        "combobox",
        "complementary",
        "contentinfo",
        "dialog",
        "form",
        "grid",
        "gridcell",
        "group",
        "heading",
        "img",
        "link",
        "list",
        "listbox",
        "listitem",
        "log",
        "main",
        "menu",
        "menubar",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "navigation",
        "option",
        "progressbar",
        "radio",
        "radiogroup",
        "region",
        "row",
        "rowheader",
        "search",
        "searchbox",
        "separator",
        "slider",
        "spinbutton",
        "status",
        "switch",
        "tab",
        "table",
        "tablist",
        "tabpanel",
        "textbox",
        "toolbar",
        "tooltip",
        "tree",
        "treeitem",
    }
)
"""ARIA roles that a locator names; elements of other roles are found by their text."""
_SHOWN = 3
"""Maximum number of element names by which the test recognises the last state."""


def playwright_test(task: Task, reading: Reading) -> str:
    """Return the text of a pytest module with one test; it needs pytest-playwright.

    A step without an equal in Playwright, such as waiting, becomes a comment. A refused step did nothing and is left out.
    """
    start = reading.seen(reading.state.search.tree.nodes[0])
    name = "".join(char if char.isalnum() and char.isascii() else "_" for char in task.id).strip("_").lower()
    lines = [
        f'"""{_comment(reading.state.live.instruction or task.instruction)}',
        "",
        "What an agent did, step by step. Needs pytest-playwright; run it with: pytest --browser chromium",
        '"""',
        "",
        "from playwright.sync_api import Page, expect",
        "",
        "",
        f"def test_{name}(page: Page) -> None:",
        f"    page.goto({(task.start or (start.url if start else ''))!r})",
        *(f"    {line}" for line in _steps(reading)),
        *(f"    {line}" for line in _end(reading)),
    ]
    return "\n".join(lines) + "\n"


def _steps(reading: Reading) -> Iterator[str]:
    for decided, committed, root in reading.steps:
        if committed is None or committed.refused:
            continue
        edge = root.edges[decided.decision.edges[0]]
        if edge.rationale:
            yield f"# {_comment(edge.rationale)}"
        yield from _step(edge.action, reading.seen(root))


def _step(action: Action, seen: Observation | None) -> Iterator[str]:
    found = [_locator(seen, id) for id in action.elements]
    if seen is None or None in found:
        yield f"# {_comment(str(action))}: what it was done with is not known"
        return
    args = list(action.args[len(action.elements) :])
    yield _on_elements(action.name, [each or "" for each in found], args) if found else _on_page(action, args, seen.url)


def _on_elements(verb: str, found: list[str], args: list[str | float]) -> str:
    match verb:
        case "fill":
            return f"{found[0]}.fill({str(args[-1])!r})"
        case "select":
            return f"{found[0]}.select_option(label={str(args[-1])!r})"
        case "drag":
            return f"{found[0]}.drag_to({found[1]})"
        case "double_click":
            return f"{found[0]}.dblclick()"
        case "right_click":
            return f"{found[0]}.click(button='right')"
        case "click_with":
            return f"{found[0]}.click(modifiers={str(args[-1]).split('+')!r})"
        case "upload":
            return f"{found[0]}.set_input_files({str(args[-1])!r})"
        case "click" | "hover":
            return f"{found[0]}.{verb}()"
        case _:
            return f"# {verb} on {_comment(found[0])}"


def _on_page(action: Action, args: list[str | float], url: str) -> str:
    match action.name:
        case "press" | "type":
            return f"page.keyboard.{action.name}({str(args[0])!r})"
        case "click_at":
            return f"page.mouse.click({float(args[0]):g}, {float(args[1]):g})"
        case "scroll":
            return f"page.mouse.wheel(0, {-600 if args[0] == 'up' else 600})"
        case "goto":
            return f"page.goto({urljoin(url, str(args[0]))!r})"
        case "go_back" | "go_forward":
            return f"page.{action.name}()"
        case _:
            return f"# {_comment(str(action))}"


def _locator(seen: Observation | None, id: str) -> str | None:
    """Return an expression that finds an element by role and name; among equal ones by a text of its row, or else by its index."""
    element = seen.element(id) if seen else None
    if seen is None or element is None:
        return None
    if (row := row_of(seen, id)) is not None:
        return f"page.get_by_role({row[0]!r}).filter(has_text={row[1]!r}).{_base(element).removeprefix('page.')}"
    alike = [each.id for each in seen.elements if each.role == element.role and element.name in ("", each.name)]
    nth = f".nth({alike.index(id)})" if len(alike) > 1 else ""
    return f"{_base(element)}{nth}"


def _base(element: Element) -> str:
    if element.role in _SPOKEN:
        name = f", name={element.name!r}, exact=True" if element.name else ""
        return f"page.get_by_role({element.role!r}{name})"
    return f"page.get_by_text({element.name!r}, exact=True)"


def _end(reading: Reading) -> Iterator[str]:
    """Yield the assertions that recognise the last state: names in it that the first state did not have."""
    last, first = reading.seen(reading.state.search.tree.root), reading.seen(reading.state.search.tree.nodes[0])
    if last is None or reading.state.search.tree.root.leaf:
        return
    known = {(each.role, each.name) for each in first.elements} if first else set()
    new = [each for each in last.elements if each.role in _SPOKEN and each.name.strip() and (each.role, each.name) not in known]
    for element in new[:_SHOWN]:
        yield f"expect({_base(element)}.first).to_be_visible()"


def _comment(text: str) -> str:
    """Return text as one line that cannot end a comment or a docstring."""
    return one_line(text).replace("\\", "/").replace('"""', "'''").rstrip('"')
