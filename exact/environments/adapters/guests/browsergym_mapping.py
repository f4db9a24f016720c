"""BrowserGym's observations and actions in our terms. Standard library only: it runs in BrowserGym's virtual environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "." in __name__:
    from exact.environments.adapters.guests.guest_parts import Element, digest, identity, written
else:
    from guest_parts import Element, digest, identity, written

VERBS: list[dict[str, Any]] = [
    {"name": "click", "form": ["[id]"], "help": "click an element"},
    {"name": "double_click", "form": ["[id]"], "help": "click an element twice"},
    {"name": "fill", "form": ["[id]", '"text"'], "help": "replace the content of a field"},
    {"name": "press", "form": ['"text"'], "help": 'press keys together, such as "Enter" or "Control+a"'},
    {"name": "hover", "form": ["[id]"], "help": "move the pointer over an element"},
    {"name": "select", "form": ["[id]", '"text"'], "help": "choose an option of a drop-down by its label"},
    {"name": "drag", "form": ["[id]", "to", "[id]"], "help": "drag one element onto another"},
    {"name": "click_at", "form": ["number", "number"], "help": "click a point, in pixels from the top left of the viewport"},
    {"name": "scroll", "form": ["up|down"], "help": "scroll by most of a screen"},
    {"name": "goto", "form": ['"text"'], "help": "open an address in this tab"},
    {"name": "go_back", "help": "go back to the previous page"},
    {"name": "go_forward", "help": "go forward again"},
    {"name": "new_tab", "help": "open a tab"},
    {"name": "tab", "form": ["number"], "help": "go to a tab by its number, from 0"},
    {"name": "close_tab", "help": "close this tab"},
    {"name": "wait", "help": "wait a second"},
    {"name": "stop", "form": ['"text"'], "help": "end the task, with the answer if one was asked for", "final": True},
]
SUBSETS = ["chat", "infeas", "bid", "coord", "nav", "tab"]
STATES = ("checked", "disabled", "expanded", "focused", "pressed", "readonly", "required", "selected")
FIELDS = ("textbox", "searchbox", "combobox", "spinbutton")
IDLE = ("none", "generic", "InlineTextBox", "LineBreak", "LabelText", "MenuListPopup")


def code(name: str, args: list[Any], height: float) -> str:
    """Return an action in BrowserGym's form. `height`: that of the viewport in pixels."""
    if name == "tab":
        args = [int(args[0])]
    if name == "scroll":
        args = [0, height * (0.8 if args[0] == "down" else -0.8)]
    own = {
        "double_click": "dblclick", "select": "select_option", "drag": "drag_and_drop", "click_at": "mouse_click",
        "press": "keyboard_press", "tab": "tab_focus", "close_tab": "tab_close", "stop": "send_msg_to_user",
    }  # fmt: skip
    if name == "wait":
        return "noop(1000)"
    return f"{own.get(name, name)}({', '.join(map(repr, args))})"


def seen(observation: dict[str, Any], elements: list[Element]) -> dict[str, Any]:
    """Return an observation in our terms, without its picture."""
    open_ = list(observation["open_pages_urls"])
    here = int(observation["active_page_index"][0])
    pages = [url for at, url in enumerate(open_) if at != here]
    goal = "\n".join(part["text"] for part in observation["goal_object"] if part["type"] == "text")
    return {
        "text": written(elements),
        "fingerprint": digest([observation["url"], pages, identity(elements)]),
        "url": observation["url"],
        "title": observation["open_pages_titles"][here],
        "instruction": goal,
        "elements": elements,
        "tabs": pages,
    }


def elements_of(observation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the accessibility tree in document order, without empty wrappers. Ids are BrowserGym's own."""
    nodes = {node["nodeId"]: node for node in observation["axtree_object"]["nodes"]}
    inner = {child for node in nodes.values() for child in node.get("childIds", ())}
    found: list[dict[str, Any]] = []
    stack = [(id, 0) for id in reversed([id for id in nodes if id not in inner])]
    while stack:
        id, depth = stack.pop()
        node = nodes.get(id)
        if node is None:
            continue
        element = _element(node, depth, observation["extra_element_properties"])
        if element:
            found.append(element)
        stack.extend((child, depth + bool(element)) for child in reversed(node.get("childIds", [])))
    texts = 0
    for element in found:
        if not element["id"]:  # text has no id of BrowserGym's
            texts += 1
            element["id"] = f"t{texts}"
    return found


def _element(node: dict[str, Any], depth: int, extra: dict[str, Any]) -> dict[str, Any] | None:
    """Return a node as an element. None if it is empty."""
    role, name = str(node["role"]["value"]), str(node.get("name", {}).get("value", ""))
    id = node.get("browsergym_id") or ""
    more = extra.get(id) or {}
    if node.get("ignored") or (role in IDLE and not more.get("clickable")) or (role == "StaticText" and not name.strip()):
        return None
    properties = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
    states = sorted(state for state in STATES if properties.get(state) in (True, "true", "mixed"))
    if role not in FIELDS:
        states = [state for state in states if state != "focused"]
    value, box = node.get("value", {}).get("value"), more.get("bbox")
    return {
        "id": id, "role": role, "name": name.strip(), "value": None if value is None else str(value), "states": states, "depth": depth,
        "visible": bool(more.get("visibility", 1.0)), "box": [float(each) for each in box] if box else None,
    }  # fmt: skip
