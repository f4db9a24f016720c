"""Reasoning that a model writes in the open, set aside so that the final answer remains.

Models mark their reasoning in several ways: tags (`<think>`, `[THINK]`), pairs of special tokens, and channels (`<|channel|>analysis`).
A chat template may write the opening tag itself, so that the answer has only the closing one.

End marks of chat templates (`<|im_end|>`, `</s>`) that a server leaves in its answers.
"""

from __future__ import annotations

import bisect
import re

_NAME = r"(?:seed:)?(?:think|thinking|thought|thoughts|reason|reasoning|analysis|reflection|scratchpad|deliberation|inner_monologue)"
_OPEN = re.compile(
    rf"<(?P<tag>{_NAME})(?:\s[^<>\n]*)?>|\[(?P<square>{_NAME})\]|◁(?P<triangle>{_NAME})▷|<\|begin_of_(?P<token>{_NAME})\|>", re.I
)
_CLOSE = re.compile(rf"</{_NAME}>|\[/{_NAME}\]|◁/{_NAME}▷|<\|end_of_(?:{_NAME})\|>", re.I)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)
_TAG = r"(?:answer|final_answer|final|response|output)>"
_WRAPPER = re.compile(rf"^[ \t]*<{_TAG}[ \t]*|(?:(?<![ \t])[ \t]++)?</{_TAG}[ \t]*$|<\|(?:begin|end)_of_solution\|>", re.I | re.M)
_ACTION_LINE = re.compile(r"[ \t>*_#`-]*action\b[^:]*:", re.I)
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|“[^”]*”""")
_QUOTED_ARGUMENT = re.compile(r"""(?<=\s)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|“[^”]*”""")
_TURN = (
    r"(?:<\|im_start\|>\w*|<start_of_turn>\w*|<\|start_header_id\|>\w*(?:<\|end_header_id\|>)?"
    r"|<\|(?:user|assistant|system|observation)\|>)"
)
_MARK = (
    r"(?:<\|(?:im_end|eot_id|eom_id|eot|end|endoftext|end_of_text|END_OF_TURN_TOKEN|eos)\|>|</s>|<eos>|<eos_token>|<end_of_turn>"
    r"|<end_of_utterance>|<turn\|>|<｜end▁of▁sentence｜>|\[\|endofturn\|\]|\[EOS\])"
)
_ENDS = re.compile(rf"(?:{_MARK}\s*)+(?:{_TURN}\s*|\Z)")
"""Matches end marks at the end of an answer, or before the head of a further turn, with that head."""

_FENCE = re.compile(r"⟦(?P<closes>/?)(?P<mark>[^⟦⟧/\n][^⟦⟧\n]*)⟧")
"""Matches the beginning or the end of a fence of the prompt."""


def final_answer(text: str) -> str:
    """Return an answer without the model's reasoning.

    A tag counts at the beginning of a line if it opens, and outside quoted text if it closes. If reasoning never closes, all text after its
    tag is left out. Parts of a prompt's fence that the answer repeats are data and left out. So are end marks of a chat template, but not
    the text of a turn after them: a page may have printed the one before. Any other text is returned as it is.
    """
    text = _without_fences(text)
    if "<|channel|>" in text:
        return _final_channel(text)
    text = _without_end_marks(text)
    answer, at = "", 0
    while opened := _next_open(text, at):
        answer += text[at : opened.start()]
        closed = _close_of(text, opened)
        if closed is None:
            at = len(text)
            break
        at = closed.end()
    rest = text[at:]
    for closed in reversed(list(_CLOSE.finditer(rest))):
        if not _in_quotes(rest, closed.start()):
            answer, rest = "", rest[closed.end() :]
            break
    return _WRAPPER.sub("", answer + rest)


def _without_fences(text: str) -> str:
    """Return a text without the fences of the prompt that it repeats. A fence that never closes stays."""
    marks, ends = list(_FENCE.finditer(text)), dict[str, list[int]]()
    for mark in marks:
        if mark["closes"]:
            ends.setdefault(mark["mark"], []).append(mark.end())
    kept, at = list[str](), 0
    for mark in marks:
        later = ends.get(mark["mark"], [])
        closed = bisect.bisect_right(later, mark.end())
        if not mark["closes"] and mark.start() >= at and closed < len(later):
            kept.append(text[at : mark.start()])
            at = later[closed]
    return "".join((*kept, text[at:]))


def _without_end_marks(text: str) -> str:
    """Return a text without end marks, except those in quoted text that closes later."""
    quotes = [each.span() for each in _QUOTED.finditer(text)] if _ENDS.search(text) else []

    def removed(found: re.Match[str]) -> str:
        if any(start < found.start() < end for start, end in quotes):
            return found[0]
        return "" if found.end() == len(text) else "\n"

    return _ENDS.sub(removed, text)


def _final_channel(text: str) -> str:
    """Return the last message of the `final` channel, never of another. Empty if the model did not reach it."""
    final = [each["text"] for each in _CHANNEL.finditer(text) if each["name"].lower() == "final"]
    return final[-1].strip() if final else ""


def _next_open(text: str, at: int) -> re.Match[str] | None:
    """Return the next opening tag that begins a line, or that begins the answer."""
    for found in _OPEN.finditer(text, at):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not line.strip(" \t>*_#`") or not text[at : found.start()].strip():
            return found
    return None


def _close_of(text: str, opened: re.Match[str]) -> re.Match[str] | None:
    """Return the closing tag of an opening one: the first outside quoted text, else the last."""
    name = next(name for name in (opened["tag"], opened["square"], opened["triangle"], opened["token"]) if name).lower()
    closing = [each for each in _CLOSE.finditer(text, opened.end()) if each[0].lower().strip("</>[]◁▷|").removeprefix("end_of_") == name]
    return next((each for each in closing if not _in_quotes(text, each.start())), closing[-1] if closing else None)


def _in_quotes(text: str, at: int) -> bool:
    """Return whether a position is inside a quoted text on its line. Single quotes count on a line with an action."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    quoted = _QUOTED_ARGUMENT if _ACTION_LINE.match(line) else _QUOTED
    return any(each.start() < at - start < each.end() for each in quoted.finditer(line))
