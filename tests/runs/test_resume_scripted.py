"""With one worker and a scripted model a resumed attempt is the same to the bit, and no call is made twice."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from exact.config import Config, parse
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze, toy_task
from exact.models.base import ChatModel
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from exact.runs import runner
from exact.runs.journal import events as ev
from exact.runs.runner import Runner, create, reopen
from tests.runs.test_resume import Killed, journal, kill_at, moves, repeated_facts, tree

CONFIG = parse(
    {
        "search": {"iterations": 8, "k": 3, "depth": 4},
        "policy": {"kind": "llm", "samples": 4},
        "value": {"kind": "llm", "samples": 2, "threshold": 1},
        "reflection": {"kind": "none"},
        "models": {"policy": {"model": "scripted"}},
        "limits": {"actions": 4},
    }
)


def answers(question: Question, sample: int) -> str:
    """Answer as a policy that names the links in turn, and a judge whose evaluation depends on the text it reads."""
    text = question.messages[-1][1]
    if "Verdict" in question.messages[0][1]:
        return f"So it looks.\nVerdict: {'ABCDE'[(len(text) + sample) % 5]}"
    links = re.findall(r'\] link "([^"]+)"', text)
    return f'One of them.\nAction: go "{links[sample % len(links)]}"'


async def run(folder: Path, model: ScriptedModel) -> list[ev.AnyEvent]:
    environment = maze()
    if not (folder / "run.json").exists():
        create(folder, (toy_task(environment),), CONFIG)
    opened, config = reopen(folder)

    def models(config: Config, opened: object) -> dict[str, ChatModel]:
        return {"policy": model, "value": model}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_models", models)
        await Runner(
            folder=opened, config=config, open_environments=lambda task: nullcontext(ToyFactory(environment, fidelity="replay"))
        ).run()
    return journal(folder)


async def test_a_kill_anywhere_leads_to_the_same_journal_and_repeats_no_call(tmp_path: Path) -> None:
    first = ScriptedModel(answers)
    whole = await run(tmp_path / "whole", first)
    assert sum(isinstance(event, ev.Called) for event in whole) == len(first.requests) > 10
    for nth in range(2, len(whole), 2):
        model = ScriptedModel(answers)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=True)
            with pytest.raises(Killed):
                await run(tmp_path / str(nth), model)
        resumed = await run(tmp_path / str(nth), model)
        assert moves(resumed) == moves(whole) and repeated_facts(resumed) == [], f"killed at write {nth}"
        assert tree(tmp_path / str(nth)) == tree(tmp_path / "whole")
