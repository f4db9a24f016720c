"""Pruning of text to a token budget: visible lines first, then lines that can be acted on; repeated list entries are folded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exact.models.tokens import rough
from exact.observation import Element, Observation


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


INTERACTIVE = _set(
    "button link textbox searchbox combobox checkbox radio switch slider spinbutton option menuitem menuitemcheckbox menuitemradio tab "
    "treeitem listbox ColorWell Date DateTime InputTime DisclosureTriangle ToggleButton PopUpButton"
)
"""Roles of elements that can be acted on."""

KEPT_ENTRIES = (8, 4, 2)
"""Leading entries of a repeated list that stay, tried in this order. The last entry also stays."""

_REPEATED = 5
"""Minimum number of consecutive entries of one shape that make a repeated list."""
_INDENT = re.compile(r"^ *")
_ID = re.compile(r"^ *\[(\d+)\] (\S+)")
_NOTE = 12
"""Tokens of a note about an omission."""


class Pruned(NamedTuple):
    """A text within its budget."""

    text: str
    left_out: tuple[str, ...]
    """One note for each omission. Empty if the text is complete."""


class _TextLine(NamedTuple):
    text: str
    depth: int
    role: str
    rank: int
    """Importance. Lines of lower rank stay longer."""
    tokens: int


def prune_text(
    observation: Observation, tokens: int, *, characters: int | None = None, count: Callable[[str], int] = rough, view: bool = False
) -> Pruned:
    """Return the observation's text in at most `tokens` tokens and `characters` characters, apart from notes about omissions.

    Lines stay in order. Repeated entries are folded first. Then lines are removed by rank, later lines of equal rank first: text out of
    view, elements that can be acted on out of view, text in view. Each gap states how many elements it leaves out. With `view`, only
    entries in view stay, even if more would fit.
    """
    budget = _TextBudget(tokens, characters)
    lines = _lines(observation, count)
    seen = [i for i, line in enumerate(lines) if line.rank < 2] if view else list(range(len(lines)))
    if len(seen) < len(lines) and budget.fits([lines[i] for i in seen], gaps=_count_gaps(seen, len(lines))):
        return _write_pruned(lines, seen, observation)
    if budget.fits(lines):
        return Pruned(observation.text, ())
    if view:
        return _write_pruned(lines, _fit_by_rank(lines, seen, budget), observation)
    for entries in KEPT_ENTRIES:
        kept = _close_small_gaps(lines, _fold_repeats(lines, entries))
        if budget.fits([lines[i] for i in kept], gaps=_count_gaps(kept, len(lines))):
            return _write_pruned(lines, kept, observation)
    return _write_pruned(lines, _fit_by_rank(lines, kept, budget), observation)


class _TextBudget(NamedTuple):
    tokens: int
    characters: int | None

    def fits(self, lines: Sequence[_TextLine], gaps: int = 0) -> bool:
        if sum(line.tokens for line in lines) + gaps * _NOTE > self.tokens:
            return False
        return self.characters is None or sum(len(line.text) + 1 for line in lines) + gaps * 4 * _NOTE <= self.characters


def _lines(observation: Observation, count: Callable[[str], int]) -> list[_TextLine]:
    elements = {element.id: element for element in observation.elements}
    found = []
    for number, text in enumerate(observation.text.split("\n")):
        match = _ID.match(text)
        element = elements.get(match[1]) if match else None
        role = match[2] if match else ""
        depth = len(_INDENT.match(text)[0])  # type: ignore[index]
        rank = -1 if number < observation.results else _rank(element, role)
        found.append(_TextLine(text, depth, role, rank, count(text) + 1))
    return found


def _rank(element: Element | None, role: str) -> int:
    acted = role in INTERACTIVE
    if element is None:
        return 1
    if "focused" in element.states or "modal" in element.states:
        return -1
    return (0 if acted else 1) if element.visible else (2 if acted else 3)


def _fold_repeats(lines: Sequence[_TextLine], entries: int) -> list[int]:
    """Return the indices of the lines that stay if only the first `entries` entries and the last of each repeated list do."""
    kept: list[int] = []
    at = 0
    while at < len(lines):
        run = _repeated_run(lines, at)
        if len(run) - 1 >= max(_REPEATED, entries + 2):
            kept.extend(range(run[0], run[entries]))
            kept.extend(range(run[-2], run[-1]))
            at = run[-1]
        else:
            kept.append(at)
            at += 1
    return kept


def _repeated_run(lines: Sequence[_TextLine], start: int) -> list[int]:
    """Return the start of each consecutive entry of one shape, from `start` on, and the end of the last."""
    shape, at = None, start
    begins = [start]
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].depth > lines[at].depth:
            end += 1
        found = tuple((line.depth, line.role) for line in lines[at:end])
        if shape is None:
            shape = found
        if found != shape or not lines[at].role:
            break
        begins.append(end)
        at = end
    return begins


def _fit_by_rank(lines: Sequence[_TextLine], kept: Sequence[int], budget: _TextBudget) -> list[int]:
    """Return the indices of as many lines as fit, lowest rank first, in order within a rank."""
    order = sorted(kept, key=lambda i: (lines[i].rank, i))
    fits, most = 0, len(order)
    while fits < most:
        middle = (fits + most + 1) // 2
        chosen = _close_small_gaps(lines, sorted(order[:middle]))
        if budget.fits([lines[i] for i in chosen], gaps=_count_gaps(chosen, len(lines))):
            fits = middle
        else:
            most = middle - 1
    return _close_small_gaps(lines, sorted(order[:fits]))


def _close_small_gaps(lines: Sequence[_TextLine], kept: Sequence[int]) -> list[int]:
    """Return the kept indices with the lines of those gaps that cost no more than the note about them."""
    closed: list[int] = []
    for before, after in itertools.pairwise([-1, *kept, len(lines)]):
        gap = lines[before + 1 : after]
        if sum(line.tokens for line in gap) <= _NOTE and sum(len(line.text) + 1 for line in gap) <= 4 * _NOTE:
            closed.extend(range(before + 1, after))
        if after < len(lines):
            closed.append(after)
    return closed


def _count_gaps(kept: Sequence[int], total: int) -> int:
    edges = [-1, *kept, total]
    return sum(after - before > 1 for before, after in itertools.pairwise(edges))


def _write_pruned(lines: Sequence[_TextLine], kept: Sequence[int], observation: Observation) -> Pruned:
    out: list[str] = []
    edges = [-1, *kept, len(lines)]
    for before, after in itertools.pairwise(edges):
        if missing := lines[before + 1 : after]:
            indent = " " * min(line.depth for line in missing)
            out.append(f"{indent}(... {len(missing)} left out: {_name_roles(missing)})")
        if after < len(lines):
            out.append(lines[after].text)
    staying = set(kept)
    gone = [line for i, line in enumerate(lines) if i not in staying]
    unseen = sum(line.rank >= 2 for line in gone)
    note = f"{len(gone)} of {len(lines)} lines of {observation.url or 'the observation'}, {unseen} of them outside the view"
    return Pruned("\n".join(out), (note,))


def _name_roles(lines: Sequence[_TextLine]) -> str:
    """Return the three most frequent roles with their counts."""
    roles: dict[str, int] = {}
    for line in lines:
        roles[line.role or "text"] = roles.get(line.role or "text", 0) + 1
    common = sorted(roles, key=lambda role: -roles[role])[:3]
    return ", ".join(f"{roles[role]} {role}" for role in common) + (", ..." if len(roles) > 3 else "")
