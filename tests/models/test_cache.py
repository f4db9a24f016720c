import asyncio

import msgspec
import pytest

from exact.errors import ModelError, UsageError
from exact.models.base import Display, Message, Text
from exact.models.cache import AnswerCache, CachedModel, Uncached
from exact.models.scripted import Reply, ScriptedModel


def drawn(question, sample):
    """Answer as a server that draws: each seed gives another answer."""
    return f"{question.messages[-1][1]} {None if question.seed is None else question.seed + sample}/{sample}"


@pytest.fixture
def cache(tmp_path):
    opened = AnswerCache(tmp_path / "answers.sqlite")
    yield opened
    opened.close()


def texts(answer):
    return [choice.text for choice in answer.choices]


async def test_an_equal_question_is_asked_once_and_its_samples_stay_distinct(cache, ask):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    first, again = await model.complete(ask(n=3, seed=7)), await model.complete(ask(n=3, seed=7))
    assert len(inner.requests) == 1 and len(set(texts(first))) == 3 and texts(again) == texts(first)
    assert again.replayed == 3 and again.usage.input_tokens == 0 and again.usage.cost == 0.0


async def test_more_samples_of_a_question_are_the_first_ones_and_new_ones(cache, ask):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    few, many = await model.complete(ask(n=2, seed=7)), await model.complete(ask(n=4, seed=7))
    assert texts(many)[:2] == texts(few) and len(set(texts(many))) == 4
    assert inner.requests[1].sampling.n == 2 and inner.requests[1].sampling.seed == 9 and many.replayed == 2


async def test_fewer_samples_need_no_call(cache, ask):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    many, few = await model.complete(ask(n=4, seed=7)), await model.complete(ask(n=2, seed=7))
    assert texts(few) == texts(many)[:2] and len(inner.requests) == 1


@pytest.mark.parametrize("other", [{"temperature": 0.1}, {"top_p": 0.1}, {"max_tokens": 9}, {"seed": 8}, {"logprobs": True}])
async def test_other_sampling_settings_are_another_question(cache, ask, other):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    await model.complete(ask(seed=7))
    await model.complete(ask(**({"seed": 7} | other)))
    assert len(inner.requests) == 2


async def test_reasoning_that_goes_back_and_the_computer_tool_are_part_of_the_question(cache, ask):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    plain = ask(seed=7)
    turns = [Message("assistant", (Text("Hm."),), items) for items in ((), ({"type": "reasoning", "id": "rs_1"},))]
    asked = [msgspec.structs.replace(plain, messages=(*plain.messages, turn)) for turn in turns]
    for request in [*asked, msgspec.structs.replace(plain, screen=Display(width=8, height=6)), *asked]:
        await model.complete(request)
    assert len(inner.requests) == 3


async def test_another_picture_or_model_is_another_question_another_asker_is_not(cache, ask):
    inner = ScriptedModel(drawn)
    model = CachedModel(inner, cache, "read-write")
    for request in (ask(images=(b"a",)), ask(images=(b"b",)), ask(images=(b"a",))):
        await model.complete(request)
    assert len(inner.requests) == 2
    await CachedModel(ScriptedModel(drawn, name="other/model"), cache, "read-write").complete(ask(images=(b"a",)))
    await CachedModel(inner, cache, "read-write", about="{effort: low}").complete(ask(images=(b"a",)))
    assert len(inner.requests) == 3


async def test_replay_only_answers_what_was_recorded_and_nothing_else(cache, ask):
    recorded = await CachedModel(ScriptedModel(drawn), cache, "read-write").complete(ask(n=2, seed=1))
    model = CachedModel(ScriptedModel(lambda q, i: pytest.fail("it was asked")), cache, "replay-only")
    assert texts(await model.complete(ask(n=2, seed=1))) == texts(recorded)
    for request in (ask(n=3, seed=1), ask("Other?", seed=1)):
        with pytest.raises(Uncached, match=r"models\.cache\.mode read-write"):
            await model.complete(request)


async def test_answers_outlive_the_process_that_asked(tmp_path, ask):
    for _ in range(2):
        cache = AnswerCache(tmp_path / "a" / "answers.sqlite")
        inner = ScriptedModel(lambda q, i: Reply(text="ab", logprobs=(-0.5,), token_ids=(3,)))
        answer = await CachedModel(inner, cache, "read-write").complete(ask())
        cache.close()
    assert inner.requests == [] and answer.choices[0].logprobs == (-0.5,) and answer.choices[0].token_ids == (3,)


async def test_equal_questions_asked_at_once_have_the_same_answer(cache, ask):
    count = iter(range(100))
    inner = ScriptedModel(lambda q, i: str(next(count)))
    model = CachedModel(inner, cache, "read-write")
    answers = await asyncio.gather(*(model.complete(ask()) for _ in range(8)))
    assert {texts(answer)[0] for answer in answers} == {"0"} and len(inner.requests) == 1


async def test_a_sample_that_is_empty_is_not_kept_and_the_others_keep_their_numbers(cache, ask):
    replies = iter([Reply(text="a"), Reply(text="", finish="empty"), Reply(text="c"), Reply(text="B"), Reply(text="C")])
    inner = ScriptedModel(lambda q, i: next(replies))
    model = CachedModel(inner, cache, "read-write")
    assert texts(await model.complete(ask(n=3))) == ["a", "", "c"]
    assert texts(await model.complete(ask(n=3))) == ["a", "B", "c"]


async def test_an_error_is_not_kept(cache, ask):
    def failing(question, sample):
        raise LookupError("not there")

    with pytest.raises(ModelError):
        await CachedModel(ScriptedModel(failing), cache, "read-write").complete(ask())
    assert texts(await CachedModel(ScriptedModel(drawn), cache, "read-write").complete(ask())) == ["Which? None/0"]


async def test_an_answer_that_cannot_be_kept_is_given_all_the_same_and_says_so(cache, ask):
    cache._connection.execute("PRAGMA query_only = ON")
    answer = await CachedModel(ScriptedModel(drawn), cache, "read-write").complete(ask())
    assert texts(answer) == ["Which? None/0"] and "readonly" in answer.notes[0] and str(cache.path) in answer.notes[0]


@pytest.mark.parametrize("harm", ["DROP TABLE answers", "UPDATE answers SET choice = 'x'"])
async def test_a_cache_that_cannot_be_read_is_a_model_error(cache, ask, harm):
    model = CachedModel(ScriptedModel(drawn), cache, "read-write")
    await model.complete(ask())
    cache._connection.execute(harm)
    with pytest.raises(ModelError, match=r"answers\.sqlite cannot be read"):
        await model.complete(ask())


def test_a_file_that_is_no_cache_is_a_usage_error(tmp_path):
    (tmp_path / "x").write_text("not a database, and long enough to be looked at " * 30)
    with pytest.raises(UsageError, match=r"models\.cache\.path"):
        AnswerCache(tmp_path / "x")


async def test_two_that_store_the_same_sample_agree_on_the_first(tmp_path, ask):
    one, two = AnswerCache(tmp_path / "a"), AnswerCache(tmp_path / "a")
    barrier = asyncio.Event()

    class Late(ScriptedModel):
        async def complete(self, request):
            await barrier.wait()
            return await super().complete(request)

    late = asyncio.create_task(CachedModel(Late(lambda q, i: "late"), two, "read-write").complete(ask()))
    await asyncio.sleep(0)
    await CachedModel(ScriptedModel(lambda q, i: "early"), one, "read-write").complete(ask())
    barrier.set()
    await late
    again = await CachedModel(ScriptedModel(drawn), two, "read-write").complete(ask())
    assert texts(again) == ["early"]
    one.close()
    two.close()
