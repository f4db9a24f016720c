"""Does a lesson that an instruct model wrote after a wrong step keep it from the same trap in other episodes? Recurring traps of MiniWoB++.

A trap is a state in which the model's likeliest action is a step that is known to be wrong (bench/_role_states.py). The reflector shows the
same model that step, what came of it, and what a right step gives, and keeps the lesson. In states of the same task and depth with other
seeds the model then chooses three times: without a lesson, with the lesson, and with one from a trap of another task. A reflector that
writes none leaves the choice as it is. Choices are compared state by state, and intervals are over tasks: bench/plans/roles.md.

    python bench/lessons.py --states            find the states of the other seeds anew (browser, minutes)
    python bench/lessons.py --record MODEL      ask a model of .bench/instruct what is not recorded (an hour; goes on if stopped)
    python bench/lessons.py                     compute the figures from the records; `--quick` does the same

  lesson_gain_*        share of states in which the first choice is right, with the lesson less without
  lesson_gain_low_*    lower end of its interval
  lesson_over_other_*  the same against a lesson from a trap of another task
  lessons_written_*    share of traps about which a lesson was written
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import _common
import _llamacpp
import msgspec
from _instruct import FOLDER
from _paired import Scores, gain, grouped, said
from _records import conclude, differing, read_records, write_records
from _role_records import settings, surprise
from _role_states import STATES, TASKS, State, find, recorded

from exact.agents.agent import build_agent
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.context import Reflection
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import AnswerError
from exact.evaluation.statistics import rate
from exact.models.open import Models
from exact.runs.runner import open_models

RECORDS, RESULT = (_common.ROOT / "bench" / "results" / f"lessons.{end}" for end in ("jsonl.gz", "json"))
OTHERS = STATES.with_name("lessons_states.jsonl.gz")
SEEDS = (3, 4, 5)
"""Seeds of the states that are asked about. Traps are of seeds 1 and 2."""
Arm = Literal["trap", "none", "own", "other"]


class Chosen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One choice of a model."""

    model: str
    arm: Arm
    """trap: with a seed of lessons. none, own, other: with another seed, and the lesson that is shown."""
    state: str
    """Task, seed and depth: `miniwob/click-tab?seed=3 1`."""
    actions: tuple[str, ...]
    """Keys of the likeliest actions, best first."""
    right: bool
    wrong: bool = False
    """Whether the first one is known to be wrong; it is neither right nor wrong if it was not tried."""
    lesson: Reflection | None = None
    """What was written after a trap, or shown."""
    unreadable: str = ""
    """Why no lesson could be read."""


def name_of(state: State) -> str:
    return f"{state.context.task.id} {len(state.context.history)}"


def kind_of(name: str) -> str:
    """Return task and depth of a state, by which a trap recurs."""
    return f"{name.partition('?')[0]} {name.rpartition(' ')[2]}"


def others() -> list[State]:
    return [msgspec.json.decode(line, type=State) for line in gzip.decompress(OTHERS.read_bytes()).splitlines()] if OTHERS.exists() else []


def records() -> list[Chosen]:
    return read_records(RECORDS, Chosen) if RECORDS.exists() else []


async def make() -> None:
    """Find the states with the seeds that are asked about, and keep them after each task."""
    done = {each.context.task.id.partition("?")[0] for each in others()}
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as environments:
        for name in (each for each in TASKS if f"miniwob/{each}" not in done):
            found = others()
            for seed in SEEDS:
                async with environments.open(simulation=False) as environment:
                    found += [state async for state in find(environment, name, seed)]
            OTHERS.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, found)), mtime=0))
            print(f"{name}: {len(found)} states", file=sys.stderr, flush=True)


class Asker:
    """A model that chooses and writes lessons, with what it did kept after each choice."""

    def __init__(self, model: str, agent: Any) -> None:
        self._model, self._agent = model, agent

    async def choose(self, arm: Arm, state: State, lesson: Reflection | None = None) -> None:
        """Choose once, and write a lesson if that is a trap. What is recorded is not asked again."""
        if any((each.model, each.arm, each.state) == (self._model, arm, name_of(state)) for each in records()):
            return
        context = msgspec.structs.replace(state.context, reflections=(lesson,) if lesson else ())
        proposed = await self._agent.policy.propose(context, BROWSER_ACTIONS, 4)
        known = {step.action.key: step.right for step in state.steps}
        actions = tuple(each.action.key for each in proposed)
        came = Chosen(model=self._model, arm=arm, state=name_of(state), actions=actions, right=known.get(actions[0]) is True, lesson=lesson)
        if arm == "trap" and known.get(actions[0]) is False:
            came = msgspec.structs.replace(came, wrong=True, **await self._lesson(state, actions[0]))
        write_records(RECORDS, [*records(), came])

    async def _lesson(self, state: State, taken: str) -> Mapping[str, Any]:
        wrong, right = next(step for step in state.steps if step.action.key == taken), state.first(right=True)
        seen = surprise(state, wrong, right)
        if not right.after.terminated:
            seen = msgspec.structs.replace(seen, alternative_after=right.after.observation)
        try:
            return {"lesson": await self._agent.reflector.reflect(state.context, seen, "policy")}
        except AnswerError as error:
            return {"unreadable": str(error)}


def traps(model: str) -> dict[str, Reflection | None]:
    """Return the traps of a model by task and depth, with the first lesson that was written about it."""
    found = dict[str, Reflection | None]()
    for each in records():
        if each.model == model and each.wrong:
            found[kind_of(each.state)] = found.get(kind_of(each.state)) or each.lesson
    return found


def foreign(kind: str, found: Mapping[str, Reflection | None]) -> Reflection | None:
    """Return the lesson of the next trap of another task in the order of names, the first after the last."""
    ordered = sorted(found)
    turned = ordered[ordered.index(kind) :] + ordered[: ordered.index(kind)]
    return next((found[each] for each in turned if each.partition(" ")[0] != kind.partition(" ")[0] and found[each]), None)


async def asked(model: str, base_url: str) -> None:
    """Find a model's traps, and choose in states in which they recur."""
    config = settings("policy_id", base_url)
    config = msgspec.structs.replace(config, policy=msgspec.structs.replace(config.policy, form="likeliest"))
    opened = Models(config.models, folder=_common.ROOT / ".bench")
    asker = Asker(model, build_agent(config, open_models(config, opened).__getitem__))
    try:
        for state in recorded():
            if state.context.task.id.startswith("miniwob/"):
                await asker.choose("trap", state)
        found = traps(model)
        for state in others():
            if (kind := kind_of(name_of(state))) in found:
                await asker.choose("none", state)
                shown: dict[Arm, Reflection | None] = {"own": found[kind], "other": foreign(kind, found)}
                for arm, lesson in shown.items():
                    if lesson is not None:
                        await asker.choose(arm, state, lesson)
                print(f"{name_of(state)}: {len(records())} choices", file=sys.stderr, flush=True)
    finally:
        await opened.close()


def solved(kept: Sequence[Chosen]) -> Scores:
    """Return 1 for each right choice and 0 for others, by arm and state. Without a lesson to show, an arm chooses as without it."""
    by_arm: Scores = {arm: {each.state: float(each.right) for each in kept if each.arm == arm} for arm in ("none", "own", "other")}
    return {arm: by_arm["none"] | found for arm, found in by_arm.items()}


def show(kept: Sequence[Chosen]) -> list[_common.Figure]:
    """Print a row for each model and arm, and return the figures."""
    figures, rows = list[_common.Figure](), list[list[str]]()
    for model in sorted({each.model for each in kept}):
        mine = [each for each in kept if each.model == model]
        fallen, found = [each for each in mine if each.wrong], solved(mine)
        tasks, size = sorted({each.partition("?")[0] for each in found["none"]}), model.rpartition("-")[2].replace(".", "_")
        for arm, values in found.items():
            row = [f"{model}, {arm}", str(len(values)), said(rate(grouped(values, tasks)))]
            rows.append([*row, "" if arm == "none" else said(gain(found, arm, "none", tasks))])
        own, over = gain(found, "own", "none", tasks), gain(found, "own", "other", tasks)
        figures += [
            _common.Figure(f"traps_{size}", len(fallen)),
            _common.Figure(f"lessons_written_{size}", sum(each.lesson is not None for each in fallen) / max(1, len(fallen))),
            _common.Figure(f"lesson_gain_{size}", own.mean),
            _common.Figure(f"lesson_gain_low_{size}", own.low, goal=0.001),
            _common.Figure(f"lesson_over_other_{size}", over.mean),
            _common.Figure(f"lesson_over_other_low_{size}", over.low, goal=0.001),
        ]
    _common.table(["model and lesson", "states", "first choice right", "gain"], rows)
    return figures


def main() -> int:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--states", action="store_true", help="find the states of other seeds")
    parser.add_argument("--record", metavar="MODEL", help="model of .bench/instruct to ask, such as qwen2.5-coder-1.5b")
    parser.add_argument("--threads", type=int, default=2)
    options, noise = parser.parse_args(), _common.Noise()
    if options.states:
        asyncio.run(make())
        return 0
    if options.record:
        weights = FOLDER / f"{options.record}.gguf"
        if not (_llamacpp.available() and weights.exists()):
            _common.lacks(f"llama.cpp or {weights.name} is not installed: run shells/setup.sh --instruct")
        with _llamacpp.serving(slots=4, context=6144, threads=options.threads, weights=weights) as server:
            asyncio.run(asked(options.record, server.base_url))
    figures = [_common.Figure("choices", len(records())), *show(records())]
    wrong = differing(figures, RESULT) if options.quick and RESULT.exists() else []
    _common.finish(options, figures, noise, _common.versions("exact-agent"), {})
    return conclude(wrong, len(records())) if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
