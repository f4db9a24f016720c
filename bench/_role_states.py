"""States whose right and wrong next steps are known by the score, of MiniWoB++, Trac and Wagtail, for bench/roles.py."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Literal

import _common
import msgspec
from _greedy import follow, started, stepped
from _guided import meant, references

from exact.action import Action
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.policy.prior import RandomPolicy
from exact.benchmarks import registry
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.context import Context, Taken
from exact.environments.base import Environment, Snapshot
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Outcome, Task

STATES = _common.ROOT / "bench" / "roles_states.jsonl.gz"
WORK = _common.ROOT / ".bench" / "roles_states"
"""Folder of the states of a suite that is not whole."""
TASKS = (
    *("click-button", "click-link", "click-tab", "click-tab-2", "enter-text", "enter-password", "login-user", "click-checkboxes"),
    *("choose-list", "click-collapsible", "click-dialog", "focus-text", "click-option", "click-widget", "navigate-tree"),
    *("search-engine", "click-color", "count-shape", "use-autocomplete", "email-inbox"),
)
SEEDS = (1, 2)
ACTIONS, TRIED, DEEPEST = 8, 6, 3
"""Most actions of an episode, most steps that are tried in a state, and the deepest state of an episode."""
SITES = {
    "trac": ("13", "14", "15", "16", "17", "18", "21", "23", "24", "26"),
    "wagtail": ("1", "6", "13", "14", "15", "17", "18", "19", "23", "25"),
}
"""Tasks of the sites, of which the right sequences of the tests know a way by clicks and fields."""
TRIED_ON_SITES = 4
"""Other steps that are tried in a state of a site."""
WAYS = frozenset(("click", "fill", "select"))
"""Verbs of right steps on sites. A model cannot know the addresses that the sequences go to."""
Half = Literal["development", "test"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One next step from a state, and the state that it led to."""

    action: Action
    right: bool
    after: Context


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A state with at least one right and one wrong next step."""

    context: Context
    steps: tuple[Step, ...]

    @property
    def half(self) -> Half:
        """Half that the task belongs to, by the order of the digests of the tasks' names."""
        suite, _, name = self.context.task.id.partition("?")[0].partition("/")
        ordered = sorted(SITES.get(suite, TASKS), key=lambda each: hashlib.sha256(each.encode()).hexdigest())
        return "development" if ordered.index(name) < len(ordered) // 2 else "test"

    def first(self, *, right: bool) -> Step:
        return next(step for step in self.steps if step.right == right)


def recorded() -> list[State]:
    return [msgspec.json.decode(line, type=State) for line in gzip.decompress(STATES.read_bytes()).splitlines()]


def both_kinds(steps: Sequence[Step]) -> bool:
    return {step.right for step in steps} == {True, False}


async def ending(environment: Environment, context: Context) -> float:
    """Let the built-in policy finish an episode. Return its score."""
    seen = (await follow(environment, LexicalPolicy(), context))[-1]
    actions = tuple(taken.action.key for taken in seen.history)
    return (await environment.evaluate(Outcome(actions=actions, answer=seen.answer or None))).value


async def at(environment: Environment, task: Any, steps: Sequence[Taken]) -> Context:
    """Return the context after some steps from a task's start."""
    seen = await started(environment, task, ACTIONS)
    for taken in steps:
        seen = await stepped(environment, seen, msgspec.structs.replace(taken, observation=seen.observation))
    return seen


async def find(environment: Environment, name: str, seed: int) -> AsyncIterator[State]:
    """Yield the states on the built-in policy's way through an episode that it wins."""
    task = MiniWob().task(f"miniwob/{name}?seed={seed}")
    way = await follow(environment, LexicalPolicy(), await started(environment, task, ACTIONS))
    won = (
        await environment.evaluate(Outcome(actions=tuple(each.action.key for each in way[-1].history), answer=way[-1].answer or None))
    ).value
    if won < 1.0:
        return
    for depth, seen in enumerate(way[:-1][:DEEPEST]):
        taken = way[depth + 1].history[-1]
        proposals = await LexicalPolicy().propose(seen, environment.actions, TRIED)
        proposals = (*proposals, *await RandomPolicy().propose(seen, environment.actions, TRIED // 2))
        actions = {each.key: each for each in (taken.action, *(proposal.action for proposal in proposals))}
        steps = list[Step]()
        for action in list(actions.values())[: TRIED + 1]:
            came = await at(environment, task, seen.history)
            try:
                after = await stepped(environment, came, Taken(observation=came.observation, action=action))
            except ActionError:
                continue
            steps.append(Step(action=action, right=await ending(environment, after) == 1.0, after=after))
        if both_kinds(steps):
            yield State(context=seen, steps=tuple(steps))


async def wins(environment: Environment, context: Context, rest: Sequence[Sequence[Any]]) -> bool:
    """Return whether the rest of a known way wins from a state."""
    seen = context
    for step in rest:
        if seen.terminated:
            break
        action = meant(step, seen.observation, environment.actions)
        if action is None:
            return False
        try:
            seen = await stepped(environment, seen, Taken(observation=seen.observation, action=action))
        except ActionError:
            return False
    answer = str(seen.history[-1].action.args[0]) if seen.terminated and seen.history[-1].action.args else None
    keys = tuple(taken.action.key for taken in seen.history)
    return (await environment.evaluate(Outcome(actions=keys, answer=answer))).value == 1.0


async def find_on_site(environment: Environment, task: Task, way: Sequence[Sequence[Any]]) -> AsyncIterator[State]:
    """Yield the states on a known way whose next step a model could find, and at most `DEEPEST` of them.

    Each try begins with a restore: ids of elements are those of one run of the way.
    """
    seen, found = await started(environment, task, len(way) + ACTIONS), 0
    for depth, step in enumerate(way[:-1]):
        right, here = meant(step, seen.observation, environment.actions), await environment.snapshot()
        if right is None:
            return

        async def tried(action: Action, seen: Context = seen, here: Snapshot = here) -> Context:
            await environment.restore(here)
            return await stepped(environment, seen, Taken(observation=seen.observation, action=action))

        if step[0] in WAYS and found < DEEPEST:
            proposals = await RandomPolicy().propose(seen, environment.actions, 3 * TRIED_ON_SITES)
            others = [each.action for each in proposals if each.action.name in WAYS and each.action.key != right.key]
            steps = list[Step]()
            for action in (right, *others[:TRIED_ON_SITES]):
                try:
                    after = await tried(action)
                except ActionError:
                    continue
                won = await wins(environment, after, way[depth + 1 :])
                if not won and action is not right:  # a step that only takes the place of none
                    won = await wins(environment, await tried(action), way[depth:])
                steps.append(Step(action=action, right=won, after=after))
                if action is right and not won:
                    return
            if both_kinds(steps):
                found += 1
                yield State(context=seen, steps=tuple(steps))
        seen = await tried(right)


async def of_miniwob(but: Collection[str]) -> AsyncIterator[tuple[str, list[State]]]:
    """Yield each task with its states. `but`: tasks that are left out."""
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as environments:
        for name in (each for each in TASKS if each not in but):
            found = list[State]()
            for seed in SEEDS:
                async with environments.open(simulation=False) as environment:
                    found += [state async for state in find(environment, name, seed)]
            yield name, found


async def of_site(name: str, but: Collection[str]) -> AsyncIterator[tuple[str, list[State]]]:
    """Yield each task with its states. `but`: tasks that are left out. A task whose page crashes is begun once more."""
    ways: Mapping[str, Any] = references()
    suite = registry.suite(f"{name}/1")
    async with suite.environments(BrowserConfig(screenshots=False, sandbox="required")) as environments:
        for number in (each for each in SITES[name] if each not in but):
            for last in (False, True):
                try:
                    async with environments.open(simulation=False) as environment:
                        task = suite.task(f"{name}/{number}?seed=1")
                        found = [state async for state in find_on_site(environment, task, ways[f"{name}/{number}"])]
                    break
                except EnvironmentFailure as error:
                    print(f"{name}/{number}: {error}", file=sys.stderr, flush=True)
                    if last:
                        raise
            yield number, found


async def make(only: Sequence[str]) -> None:
    """Find the states of some suites anew, beside those of the others.

    Those of a suite are kept at its end. A search for them that was stopped goes on with the next task.
    """
    for suite in only:
        (work := WORK / suite).mkdir(parents=True, exist_ok=True)
        done = {file.stem for file in work.glob("*.jsonl")}
        async for name, states in of_miniwob(done) if suite == "miniwob" else of_site(suite, done):
            (work / f"{name}.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, states)))
            print(f"{suite}/{name}: {len(states)} states", file=sys.stderr, flush=True)
        kept = [state for state in recorded() if not state.context.task.id.startswith(f"{suite}/")] if STATES.exists() else []
        for name in SITES.get(suite, TASKS):
            kept += [msgspec.json.decode(line, type=State) for line in (work / f"{name}.jsonl").read_bytes().splitlines()]
        STATES.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, kept)), mtime=0))
        shutil.rmtree(work)


def spread(states: Sequence[State]) -> list[list[tuple[int, State]]]:
    """Return the states with their indices in rounds: the first of each task, the second of each, ..."""
    seen, rounds = dict[str, int](), list[list[tuple[int, State]]]()
    for index, state in enumerate(states):
        task = state.context.task.id.partition("?")[0]
        seen[task] = seen.get(task, -1) + 1
        if seen[task] == len(rounds):
            rounds.append([])
        rounds[seen[task]].append((index, state))
    return rounds
