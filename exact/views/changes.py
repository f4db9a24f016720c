"""The text of an observation in a prompt, and the lines in which two of them differ."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Literal

from exact.observation import Observation
from exact.prompts.fence import one_line


def observation_text(observation: Observation) -> str:
    """Return what prompts show of an observation: address, title, other tabs and downloads, then its text, and its HTML if there is any."""
    lines = [f"URL: {one_line(observation.url, 500)}"] if observation.url else []
    lines += [f"Title: {one_line(observation.title)}"] if observation.title else []
    lines += [f"Other tab {number}: {one_line(tab, 500)}" for number, tab in enumerate(observation.tabs, 1)]
    lines += [f"Downloaded: {one_line(file, 300)}" for file in observation.downloads]
    html = ["HTML:", observation.html] if observation.html else []
    return "\n".join([*lines, observation.text, *html])


def show_changes(before: Observation, now: Observation, shown: Literal["before", "now"] = "now") -> str:
    """Return the lines that a step changed, where they are fewer characters than the state that they stand for; otherwise an empty text.

    `-` begins a line that was there before, `+` a new one. A line such as `line 3:` before them says where they begin in the state that
    the prompt shows whole, which is `shown`. The other state is that one with the lines of the one mark in place of those of the other.
    """
    texts = observation_text(before), observation_text(now)
    found = _changed_lines(texts[0].split("\n"), texts[1].split("\n"), shown)
    return found if len(found) < len(texts[shown == "before"]) else ""


def _changed_lines(before: list[str], now: list[str], shown: str) -> str:
    lines = list[str]()
    for kind, old, old_end, new, new_end in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if kind != "equal":
            place = (new if shown == "now" else old) + 1
            lines += [f"line {place}:", *(f"-{line}" for line in before[old:old_end]), *(f"+{line}" for line in now[new:new_end])]
    return "\n".join(lines)
