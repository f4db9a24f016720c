"""Recorded answers of models are read by the parser of now, and nothing is counted that no model said."""

import sys
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import roles
from _role_records import Asked, Tape, kept_when_repaired, question_of, replayed, row
from _role_states import recorded, spread

from exact.context import Context
from exact.models.base import ChatRequest, Choice, Message, Sampling, Text

STATES = recorded()
STATE = STATES[0]
RIGHT = STATE.first(right=True).action
ASKED = Asked(prompts="now", model="small-0.5b", role="policy_id", state=0, part="policy policy")


def said(*texts: str) -> list[Asked]:
    return [msgspec.structs.replace(ASKED, attempt=at, choices=(Choice(text=text),), tokens=(700, 9)) for at, text in enumerate(texts)]


def with_goals(*goals: str) -> list[Context]:
    return [msgspec.structs.replace(STATE.context, instruction=goal) for goal in goals]


async def test_a_first_answer_that_is_right_counts_as_read_and_right() -> None:
    told = row([await replayed(said(f"Action: {RIGHT.key}"), STATE)], STATES)
    assert (told.parsed_first, told.right, told.tokens) == (1.0, 1.0, (700, 9))


async def test_an_answer_that_was_asked_again_is_not_read_at_first() -> None:
    told = row([await replayed(said("I do not know.", f"Action: {RIGHT.key}"), STATE)], STATES)
    assert (told.parsed_first, told.right) == (0.0, 1.0)


async def test_a_question_whose_answer_was_never_recorded_is_not_right() -> None:
    came = await replayed(said("I do not know."), STATE)
    assert came.failed and not came.actions
    assert row([came], STATES).right == 0.0


async def test_a_second_answer_keeps_what_the_first_had_named() -> None:
    kept, lost = [await replayed(said("press [7] now", f"Action: click [{id}]"), STATE) for id in ("7", "8")]
    assert (kept_when_repaired([kept]), kept_when_repaired([lost])) == ([True], [False])


async def test_a_role_that_asks_two_models_is_read() -> None:
    debate = [("value.supporter debater", "It is there."), ("value.opposer debater", "It is not."), ("value.judge judge", "Verdict: B")]
    kept = [msgspec.structs.replace(said(text)[0], role="cascade", part=part) for part, text in (*debate, *debate)]
    assert (await replayed(kept, STATE)).asked


def test_an_answer_goes_to_its_own_question_whatever_came_first() -> None:
    asked = [
        ChatRequest(messages=(Message("user", (Text(text),)),), sampling=Sampling(), role="value", prompt="compare@1:0")
        for text in ("one before other", "other before one")
    ]
    kept = [msgspec.structs.replace(said(question_of(each))[0], part="value compare", question=question_of(each)) for each in asked]
    tape = Tape(kept[::-1])
    assert [tape.answer(each).choices[0].text for each in asked] == [question_of(each) for each in asked]


async def test_what_stands_before_a_page_is_counted() -> None:
    short, long = [
        await replayed(said(f"Action: {RIGHT.key}"), msgspec.structs.replace(STATE, context=seen)) for seen in with_goals("Go", "Go " * 90)
    ]
    assert 0 < short.before_page < long.before_page - 80


def test_first_states_of_all_tasks_come_before_second_ones() -> None:
    rounds = spread(STATES)
    assert sorted(index for some in rounds for index, _ in some) == list(range(len(STATES)))
    for some in rounds:
        tasks = [state.context.task.id.partition("?")[0] for _, state in some]
        assert len(set(tasks)) == len(tasks)


async def test_writing_into_a_button_is_a_wrong_verb() -> None:
    [state, button] = next((each, found) for each in STATES for found in each.context.observation.elements if found.role == "button")
    assert roles.misfits(f'fill [{button.id}] "x"', state)
    assert not roles.misfits(f"click [{button.id}]", state)


def test_gains_count_only_what_both_prompts_were_asked() -> None:
    now = [roles.Came(role="policy_id", state=0, actions=(RIGHT.key,)), roles.Came(role="policy_id", state=1, actions=("click [9999]",))]
    before = [roles.Came(role="policy_id", state=0, actions=(RIGHT.key,))]
    assert roles.right_ratio(now, before, STATES) == 1.0
    assert roles.right_ratio(now, [], STATES) is None
