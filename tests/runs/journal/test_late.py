"""Side effects that an earlier action had after its step belong to that action in the state of an attempt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from exact.action import Action
from exact.environments.base import SideEffect, Transition
from exact.environments.toy.factory import ToyEnvironment, ToyFactory, chain
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from tests.runs.toys import config, toy_runner


class Saving(ToyFactory):
    """Environments in which each action but the first is preceded by a request that the action before it caused."""

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        async with super().open(simulation=simulation) as environment:
            step, taken = environment.step, list[str]()

            async def late(action: Action) -> Transition:
                transition = await step(action)
                kind = "blocked" if simulation else "request"
                effects = [SideEffect(kind=kind, method="POST", url=f"http://toy.test/{len(taken)}", late=True)] if taken else []  # type: ignore[arg-type]
                taken.append(action.key)
                return msgspec.structs.replace(transition, effects=(*effects, *transition.effects))

            environment.step = late  # type: ignore[method-assign]
            yield environment


def attempt(folder: Path) -> AttemptState:
    settings = config(search={"algorithm": "mcts", "iterations": 8, "k": 2, "workers": 1}, limits={"actions": 3})
    asyncio.run(toy_runner(folder, Saving(chain(6)), settings).run())
    (journal,) = folder.rglob("journal.jsonl")
    return fold(settings, read_journal(journal))


def test_a_late_write_is_of_the_committed_action_before(tmp_path: Path) -> None:
    state = attempt(tmp_path)
    assert len(state.live.committed) == 3
    found = [[(effect.url, effect.late) for effect in step.effects] for step in state.live.committed]
    assert found == [[("http://toy.test/1", True)], [("http://toy.test/2", True)], []]
    assert state.live.wrote


def test_a_late_write_makes_no_action_of_the_search_a_blocked_one(tmp_path: Path) -> None:
    state = attempt(tmp_path)
    assert any(acted.effects for acted in state.search.acted.values())
    assert not any(acted.wrote or any(effect.is_blocked for effect in acted.effects) for acted in state.search.acted.values())
