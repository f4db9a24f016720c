"""The evaluation of an attempt: each kind of evaluation in a task file becomes a function beforehand.

Three outcomes are distinct. Anything that the agent did or did not do, a missing answer included, gives a Score. A page that cannot be
opened is an EnvironmentFailure, a judge that does not answer a ModelError: neither is a score.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from exact.benchmarks.webarena import locate, pictures, text
from exact.benchmarks.webarena.format import OR, Answers, Contents, Dialect, ImageQuery, Target, TaskFile, at
from exact.benchmarks.webarena.judges import ROLE, VISION, Judges
from exact.benchmarks.webarena.locate import answered, check, found, looking_at
from exact.benchmarks.webarena.variables import LAST_URL, PAGE, Addresses, Helper, HelperCall, Result, parse
from exact.errors import InfrastructureError, UsageError
from exact.prompts.fence import one_line
from exact.task import Outcome, Score

if TYPE_CHECKING:
    from playwright.async_api import Page


class EvaluatorContext(NamedTuple):
    """Dependencies of evaluators besides the task file."""

    dialect: Dialect
    addresses: Addresses
    judges: Judges
    helpers: Mapping[str, Helper]
    quiet: float = 3.0
    """Seconds for which a page opened for an evaluation may continue loading; 0: it is complete once loaded."""
    split: text.Split = text.tokens
    """Function that returns the tokens of a text."""


NO_ANSWER = "no final answer was given"
Check = Callable[["Page", Outcome], Awaitable[str]]
"""Function that returns the reason that an attempt falls short; empty if it does not."""


def evaluators(task: TaskFile, setting: EvaluatorContext, where: str = "task file") -> tuple[Check, ...]:
    """Return one evaluator for each kind that the task names. Raises UsageError that names file, task and field."""
    with at(f"{where}: task {task.task_id}"):
        return tuple(_MAKERS[kind](task, setting) for kind in task.eval.eval_types)


def roles(task: TaskFile) -> tuple[str, ...]:
    """Return the roles of the models that a task's evaluation may ask."""
    named, kinds = task.eval, set(task.eval.eval_types)
    answers = named.reference_answers if "string_match" in kinds else None
    looks = named.program_html or () if "program_html" in kinds else ()
    asks = (answers is not None and answers.fuzzy_match is not None) or any(each.required_contents.fuzzy_match for each in looks)
    sees = "page_image_query" in kinds and any(query.eval_vqa for query in named.page_image_query or ())
    return (ROLE,) * asks + (VISION,) * sees


async def evaluate(checks: tuple[Check, ...], page: Page, outcome: Outcome) -> Score:
    """Return 1 if all checks hold, else 0 with the first reason. Raises EnvironmentFailure, ModelError."""
    for each in checks:
        if reason := await each(page, outcome):
            return Score(value=0.0, success=False, reason=reason, unanswered=reason == NO_ANSWER)
    return Score(value=1.0, success=True)


def _string_match(task: TaskFile, setting: EvaluatorContext) -> Check:
    wanted = task.eval.reference_answers
    assert wanted is not None
    _check_comparisons(wanted.required_values, "eval.reference_answers")

    async def check(page: Page, outcome: Outcome) -> str:
        if outcome.answer is None:
            return NO_ANSWER
        if reason := _literal(wanted, outcome.answer, setting.dialect, setting.split):
            return f"the answer {one_line(outcome.answer)!r} {reason}"
        return await _by_meaning(task, wanted, outcome, setting)

    return check


def _literal(wanted: Answers, answer: str, dialect: Dialect, split: text.Split = text.tokens) -> str:
    """Return the references without a judge that an answer misses. `split` gives the tokens of a text.

    The answer is cleaned before all comparisons, and each comparison cleans it again, as the published evaluators do.
    """
    given, answer = answer, text.cleaned(answer, dialect)
    alone = len(wanted.must_include or ()) == 1
    if wanted.exact_match is not None and not text.equal(wanted.exact_match, answer, dialect):
        return f"is not {wanted.exact_match!r}"
    for each in wanted.must_include or ():
        if not text.any_included(each, answer, dialect, alone=alone, split=split):
            return f"lacks {each!r}"
    for each in wanted.must_exclude or ():
        if text.any_included(each, answer, dialect, split=split):
            return f"holds {each!r}"
    if wanted.one_of is not None and not text.one_of(wanted.one_of, given, dialect):
        return f"holds none of {list(wanted.one_of)}"
    return _values(wanted.required_values, answer)


async def _by_meaning(task: TaskFile, wanted: Answers, outcome: Outcome, setting: EvaluatorContext) -> str:
    """Return the references that a judge finds missing in an answer, which is cleaned as for `_literal`.

    Raises InfrastructureError if a secret stands in the answer: no model reads it, and without it the answer is another one.
    """
    references, answer = wanted.fuzzy_match, outcome.answer or ""
    if references is None:
        return ""
    cleaned = text.cleaned(answer, setting.dialect)
    if references == "N/A" and text.equal("N/A", cleaned, setting.dialect):
        return ""
    if outcome.revealed:
        raise InfrastructureError(
            f"the answer holds {', '.join(outcome.revealed)}, which no model that judges may read: it is not scored; "
            "give a reference that needs no model"
        ).final()
    if references == "N/A":
        opinion = await setting.judges.explains(cleaned, task.eval.string_note, task.goal)
        return "" if opinion.holds else f"the reason {one_line(answer)!r} is not the actual one (judge: {opinion.said})"
    for each in (references,) if isinstance(references, str) else references:
        opinion = await setting.judges.means(cleaned, each, task.goal)
        if not opinion.holds:
            return f"the answer {one_line(answer)!r} does not mean {each!r} (judge: {opinion.said})"
    return ""


def _url_match(task: TaskFile, setting: EvaluatorContext) -> Check:
    wanted = _filled(task.eval.reference_url or "", setting, "eval.reference_url")
    rule = task.eval.url_note or locate.DEFAULT[setting.dialect]

    async def check(page: Page, outcome: Outcome) -> str:
        await answered(page, setting.addresses)
        return "" if locate.matches(wanted, page.url, rule, setting.dialect) else f"it ended at {page.url}, not at {wanted} ({rule})"

    return check


def _program_html(task: TaskFile, setting: EvaluatorContext) -> Check:
    targets = enumerate(task.eval.program_html or ())
    looks = tuple(_look(target, task, setting, f"eval.program_html[{number}]") for number, target in targets)

    async def check(page: Page, outcome: Outcome) -> str:
        for look in looks:
            if reason := await look(page, outcome):
                return reason
        return ""

    return check


def _look(target: Target, task: TaskFile, setting: EvaluatorContext, field: str) -> Check:
    """Return the check of one target on a page."""
    address_of = _address(target.url, setting, f"{field}.url")
    locate = _locator(target, setting, f"{field}.locator")
    _check_comparisons(target.required_contents.required_values, f"{field}.required_contents")

    async def check(page: Page, outcome: Outcome) -> str:
        url = await address_of(page)
        async with looking_at(page, url, setting.addresses, setting.quiet) as other:
            seen, place = await locate(other), other.url
        if seen is None:
            return f"{place} has nothing at {target.locator[:120]}"
        reason = await _contents(target.required_contents, seen, task, setting)
        return reason and f"{place} at {target.locator[:120] or 'its source'}: {reason}"

    return check


def _address(url: str, setting: EvaluatorContext, field: str) -> Callable[[Page], Awaitable[str]]:
    """Return a function that gives the page to open: `last`, an locate, or the result of a call."""
    if url.startswith("func:"):
        call = _call(_filled(url.replace(LAST_URL, "%LAST%"), setting, field).replace("%LAST%", LAST_URL), setting, field)

        async def called(page: Page) -> str:
            return str(await _called(call, page, setting))

        return called
    literal = url if url == "last" else _filled(url, setting, field)

    async def same(page: Page) -> str:
        return literal

    return same


def _locator(target: Target, setting: EvaluatorContext, field: str) -> Callable[[Page], Awaitable[Result | None]]:
    if target.locator.startswith("func:"):
        call = _call(target.locator, setting, field)

        async def called(page: Page) -> Result | None:
            return await _called(call, page, setting)

        return called
    with at(f"`{field}`"):
        check(target.locator)
    script = _filled(target.locator, setting, field)

    async def located(page: Page) -> Result | None:
        return await found(page, script, target.prep_actions)

    return located


def _call(said: str, setting: EvaluatorContext, field: str) -> HelperCall:
    """Return a call. Raises UsageError if it is not a call, or the helper takes other arguments."""
    with at(f"`{field}`"):
        call = parse(said, setting.helpers)
        try:
            inspect.signature(setting.helpers[call.name]).bind(*call.arguments)
        except TypeError as error:
            raise UsageError(f"func: {call.name} takes other arguments: {error}") from error
    return call


def _filled(text: str, setting: EvaluatorContext, field: str) -> str:
    """Return the text with addresses for the names of sites. Raises UsageError that names the field."""
    with at(f"`{field}`"):
        return setting.addresses.fill(text)


async def _called(call: HelperCall, page: Page, setting: EvaluatorContext) -> Result:
    arguments = [
        page if each is PAGE or each == PAGE else each.replace(LAST_URL, page.url) if isinstance(each, str) else each
        for each in call.arguments
    ]
    try:
        return await setting.helpers[call.name](*arguments)
    except TypeError as error:
        raise UsageError(f"func: {call.name} takes other arguments: {error}") from error


async def _contents(wanted: Contents, seen: Result, task: TaskFile, setting: EvaluatorContext) -> str:
    """Return the required texts that a part of a page lacks."""
    import html

    dialect = setting.dialect
    said = seen if isinstance(seen, str) else text.written(seen)
    said = html.unescape(said) if dialect == "webarena" else said
    if wanted.exact_match is not None and not text.equal(wanted.exact_match, said, dialect):
        return f"it is {one_line(said, 80)!r}, not {wanted.exact_match!r}"
    for each in wanted.must_include or ():
        if not text.any_included(each, said, dialect, split=setting.split):
            return f"it lacks {each!r}"
    for each in wanted.must_exclude or ():
        if text.any_included(each, said, dialect, split=setting.split):
            return f"it holds {each!r}"
    if reason := _values(wanted.required_values, said):
        return f"it {reason}"
    return await _meaning(wanted.fuzzy_match, said, task, setting)


async def _meaning(wanted: str | None, said: str, task: TaskFile, setting: EvaluatorContext) -> str:
    if wanted is None:
        return ""
    for each in wanted.split(OR):
        if (await setting.judges.means(said, each, task.goal)).holds:
            return ""
    return f"{one_line(said, 80)!r} does not mean {wanted!r}, says the judge"


def _page_image_query(task: TaskFile, setting: EvaluatorContext) -> Check:
    queries = enumerate(task.eval.page_image_query or ())
    looks = tuple(_picture_look(query, setting, f"eval.page_image_query[{number}]") for number, query in queries)

    async def check(page: Page, outcome: Outcome) -> str:
        for look in looks:
            if reason := await look(page, outcome):
                return reason
        return ""

    return check


def _picture_look(query: ImageQuery, setting: EvaluatorContext, field: str) -> Check:
    """Return the check of the pictures of a page."""
    address_of = _address(query.eval_image_url, setting, f"{field}.eval_image_url")
    with at(f"`{field}.eval_image_class`"):
        pictures.check(query.eval_image_class)
    if not query.eval_vqa and not query.eval_fuzzy_image_match:
        raise UsageError(f"`{field}`: it asks nothing: give eval_vqa or eval_fuzzy_image_match")
    like = _filled(query.eval_fuzzy_image_match, setting, f"{field}.eval_fuzzy_image_match")
    references = tuple(like.split(OR)) if like else ()

    async def check(page: Page, outcome: Outcome) -> str:
        async with looking_at(page, await address_of(page), setting.addresses, setting.quiet) as other:
            shown, place = await pictures.on_page(other, query.eval_image_class), other.url
        if not shown:
            return f"{place} shows no picture at {query.eval_image_class or 'any place'}"
        for qa in query.eval_vqa:
            said = [await setting.judges.sees(pictures.png(each), qa.question) for each in shown]
            if not any(qa.answer.lower() in each.lower() for each in said):
                return f"no picture of {place} answers {qa.question!r} with {qa.answer!r}: {one_line('; '.join(said))}"
        known = [await pictures.reference(each) for each in references]
        if known and pictures.alike(shown, known, query.ssim_threshold) is None:
            return f"no picture of {place} is like {query.eval_fuzzy_image_match[:120]}"
        return ""

    return check


def _values(comparisons: tuple[str, ...] | None, said: str) -> str:
    if not comparisons:
        return ""
    value = text.number(said)
    if value is None:
        return f"{one_line(said, 80)!r} is no number"
    missed = [each for each in comparisons if not text.fulfils(value, each)]
    return f"{text.written(value)} is not {missed[0]}" if missed else ""


def _check_comparisons(comparisons: tuple[str, ...] | None, field: str) -> None:
    """Raise UsageError for an invalid comparison. `field`: the field that holds the required_values."""
    for number, each in enumerate(comparisons or ()):
        with at(f"`{field}.required_values[{number}]`"):
            text.fulfils(0.0, each)


_MAKERS: Mapping[str, Callable[[TaskFile, EvaluatorContext], Check]] = {
    "string_match": _string_match,
    "url_match": _url_match,
    "program_html": _program_html,
    "page_image_query": _page_image_query,
}
