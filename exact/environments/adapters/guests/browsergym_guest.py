"""Guest for BrowserGym tasks: maps its accessibility tree to elements and our verbs to its actions.

The chat's own browser is left out, fixed waits are replaced by waiting until the page has settled, every launch uses the installed browser,
and the reward is never shown. Runs in BrowserGym's virtual environment.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import browsergym.core.env as core
import gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError, digest, identity, png, use_browser, wait_until_settled, written
else:
    from guest_parts import ActionError, digest, identity, png, use_browser, wait_until_settled, written

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
TIMEOUT_MS = 5000
"""Milliseconds that an action may take. BrowserGym's own 500 are too few in a sandbox or on a busy machine."""
SUBSETS = ["chat", "infeas", "bid", "coord", "nav", "tab"]
STATES = ("checked", "disabled", "expanded", "focused", "pressed", "readonly", "required", "selected")
FIELDS = ("textbox", "searchbox", "combobox", "spinbutton")
IDLE = ("none", "generic", "InlineTextBox", "LineBreak", "LabelText", "MenuListPopup")


class NoChat:
    """Replacement of the chat, which would open a browser of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.page, self.recording_start_time = None, None

    def add_message(self, role: str, msg: str) -> None:
        self.messages.append({"role": role, "timestamp": 0.0, "message": msg})

    def wait_for_user_message(self) -> None:
        raise RuntimeError("there is no user here: leave wait_for_user_message out")

    def close(self) -> None:
        self.messages.clear()


class BrowserGymGuest:
    """Environment for BrowserGym tasks, one after the other."""

    actions = VERBS

    def __init__(self, browser: str, id: str = "", screenshots: bool = True, isolated: bool = True, options: Any = None) -> None:
        """Create an environment without a task.

        `browser`: path of the executable. `id`: task id for tasks whose metadata has no `browsergym`. `options`: of `gymnasium.make`.
        """
        use_browser(browser)
        core.Chat = NoChat
        if not screenshots:
            core.extract_screenshot = lambda page: None
        self._given, self._screenshots, self._options = id, screenshots, dict(options or {})
        self._env: Any = None
        self._made = ""
        self.capabilities = {"fidelity": "replay", "isolated": isolated, "screenshots": screenshots, "evaluates": True}
        self._best, self._over, self._roles = 0.0, True, dict[str, str]()

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        self._best, self._over = 0.0, True
        self._make(task["metadata"].get("browsergym") or self._given)
        observation, _ = self._env.reset(seed=task["seed"])
        self._over = False
        return self._seen(observation)

    def _make(self, id: str) -> None:
        """Make the environment of a task, such as `miniwob.click-test`, and close the last one."""
        if id == self._made:
            return
        self.close()
        importlib.import_module(f"browsergym.{id.partition('.')[0]}")
        code = HighLevelActionSet(subsets=SUBSETS, multiaction=False).to_python_code

        def mapping(action: str) -> str:
            return str(code(action)).replace("timeout=500", f"timeout={TIMEOUT_MS}")

        given = {"slow_mo": 0, "pre_observation_delay": 0.0, **self._options}
        made: Any = gymnasium.make(f"browsergym/{id}", disable_env_checker=True, action_mapping=mapping, **given)
        self._env, self._made = made.unwrapped, id
        self._wait_for_dom, self._env._wait_dom_loaded = self._env._wait_dom_loaded, self._settle

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        if self._over:
            raise ActionError("the episode is over: reset first")
        stops = action["name"] == "stop"
        for id in action["elements"]:
            if id not in self._roles:
                raise ActionError(f"{action['key']}: there is no element [{id}]: there are {', '.join(list(self._roles)[:12])}, ...")
            if id.startswith("t"):
                raise ActionError(f"{action['key']}: [{id}] is text that BrowserGym does not mark: name the element that it is in")
        if stops and not action["args"][0]:
            self._over = True
            return {"observation": None, "terminated": True, "reward": 0.0}
        observation, reward, terminated, truncated, _ = self._env.step(self._code(action))
        self._best = max(self._best, float(reward))
        if observation["last_action_error"] and not stops:
            raise ActionError(f"{action['key']}: {' '.join(observation['last_action_error'].split())[:300]}")
        self._over = bool(terminated or truncated or stops)
        return {"observation": None if self._over else self._seen(observation), "terminated": self._over, "reward": float(reward)}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the largest reward of the episode as score."""
        success = self._best > 0
        return {"value": float(success), "success": success, "raw": self._best, "reason": f"reward {self._best:g}"}

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env, self._made = None, ""

    def _settle(self) -> None:
        """Wait until the pages have settled. Replaces a fixed wait."""
        self._wait_for_dom()
        wait_until_settled(self._env.context.pages)

    def _code(self, action: dict[str, Any]) -> str:
        """Return an action in BrowserGym's form."""
        name, args = action["name"], action["args"]
        if name == "tab":
            args = [int(args[0])]
        if name == "scroll":
            args = [0, self._env.page.viewport_size["height"] * (0.8 if args[0] == "down" else -0.8)]
        own = {
            "double_click": "dblclick", "select": "select_option", "drag": "drag_and_drop", "click_at": "mouse_click",
            "press": "keyboard_press", "tab": "tab_focus", "close_tab": "tab_close", "stop": "send_msg_to_user",
        }  # fmt: skip
        if name == "wait":
            return "noop(1000)"
        return f"{own.get(name, name)}({', '.join(map(repr, args))})"

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        elements = _elements(observation)
        self._roles = {each["id"]: each["role"] for each in elements}
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
            "screenshot": png(observation["screenshot"]) if self._screenshots else None,
        }


def _elements(observation: dict[str, Any]) -> list[dict[str, Any]]:
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
    """Return a node as an element. None where it is empty."""
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
