import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.errors import AnswerError
from exact.models.structured import read


class Rubric(msgspec.Struct):
    checks: list[str]


words = st.text(max_size=40)
noise = st.lists(
    st.sampled_from(["```json\n", "```", "{", "}", "[", "]", '"', "Here: ", "\n", "⟧", "\\", "{}", "[1]", "🙂"]) | words, max_size=8
)


@pytest.mark.parametrize(
    "text",
    [
        '{"checks": ["a"]}',
        'Sure!\n```json\n{"checks": ["a"]}\n```\nThat is all.',
        '<think>{"checks": ["b"]}</think>{"checks": ["a"]}',
        'Of {curly} things: {"checks": ["a"]} and {"checks": ["a"]}',
    ],
)
def test_the_object_is_found_with_words_and_fences_around_it(text):
    assert read(text, Rubric) == Rubric(["a"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON object"),
        ('{"checks": ["a"', "no JSON object|not as asked"),
        ('{"checks": "a"}', "not as asked"),
        ('{"checks": ["a"]} or {"checks": ["b"]}', "2 JSON objects that differ"),
        ("[" * 100_000, "no JSON object"),
    ],
)
def test_anything_else_is_an_answer_error(text, says):
    with pytest.raises(AnswerError, match=says):
        read(text, Rubric)


@given(noise, st.lists(words, max_size=4), noise)
def test_no_text_raises_anything_else(before, checks, after):
    text = "".join(before) + json.dumps({"checks": checks}) + "".join(after)
    try:
        assert isinstance(read(text, Rubric), Rubric)
    except AnswerError as error:
        assert "\n" not in str(error) or "\n" in text
