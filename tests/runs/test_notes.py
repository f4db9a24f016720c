"""What an environment says of a step besides where it led: journalled whole, told to agents as far as it is for them, and reported."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from exact.action import Action, ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import Transition, reported_info
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.prompts.example import example_context, example_inputs
from exact.prompts.library import describe_prompt, render_prompt
from exact.report.model.model import report
from exact.runs.attempt.agent_calls import question_digest
from exact.runs.journal import events as ev
from exact.runs.runner import reopen
from tests.runs.test_resume import journal
from tests.runs.toys import config, toy_runner

INFO = {"unsettled": "still changing after 5 s", "refused": "only half of it was done", "reward": "0.75"}
TOLD = "only half of it was done; still changing after 5 s"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Context]:
    """Return what agents are shown in environments where every step has a note."""
    step, propose, evaluate, seen = ToyEnvironment.step, ToyPolicy.propose, ToyValue.evaluate, list[Context]()

    async def telling(environment: ToyEnvironment, action: Action) -> Transition:
        return msgspec.structs.replace(await step(environment, action), info=INFO)

    async def asked(policy: ToyPolicy, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        seen.append(context)
        return await propose(policy, context, actions, k)

    async def judged(value: ToyValue, context: Context) -> Evaluation:
        seen.append(context)
        return await evaluate(value, context)

    monkeypatch.setattr(ToyEnvironment, "step", telling)
    monkeypatch.setattr(ToyPolicy, "propose", asked)
    monkeypatch.setattr(ToyValue, "evaluate", judged)
    return seen


def test_an_agent_sees_the_info_meant_for_it_and_nothing_else() -> None:
    assert reported_info(INFO) == TOLD and reported_info({"reward": "0.75"}) == reported_info({}) == ""


@pytest.mark.parametrize("algorithm", ["mcts", "react"])
async def test_the_note_of_a_step_is_shown_in_every_list_of_previous_steps(tmp_path: Path, shown: list[Context], algorithm: str) -> None:
    settings = config(search={"algorithm": algorithm} | ({"iterations": 8, "k": 2} if algorithm == "mcts" else {}))
    await toy_runner(tmp_path, ToyFactory(chain(3)), settings).run()
    taken = [each for context in shown for each in context.history]
    assert taken and {each.note for each in taken} == {TOLD} and "0.75" not in repr([each.note for each in taken])
    events = [each for each in journal(tmp_path) if isinstance(each, ev.Acted | ev.Committed)]
    assert events and all(each.info == INFO for each in events)
    run, _ = reopen(tmp_path)
    states = report(run, run.manifest.tasks[0], screenshots=False).nodes
    assert all("refused: only half of it was done" in each.note for each in states if each.parent is not None)


def test_states_that_were_come_to_otherwise_are_different_questions() -> None:
    plain = example_context()
    (first, *rest) = plain.history
    told = msgspec.structs.replace(plain, history=(msgspec.structs.replace(first, note=TOLD), *rest))
    assert question_digest("value", plain) != question_digest("value", told)


def test_a_prompt_says_it_behind_the_step() -> None:
    plain = example_context()
    (first, *rest) = plain.history
    told = msgspec.structs.replace(plain, history=(msgspec.structs.replace(first, note=TOLD), *rest))
    before, after = (render_prompt("value", **example_inputs(describe_prompt("value")) | {"context": each}).user for each in (plain, told))
    assert TOLD not in before and f" -- {TOLD}\n   thought:" in after
