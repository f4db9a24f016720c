"""Read what instruct models answer in each role, in states whose right and wrong next steps are known.

States are of 20 tasks of MiniWoB++, 10 of Trac and 10 of Wagtail. A next step is right if the score is 1 after the steps of the built-in
policy, or on a site after the rest of a known way, else wrong. Half of the tasks of each, by the digests of their names, are for
development; the others are for the test. Each model is asked with the prompts of release 0.1 and with those of now.

    python bench/roles.py --states SUITE ...            find the states of some suites anew (browser, minutes)
    python bench/roles.py --record MODEL --half HALF    ask a model of .bench/instruct what is not recorded (hours; goes on if stopped)
    python bench/roles.py                               read the recorded answers with the parser of now; `--quick` does the same
    python bench/roles.py --record MODEL --half development --prompts now --role llm llm_changes debate debate_changes
                                                        compare both views of a judge on the same states (`value.changes`)
    python bench/roles.py --prompts v0.2 now            compare marks of fences with those of release 0.2
    python bench/roles.py --again 20 --seed 1           ask 20 of the recorded questions again

  parse_first_*   least share of a role's questions, without a grammar, whose first answer could be read
  right_first_*   share of states whose first proposal is a right step, in times of that with the prompts of release 0.1
  auc_best_*      AUC of the judge that was the best one on the development half
  repair_keeps    share of second answers that name an element, a grade or a choice of the first, which could not be read
  before_page     most tokens of a prompt before its first page
  wrong_verbs     proposals to write into what is no field, or to choose from what is no list
  forged_taken    answers of a page's own that were taken, in the forms that are read
  read_right      share of the labelled answers (fixtures of tests/agents/test_answers.py) that are read as a person reads them
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import _common
import _llamacpp
from _instruct import FOLDER
from _records import differing
from _role_records import (
    FREE,
    JUDGES,
    POLICIES,
    RECORDS,
    ROLES,
    Asked,
    Came,
    Prompts,
    above,
    answered,
    by_question,
    first_right,
    keep,
    kept_when_repaired,
    read_all,
    records,
    replayed,
    row,
)
from _role_states import SITES, Half, State, make, recorded, spread

from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.evaluation.statistics import Estimate, bootstrap

RESULT = _common.ROOT / "bench" / "results" / "roles.json"
PROMPTS: tuple[Prompts, ...] = ("v0.1", "now")
"""Prompts that a model can be asked with. Those of release 0.2 were asked by its code."""
READ = {"1.5b": 0.98, "0.5b": 0.9}
"""Goals of `parse_first`."""
NO_FIELDS = frozenset(("button", "link", "checkbox", "radio", "tab", "heading", "img"))
NO_LISTS = NO_FIELDS | {"textbox", "searchbox"}
Found = Mapping[tuple[Prompts, str], Sequence[Came]]


def record(name: str, roles: Sequence[str], half: Half, prompts: Sequence[Prompts], count: int, threads: int, minutes: float) -> None:
    """Ask a model in each role what is not recorded yet, for so many minutes.

    Of each task the first state is asked about before the second one. One role after another is asked about these states, and one question
    at a time: a server on two cores answers several no faster, and one slot keeps the beginnings that prompts share.
    """
    ends, done, states = time.monotonic() + 60 * minutes, set(by_question(records())), recorded()
    chosen = [[each for each in some if each[1].half == half] for some in spread(states)]
    left = count
    with _llamacpp.serving(slots=1, context=4096, threads=threads, weights=FOLDER / f"{name}.gguf") as server:
        for some in chosen:
            some, left = some[:left], left - len(some[:left])
            asked = [
                Asked(prompts=used, model=name, role=role, state=index, part="") for used in prompts for role in roles for index, _ in some
            ]
            asyncio.run(ask_about(states, [about for about in asked if about.of not in done], server.base_url, ends))


async def ask_about(states: Sequence[State], asked: Sequence[Asked], base_url: str, ends: float) -> None:
    """Ask questions in order, and keep the answers of each. None is asked after `ends`, by the monotonic clock."""
    for about in asked:
        if time.monotonic() < ends:
            keep(await answered(about, states[about.state], base_url))
            print(f"{about.model}, {about.role}, state {about.state}", file=sys.stderr, flush=True)


def again(count: int, seed: int, threads: int) -> list[_common.Figure]:
    """Ask random recorded questions again. Return the share whose first proposal, or order of two values, is the same."""
    states, found = recorded(), by_question(records())
    chosen = random.Random(seed).sample(sorted(key for key in found if key[2] in (*POLICIES, *JUDGES) and key[0] == "now"), count)
    same = 0
    for model in sorted({key[1] for key in chosen}):
        with _llamacpp.serving(slots=1, context=4096, threads=threads, weights=FOLDER / f"{model}.gguf") as server:
            for key in (each for each in chosen if each[1] == model):
                fresh = asyncio.run(answered(found[key][0], states[key[3]], server.base_url))
                one, other = (asyncio.run(replayed(each, states[key[3]])) for each in (found[key], fresh))
                same += said(one) == said(other)
    return [_common.Figure("agrees_again", same / count)]


def said(came: Came) -> object:
    return came.actions[:1] if came.role in POLICIES else [one > other for one, other in (came.values,) if came.values]


def of_half(came: Sequence[Came], half: Half, states: Sequence[State]) -> list[Came]:
    return [each for each in came if states[each.state].half == half]


def show(found: Found, half: Half, states: Sequence[State], prompts: Sequence[Prompts]) -> None:
    """Print a row for each model and role: its columns with each of the prompts."""
    rows = list[list[str]]()
    for model in sorted({model for _, model in found}):
        for role in ROLES:
            kept = [[each for each in of_half(found.get((used, model), ()), half, states) if each.role == role] for used in prompts]
            if not any(kept):
                continue
            both = set.intersection(*({each.state for each in came} for came in kept)) if all(kept) else None
            cells = list[str]()
            for came in kept:
                told = row([each for each in came if both is None or each.state in both], states)
                shares = (told.parsed_first, told.right, told.auc, told.within)
                shown = ["" if each is None else f"{each:.2f}" for each in shares]
                cells += [*shown, " / ".join(f"{each:.0f}" for each in told.tokens)] if came else [""] * 5
            rows.append([f"{model}, {role}", str(len(both if both is not None else max(kept, key=len))), *cells])
    _common.table(["model and role", "states", *(["read at first", "right", "AUC", "in a state", "tokens"] * len(prompts))], rows)


def figures_of(found: Found, states: Sequence[State]) -> list[_common.Figure]:
    """Return the figures of the test half."""
    figures = list[_common.Figure]()
    test = {key: of_half(came, "test", states) for key, came in found.items()}
    for (used, model), came in sorted(test.items()):
        if used != "now" or not came:
            continue
        size = model.rpartition("-")[2]
        short = size.replace(".", "_")
        shares = [row(some, states).parsed_first for role in FREE if (some := [each for each in came if each.role == role])]
        figures.append(_common.Figure(f"parse_first_{short}", min(shares), goal=READ[size]))
        if (before := test.get(("v0.1", model))) and (ratio := right_ratio(came, before, states)) is not None:
            figures.append(_common.Figure(f"right_first_{short}", ratio, goal=1.5))
        if judge := best_judge(of_half(found[used, model], "development", states)):
            area = auc_of([each for each in came if each.role == judge], states)
            figures += [_common.Figure(f"auc_best_{short}", area.mean, goal=0.7), _common.Figure(f"auc_best_{short}_low", area.low)]
    now = [each for (used, _), came in test.items() if used == "now" for each in came]
    repaired = kept_when_repaired(now)
    if repaired:
        figures.append(_common.Figure("repair_keeps", sum(repaired) / len(repaired), goal=0.95))
    wrong = sum(misfits(key, states[each.state]) for each in now for key in each.actions)
    longest = max((each.before_page for each in now), default=0)
    return [
        *figures,
        _common.Figure("wrong_verbs", wrong, goal=0, at_least=False),
        _common.Figure("before_page", longest, goal=700, at_least=False),
    ]


def right_ratio(now: Sequence[Came], before: Sequence[Came], states: Sequence[State]) -> float | None:
    """Return the share of right first proposals in times of that before, over the roles and states that both have."""
    rights = [{(each.role, each.state): first_right(each, states) for each in came if each.role in POLICIES} for came in (now, before)]
    both = rights[0].keys() & rights[1].keys()
    right, base = (sum(kept[key] for key in both) for kept in rights)
    return right / base if base else None


def best_judge(came: Sequence[Came]) -> str:
    """Return the judge of the highest AUC; empty if none was asked."""
    areas = {role: above([each.values for each in came if each.role == role and each.values]) for role in JUDGES}
    known = {role: area for role, area in areas.items() if not math.isnan(area)}
    return max(known, key=known.__getitem__) if known else ""


def auc_of(came: Sequence[Came], states: Sequence[State]) -> Estimate:
    """Return the AUC over all pairs of a right and a wrong step, with an interval bootstrapped over tasks."""
    won: dict[str, list[float]] = {}
    wrongs = [each.values[1] for each in came if each.values]
    for each in came:
        if each.values:
            task = states[each.state].context.task.id.partition("?")[0]
            won.setdefault(task, []).append(sum(above([(each.values[0], other)]) for other in wrongs) / len(wrongs))
    return bootstrap(won)


def misfits(key: str, state: State) -> bool:
    """Return whether an action writes into what is no field, or chooses from what is no list."""
    action = BROWSER_ACTIONS.parse(key)
    refused = {"fill": NO_FIELDS, "select": NO_LISTS}.get(action.name, frozenset())
    elements = [state.context.observation.element(id) for id in action.elements]
    return any(each is not None and each.role in refused for each in elements)


async def fixtures() -> list[_common.Figure]:
    """Read the labelled answers, and the forms that a page forges, with the parser of now."""
    sys.path.insert(0, str(_common.ROOT))
    from exact.agents.parse import parse_preference
    from tests.agents import test_forged_forms as forged
    from tests.agents.test_answers import ANSWERS as LABELLED
    from tests.agents.test_answers import agrees
    from tests.agents.test_answers import read as read_as_agents
    from tests.agents.test_forged import WAYS

    labelled = [(each, await read_as_agents(each)) for each in LABELLED]
    rows = list[list[str]]()
    for model, kind in sorted({(each["model"], each["kind"]) for each, _ in labelled}):
        some = [(each, told) for each, told in labelled if (each["model"], each["kind"]) == (model, kind)]
        read, right = (sum(1 for each, told in some if wanted(each, told)) for wanted in (lambda _, told: told is not None, agrees))
        rows.append([f"{model}, {kind}", *map(str, (len(some), read, right))])
    _common.table(["model and kind of answer", "answers", "read", "read right"], rows)
    taken = 0
    forms: tuple[tuple[tuple[str, ...], str, Any, object], ...] = (
        (forged.GRADES, "Verdict: E", forged.grade, 0.0),
        (forged.PREFERENCES, "Better: second", parse_preference, 0.0),
        (forged.ACTIONS_FORGED, "click [2]", forged.action, "click [2]"),
    )
    for texts, own, parse, right_answer in forms:
        for text in texts:
            for way in WAYS:
                taken += await forged.taken(text, f"{way(text)}\n{own}", parse) not in (right_answer, None)
    right_share = sum(agrees(*each) for each in labelled) / len(labelled)
    return [_common.Figure("read_right", right_share, goal=0.99), _common.Figure("forged_taken", taken, goal=0, at_least=False)]


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--states", nargs="+", choices=("miniwob", *SITES), help="find the states of these suites anew")
    parser.add_argument("--record", metavar="MODEL", help="model of .bench/instruct to ask, such as qwen2.5-coder-0.5b")
    parser.add_argument("--role", nargs="+", choices=ROLES, default=ROLES)
    parser.add_argument("--half", choices=("development", "test"), default="development", help="states to ask about, or to print")
    parser.add_argument("--prompts", nargs="+", choices=(*PROMPTS, "v0.2"), default=PROMPTS, help="prompts to ask with, or to print")
    parser.add_argument("-n", type=int, default=100, help="most states to ask about")
    parser.add_argument("--minutes", type=float, default=600.0, help="no question is asked after so many")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", type=int, metavar="N", help="ask so many of the recorded questions again")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> int:
    options, noise = parsed(), _common.Noise()
    if options.states:
        asyncio.run(make(options.states))
        return 0
    if (options.record or options.again) and not _llamacpp.available():
        _common.lacks("llama.cpp or the instruct models are not installed: run shells/setup.sh --instruct")
    if options.record:
        if "v0.2" in options.prompts:
            _common.lacks("the prompts of release 0.2 are asked by its code alone")
        record(options.record, options.role, options.half, options.prompts, options.n, options.threads, options.minutes)
    if options.again:
        figures = again(options.again, options.seed, options.threads)
        _common.finish(options, figures, noise, _common.versions("exact-agent"), {})
        return 0
    figures = asyncio.run(fixtures())
    if RECORDS.exists():
        states = recorded()
        found = read_all(records(), states)
        for half in ("development", "test"):
            print(f"\n{half} half: prompts {', '.join(options.prompts)}")
            show(found, half, states, options.prompts)
        figures += figures_of(found, states)
    wrong = differing(figures, RESULT) if options.quick and RESULT.exists() else []
    if wrong:
        print("the records do not match: " + "; ".join(wrong))
    _common.finish(options, figures, noise, _common.versions("exact-agent"), {})
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
