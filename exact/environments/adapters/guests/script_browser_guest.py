"""Guest for WebArena's own environment, `ScriptBrowserEnv` of the wheel libwebarena, which uses synchronous Playwright.

Runs in a virtual environment that has libwebarena and Playwright. Packages that it imports for its judges and tokenizers only may be
missing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.adapters.guests.guest_parts import ActionError, digest, png, use_browser, wait_until_settled
else:
    from guest_parts import ActionError, digest, png, use_browser, wait_until_settled

SITES = ("REDDIT", "SHOPPING", "SHOPPING_ADMIN", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE")
OPTIONAL = {"transformers": "LlamaTokenizer", "text_generation": "Client"}
"""Large packages that WebArena imports although browsing does not need them, with the name imported from each."""
LINE = re.compile(r"^(\t*)\[(\d+)\] (\w+) '(.*?)'((?: \w+: \S+)*)$", re.M)
STATES = ("checked", "disabled", "expanded", "focused", "pressed", "readonly", "required", "selected")

VERBS: list[dict[str, Any]] = [
    {"name": "click", "form": ["[id]"], "help": "click an element"},
    {"name": "type", "form": ["[id]", '"text"'], "help": "click a field and type into it"},
    {"name": "hover", "form": ["[id]"], "help": "move the pointer over an element"},
    {"name": "press", "form": ['"text"'], "help": 'press keys together, such as "Enter" or "Control+a"'},
    {"name": "scroll", "form": ["up|down"], "help": "scroll by a screen"},
    {"name": "goto", "form": ['"text"'], "help": "open an address in this tab"},
    {"name": "go_back", "help": "go back to the previous page"},
    {"name": "go_forward", "help": "go forward again"},
    {"name": "new_tab", "help": "open a tab"},
    {"name": "tab_focus", "form": ["number"], "help": "go to a tab by its number, from 0"},
    {"name": "close_tab", "help": "close this tab"},
    {"name": "do", "form": ['"text"'], "help": "an action in WebArena's own form: type [4] [a text] [1]"},
    {"name": "stop", "form": ['"text"'], "help": "end the task, with the answer if one was asked for", "final": True},
]


class ScriptBrowserGuest:
    """One ScriptBrowserEnv. A task has a configuration in WebArena's form in its private `config`: JSON, or the path of a file."""

    actions = VERBS

    def __init__(self, browser: str, isolated: bool = False, trace: bool = False, options: Any = None, config: str = "") -> None:
        """Create an environment without a task.

        `browser`: path of the executable. `trace`: whether Playwright records a trace. `options`: those of ScriptBrowserEnv. `config`:
        configuration of tasks that have none.
        """
        for site in SITES:
            os.environ.setdefault(site, f"http://{site.lower()}.invalid")
        for name, taken in OPTIONAL.items():
            if importlib.util.find_spec(name) is None:
                sys.modules[name] = _absent(name, taken)
        use_browser(browser)
        from webarena.browser_env import ScriptBrowserEnv

        given = {"observation_type": "accessibility_tree", "current_viewport_only": True, **(options or {})}
        self._env: Any = ScriptBrowserEnv(headless=True, save_trace_enabled=trace, **given)
        self._observe, self._env._get_obs = self._env._get_obs, self._settled_observation
        self._config = config
        self._folder, self._trace = Path(tempfile.mkdtemp(prefix="exact-webarena-")), trace
        self._task: dict[str, Any] = {}
        self._state: Any = None
        self._ended = True
        self.capabilities = {"fidelity": "replay", "isolated": isolated, "deterministic": True, "evaluates": True}

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        self._ended = True
        config = str(task["private"].get("config") or self._config)
        self._task = json.loads(config if config.lstrip().startswith("{") else Path(config).read_text("utf-8"))
        self._file.write_text(json.dumps(self._task), "utf-8")
        observation, info = self._env.reset(options={"config_file": str(self._file)})
        self._ended = False
        return self._seen(observation, info)

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        from webarena.browser_env import ActionTypes

        if self._ended:
            raise ActionError("the episode is over: reset first")
        parsed = self._parsed(action)
        if parsed["action_type"] == ActionTypes.STOP:
            self._ended = True
            return {"observation": None, "terminated": True}
        observation, _, terminated, truncated, info = self._env.step(parsed)
        seen = self._seen(observation, info)
        if info["fail_error"]:
            raise ActionError(f"{action['key']}: {' '.join(info['fail_error'].split())[:300]}")
        return {"observation": seen, "terminated": bool(terminated or truncated)}

    def observe(self) -> dict[str, Any]:
        return self._seen(self._env._get_obs(), {"observation_metadata": self._env._get_obs_metadata(), "fail_error": ""})

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the score of WebArena's evaluator for the present page."""
        from webarena.browser_env import create_stop_action
        from webarena.evaluation_harness.evaluators import evaluator_router

        path = [self._state, create_stop_action(outcome.get("answer") or "")]
        evaluator = evaluator_router(self._file)
        value = float(evaluator(path, self._file, self._env.page, self._env.get_page_client(self._env.page)))
        return {"value": value, "success": value == 1.0, "raw": value, "reason": ", ".join(self._task["eval"]["eval_types"])}

    def command(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Carry out `save_trace`: return Playwright's trace since the reset, or since the last save."""
        if name != "save_trace":
            raise ValueError(f"there is no command {name!r}: there is save_trace")
        if not self._trace:
            raise ValueError("no trace is recorded: open the environment with trace=True")
        path = self._folder / "trace.zip"
        self._env.save_trace(path)
        self._env.context.tracing.start(screenshots=True, snapshots=True)
        return {"trace": path.read_bytes()}

    def close(self) -> None:
        self._env.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _file(self) -> Path:
        return self._folder / "task.json"

    def _settled_observation(self) -> Any:
        """Observe after the pages have settled. Tabs that WebArena did not open get the CDP session that it needs to observe them."""
        wait_until_settled(self._env.context.pages)
        for page in self._env.context.pages:
            if not hasattr(page, "client"):  # a popup, or the tab that is left after the last one was closed
                page.client = page.context.new_cdp_session(page)
                page.client.send("Accessibility.enable")
        return self._observe()

    def _parsed(self, action: dict[str, Any]) -> Any:
        """Return the action that WebArena's own parser makes of it. Raises ActionError."""
        from webarena.browser_env import ActionParsingError, create_id_based_action, create_stop_action, create_type_action

        name, args = action["name"], action["args"]
        try:
            if name == "stop":
                return create_stop_action(args[0])
            if name == "type":
                return create_type_action(text=args[1], element_id=args[0])
            words = args[0] if name == "do" else " ".join([name, *(f"[{int(a) if isinstance(a, float) else a}]" for a in args)])
            return create_id_based_action(words)
        except ActionParsingError as error:
            raise ActionError(f"{action['key']}: {error}") from error
        except KeyError as error:
            raise ActionError(f"{action['key']}: {error} cannot be typed here") from error

    def _seen(self, observation: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        self._state = {"observation": observation, "info": info}
        text, page = observation.get("text") or "", self._env.page
        nodes = info["observation_metadata"].get("text", {}).get("obs_nodes_info", {})
        others = [each.url for each in self._env.context.pages if each != page]
        picture: Any = observation.get("image")
        return {
            "text": text,
            "fingerprint": digest([page.url, others, re.sub(r"^(\t*)\[\d+\]", r"\1", text, flags=re.M)]),
            "url": page.url,
            "title": page.title(),
            "instruction": str(self._task.get("intent", "")),
            "elements": [_element(found, nodes) for found in LINE.finditer(text)],
            "tabs": others,
            "screenshot": png(picture[:, :, :3]) if hasattr(picture, "shape") and picture.size else None,
        }


def _element(found: re.Match[str], nodes: dict[str, Any]) -> dict[str, Any]:
    """Return the element of a line of WebArena's tree."""
    tabs, id, role, name, properties = found.groups()
    values = dict(part.split(": ", 1) for part in re.findall(r"\w+: \S+", properties))
    box = nodes.get(id, {}).get("union_bound")
    return {
        "id": id, "role": role, "name": name.strip(), "depth": len(tabs),
        "states": sorted(state for state in STATES if values.get(state, "").lower() == "true"),
        "box": [float(each) for each in box] if box else None,
    }  # fmt: skip


def _absent(name: str, taken: str) -> types.ModuleType:
    """Return a module in place of a package that is not installed. Using its class raises ImportError."""

    class Absent:
        def __init__(self, *args: Any, **options: Any) -> None:
            raise ImportError(f"{name} is not installed in {sys.prefix}: install it there")

    module = types.ModuleType(name)
    setattr(module, taken, type(taken, (Absent,), {"from_pretrained": Absent}))
    return module
