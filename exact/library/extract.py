"""Reading without acting: what the pages of a site tell, as an object of a type.

An attempt turns the pages by rules: it scrolls to the end and follows the link to the next page. The model is asked only what each page
tells, and its objects are joined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.agents.answer import Answerer, ObjectAnswer, misfit
from exact.agents.value.controls import ConstantValue
from exact.config import Config, ViewConfig
from exact.context import Context, Proposal
from exact.environments.base import PersonQuestion
from exact.errors import AnswerError, BudgetExceeded, UsageError
from exact.library.solve import Assignment, Build, Solution
from exact.models import tokens as counting
from exact.models.base import ChatModel
from exact.observation import Element, Observation
from exact.views.view import CHARACTERS

T = TypeVar("T")

_MOST_PAGES = 20
"""Pages that are read unless told otherwise, if the schema has a list."""
_MOST_SCROLLS = 200
"""Times that a page is scrolled before its next page is looked for."""
_LACKS_MODEL = "extract asks a model what pages tell: give model, or a configuration with models.policy"
_ID = re.compile(r"^\s*\[[\w:.-]+\]\s*")
_NEXT = re.compile(
    r"""[\W_]*(?:
        (?:next|older)(?:\s+(?:page|results?|posts?|entries))? | (?:load|show|see|view)\s+more(?:\s+\w+)?
        | more\s+(?:results?|posts?|entries) | (?:nächste|folgende)(?:\s+seite)? | weiter | mehr\s+(?:laden|anzeigen)
        | (?:page\s+)?suivante? | (?:página\s+)?(?:siguiente|seguinte) | próxim[ao](?:\s+página)? | (?:pagina\s+)?successiva | avanti
        | volgende(?:\s+pagina)? | następna(?:\s+strona)? | далее | следующая(?:\s+страница)? | 次(?:へ|のページ)? | 下一[页頁] | 다음
    )[\W_]*|[›»→>]+""",
    re.I | re.X,
)
"""Matches the whole name of a link to the next page."""
_MORE = re.compile(r"more|mehr|older", re.I)
_OF = re.compile(r"\d\s*(?:of|von|de|sur|di|van|z|из|/)\s*\d")
"""Matches a number of pages or of entries: `page 2 of 9`."""
_LEADS = frozenset(["link", "button"])
_OUTSIDE = " (outside the view)"
_CHANGED = 2
"""Lines that may have changed in a state that has grown, such as that of the button which made it grow."""


_LEAST_TOKENS, _TIMES = 256, 4
"""New tokens that the object of a part may take: so many, and so many for each token of the part. Small models may write without end."""


class PageTurner:
    """A policy that reads on: it scrolls while that brings something, follows the link to the next page, and stops at the last."""

    def __init__(self, pages: int) -> None:
        """`pages`: pages to read at most, at least 1."""
        self._pages = pages

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> Sequence[Proposal]:
        """Return the one action that reads on."""
        refused = {taken.action.key for taken in context.tried}
        for name, *args in self._ways(context):
            action = actions.action(name, *args)
            if action.key not in refused:
                return (Proposal(action=action, prior=1.0, rationale="read on"),)
        return (Proposal(action=actions.action("stop", ""), prior=1.0, rationale="the last page has been read"),)

    def _ways(self, context: Context) -> Iterator[tuple[str, ...]]:
        turned = [at for at, taken in enumerate(context.history) if taken.action.name == "click"]
        scrolled = len(context.history) - (turned[-1] + 1 if turned else 0)
        if scrolled < _MOST_SCROLLS:
            yield "scroll", "down"
        seen = [taken.observation.fingerprint for taken in context.history[: turned[-1] + 1]] if turned else []
        if len(turned) + 1 >= self._pages or context.observation.fingerprint in seen:
            return
        if found := next_page(context.observation):
            yield "click", found.id


def next_page(observation: Observation) -> Element | None:
    """Return the link or button that leads to the next page by its name or number; None if there is none.

    Of several that have such a name the last is taken, since the controls that turn pages stand below what they turn. A button that is
    called `Next` may turn a picture: it is taken only if the page tells a number of pages. Numbers are read only in a row of them:
    `1 2 3`, of which the present one is no link or is marked as current.
    """
    usable = [each for each in observation.elements if each.role in _LEADS and "disabled" not in each.states]
    named = [each for each in usable if _NEXT.fullmatch(each.name.strip())]
    row = [each for each in observation.elements if each.name.strip().isdecimal() and each.role in (*_LEADS, "StaticText")]
    pairs = [(one, two) for one, two in pairwise(row) if int(two.name) == int(one.name) + 1 and two.role in _LEADS]
    if len(pairs) < 2 and not _OF.search(" ".join(each.name for each in observation.elements if each.role not in _LEADS)):
        named = [each for each in named if each.role == "link" or _MORE.search(each.name)]
    if named:
        return named[-1]
    for one, two in pairs:
        if two in usable and (one.role == "StaticText" or any(state.startswith("current") for state in one.states)):
            return two
    return None


class PagesAnswerer(Answerer):
    """Asks a model what each page of an attempt tells, and joins the objects."""

    async def answer(self, context: Context, schema: str, said: str) -> ObjectAnswer:
        """Return the joined object of the pages. Lists are joined, and of other values the first that is there is taken.

        A part that the model gives no object for is left out, and the answer says so. Raises ModelError.
        """
        found: dict[str, Any] = {}
        one_page, reason = _of_a_page(schema), ""
        asked_for = msgspec.structs.replace(context.task, answer="")
        bare = msgspec.structs.replace(context, task=asked_for, history=(), terminated=False)
        for part in self._parts(context):
            asked = msgspec.structs.replace(bare, observation=part)
            try:
                most = _LEAST_TOKENS + _TIMES * counting.count(part.text, model=self._model.name)
                told = await self._object("extract", asked, one_page, _Doubt(one_page).fault, most=most)
            except AnswerError as error:
                reason = reason or f"a part of {part.url} could not be read: {error}"
            except BudgetExceeded as error:
                reason = f"not all that was seen has been read: {error}"
                break
            else:
                found = joined(found, told)
        return ObjectAnswer(found, reason or misfit(schema, found) or self._check(found))

    def _parts(self, context: Context) -> Iterator[Observation]:
        """Yield what each state tells that the one before it did not, in pieces that fit into the view."""
        before = list[str]()
        for each in (*(taken.observation for taken in context.history), context.observation):
            lines = [line.removesuffix(_OUTSIDE) for line in each.text.split("\n")]
            told = [_ID.sub("", line) for line in lines]
            new = added(before, told)
            before = told
            for piece in _pieces(lines[new], self._view, self._model.name):
                yield msgspec.structs.replace(each, text="\n".join(piece), elements=(), html="", screenshot=None)


def added(before: Sequence[str], now: Sequence[str]) -> slice:
    """Return which lines of a state are new: those that were put into the state before, or that come after what was there; else all.

    >>> added(["top", "a", "b", "end"], ["top", "a", "b", "c", "end"]), added(["a", "b"], ["b", "c"]), added(["a"], ["x"])
    (slice(3, 4, None), slice(1, 2, None), slice(0, 1, None))
    """
    most = min(len(before), len(now))
    start = next((at for at in range(most) if before[at] != now[at]), most)
    end = next((at for at in range(most - start) if before[-1 - at] != now[-1 - at]), most - start)
    if before and start + end >= len(before) - _CHANGED:
        return slice(start, len(now) - end)
    old, new = before[start : len(before) - end], now[start : len(now) - end]
    kept = next((count for count in range(min(len(old), len(new)), 0, -1) if old[-count:] == new[:count]), 0)
    return slice(start + kept, len(now) - end) if kept else slice(0, len(now))


def _pieces(lines: Sequence[str], view: ViewConfig, model: str) -> Iterator[list[str]]:
    piece, tokens, characters = list[str](), 0, 0
    for line in lines:
        more = counting.count(line, model=model) + 1
        if piece and (tokens + more > view.observation_tokens or characters + len(line) >= CHARACTERS):
            yield piece
            piece, tokens, characters = [], 0, 0
        piece.append(line)
        tokens, characters = tokens + more, characters + len(line) + 1
    if piece:
        yield piece


def joined(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two objects as one: lists one after the other, and of other values the first that is not null."""
    found = dict(one)
    for name, value in other.items():
        has = found.get(name)
        if isinstance(has, list) and isinstance(value, list):
            found[name] = [*has, *value]
        elif isinstance(has, dict) and isinstance(value, dict):
            found[name] = joined(has, value)
        elif has is None:
            found[name] = value
    return found


_NOTHING: tuple[object, ...] = (None, "", [], {})
"""Values of properties that tell nothing. 0 and false do tell something."""


class _Doubt:
    """Doubts of a page's object that fits: small models repeat the schema, or say that a page tells nothing."""

    def __init__(self, schema: str) -> None:
        self._names = list(json.loads(schema).get("properties", ()))
        self._doubted = False

    def fault(self, found: Mapping[str, Any]) -> str:
        """Return the fault of an object without a property of the schema, and once of one in which all are empty; empty for others."""
        given = [found[name] for name in self._names if name in found]
        if self._names and not given:
            return f"it has none of the properties {', '.join(self._names)}: write an object with them"
        if self._doubted or any(each not in _NOTHING for each in given) or not self._names:
            return ""
        self._doubted = True
        return "nothing stands in it: look at the page again, and write the same if it tells nothing"


def _of_a_page(schema: str) -> str:
    """Return the schema of what one page tells: each property of the object may be missing, and no list has a least length."""
    one: dict[str, Any] = deepcopy(json.loads(schema))
    one.pop("required", None)
    for each in one.get("properties", {}).values():
        if isinstance(each, dict):
            each.pop("minItems", None)
    return json.dumps(one, ensure_ascii=False)


def _has_list(schema: str) -> bool:
    return any(isinstance(each, dict) and each.get("type") == "array" for each in json.loads(schema).get("properties", {}).values())


@dataclass(frozen=True, kw_only=True)
class _Reading(Assignment):
    """The arguments of an attempt that turns pages and asks a model what they tell."""

    pages: int | None = None

    def _agent(self) -> tuple[Config, Build | None]:
        if not self.model and self.agent is None:
            raise UsageError(_LACKS_MODEL)
        chosen, _ = super()._agent()
        if chosen.models.policy is None:
            raise UsageError(_LACKS_MODEL)
        pages = self.pages or (_MOST_PAGES if _has_list(self.named.answer) else 1)
        turns = pages * (_MOST_SCROLLS + 2)
        limits = msgspec.structs.replace(
            chosen.limits, actions=turns, transitions=turns, calls=60 + 50 * pages, tokens=400_000 + 100_000 * pages
        )
        return msgspec.structs.replace(chosen, limits=limits), _built(pages)


def _built(pages: int) -> Build:
    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        from exact.models.open import model_for
        from exact.models.openai import sampling

        answerer = PagesAnswerer(models("policy"), config.view, sampling=sampling(model_for(config.models, "policy")))
        return Agent(policy=PageTurner(pages), value=ConstantValue(), answerer=answerer)

    return build


async def _refuse(action: str, request: PersonQuestion) -> bool:
    return False


@overload
async def extract(
    answer: type[T], goal: str, *, url: str, model: str = "", pages: int | None = None, money: float | None = None,
    config: Config | None = None, out: Path | str | None = None,
) -> Solution[T]: ...  # fmt: skip
@overload
async def extract(
    answer: Mapping[str, Any], goal: str, *, url: str, model: str = "", pages: int | None = None, money: float | None = None,
    config: Config | None = None, out: Path | str | None = None,
) -> Solution[dict[str, Any]]: ...  # fmt: skip
async def extract(
    answer: type[Any] | Mapping[str, Any],
    goal: str,
    *,
    url: str,
    model: str = "",
    pages: int | None = None,
    money: float | None = None,
    config: Config | None = None,
    out: Path | str | None = None,
) -> Solution[Any]:
    """Read what pages tell, without acting on them, and return it as an object: `solution.data`.

        solution = await exact.extract(Prices, "the prices of all shoes", url="https://shop.example/shoes", model="gpt-4o")

    A page is scrolled to its end, and the link to the next page is followed. No request that writes is sent.

    Args:
        answer: Type of the object, or its JSON schema, as for `solve`. A list at its root gets the entries of all pages.
        goal: What is looked for, in words.
        url: Web address of the first page. Pages of other origins are not opened.
        model: As for `solve`.
        pages: Pages to read at most, at least 1. None: 20 if there is a list at the root of the object, and 1 otherwise.
        money: Cap in US dollars on the model calls. None: 1, if the price is known. A reading that it ends is marked `result.partial`.
        config: Configuration with the model and the browser, in place of `model`.
        out: Run folder to write, with journal and report. None: nothing is kept.

    Raises UsageError if an argument cannot be used, and what `solve` raises.
    """
    if pages is not None and pages < 1:
        raise UsageError(f"pages is {pages}: give at least 1")
    reading = _Reading(task=goal, answer=answer, url=url, model=model, agent=config, money=money, pages=pages)
    return await reading.attempt(None, _refuse, out)
