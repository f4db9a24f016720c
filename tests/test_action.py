"""Actions as text: one canonical form for each, and nothing a model writes can break the parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.errors import ActionError

SPACE = ActionSpace(
    [
        Verb(name="click", form=(Parameter.ELEMENT,), help="Click it."),
        Verb(name="fill", form=(Parameter.ELEMENT, Parameter.TEXT)),
        Verb(name="drag", form=(Parameter.ELEMENT, "to", Parameter.ELEMENT)),
        Verb(name="click_at", form=(Parameter.NUMBER, Parameter.NUMBER)),
        Verb(name="scroll", form=("up|down",)),
        Verb(name="go_back"),
        Verb(name="shout", form=(Parameter.TEXT,), normalise=lambda args: (str(args[0]).upper(),)),
        Verb(name="stop", form=(Parameter.TEXT,), final=True),
    ]
)
ids = st.from_regex(r"[A-Za-z0-9_:.-]+", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9)
made = st.one_of(
    st.tuples(st.just("click"), ids),
    st.tuples(st.just("fill"), ids, words),
    st.tuples(st.just("drag"), ids, ids),
    st.tuples(st.just("click_at"), numbers, numbers),
    st.tuples(st.just("scroll"), st.sampled_from(["up", "down"])),
    st.tuples(st.just("go_back")),
    st.tuples(st.just("stop"), words),
).map(lambda parts: SPACE.action(*parts))


@given(made)
@example(SPACE.action("click_at", 1234567.5, 1e-7))
@example(SPACE.action("click_at", 0.1 + 0.2, -0.0))
@example(SPACE.action("stop", "x" * 1000))
@example(SPACE.action("stop", "\"\\\n\t\r\0\x1b\u2028é漢🙂'" * 20))
def test_the_key_of_an_action_reads_as_that_action(action: Action) -> None:
    assert SPACE.parse(action.key) == action
    assert SPACE.parse(f"  {action.key}\n") == action
    action.key.encode()


@given(st.sampled_from(["", "click ", "fill [1] ", 'stop "', "click_at 1 ", "drag [1] "]), st.text())
@example('stop "', '\\ud800"')
@example("click_at 1 ", "9" * 400)
@example("stop ", "'\\'")
def test_any_text_is_an_action_or_an_action_error(beginning: str, text: str) -> None:
    try:
        action = SPACE.parse(beginning + text)
    except ActionError as error:
        assert "\n" not in str(error)
    else:
        assert SPACE.parse(action.key) == action
        action.key.encode()


@pytest.mark.parametrize(
    "text, key",
    [
        ("click [ 12 ]", "click [12]"),
        ("fill[3]'Ann'", 'fill [3] "Ann"'),
        ("""fill [3] 'say "hi"'""", r'fill [3] "say \"hi\""'),
        (r"""fill [3] 'say \"hi\"'""", r'fill [3] "say \"hi\""'),
        (r"""fill [3] 'it\'s'""", 'fill [3] "it\'s"'),
        (r'''fill [3] "it\'s a\nb"''', r'fill [3] "it' + "'" + r's a\nb"'),
        (r'fill [3] "C:\Data"', r'fill [3] "C:\\Data"'),
        ('fill [3] "a\nb"', r'fill [3] "a\nb"'),
        (r'stop "\u00e9 \ud83d\ude42"', 'stop "é 🙂"'),
        ("click_at 3.0 -4.50", "click_at 3 -4.5"),
        ("click_at -0 0", "click_at 0 0"),
        ("shout 'no'", 'shout "NO"'),
    ],
)
def test_texts_that_mean_the_same_have_the_same_key(text: str, key: str) -> None:
    assert SPACE.parse(text).key == key
    assert SPACE.parse(text) == SPACE.parse(key)


@pytest.mark.parametrize(
    "text, says",
    [
        ("clik [3]", "did you mean 'click'?"),
        ("dance", "valid: click, fill"),
        ("", "begin with one of click"),
        ("[3]", "begin with one of click"),
        ("click 3", "click takes the id of an element in brackets"),
        ("click [3] [4]", "click takes the id of an element in brackets"),
        ('fill "a" [3]', "fill takes the id of an element in brackets, and a text in quotation marks"),
        ("scroll left", "scroll takes up or down"),
        ('scroll "up"', "scroll takes up or down"),
        ("drag [1] onto [2]", "drag takes the id of an element in brackets, to, and the id"),
        ("click [3]. Then stop.", "write one action, nothing else"),
        ('stop "half', "write one action, nothing else"),
        ("click_at 1e3 2", "click_at takes a number, and a number"),
    ],
)
def test_an_error_names_the_fault_and_the_valid_forms(text: str, says: str) -> None:
    with pytest.raises(ActionError) as error:
        SPACE.parse(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    "made",
    [
        ("scroll", "sideways"),
        ("click", "a b"),
        ("click", 3),
        ("click",),
        ("click_at", "1", 2),
        ("click_at", float("nan"), 0),
        ("click_at", float("inf"), 0),
        ("stop", 1.0),
        ("stop", "\ud800"),
    ],
)
def test_an_action_that_could_not_be_written_is_not_made(made: tuple[str, ...]) -> None:
    with pytest.raises(ActionError):
        SPACE.action(*made)


def test_the_error_about_a_long_text_is_short() -> None:
    for text in ("x" * 100_000, "click " * 20_000, f'click "{"x" * 100_000}"'):
        with pytest.raises(ActionError) as error:
            SPACE.parse(text)
        assert len(str(error.value)) < 400


def test_the_elements_named_are_listed_in_order() -> None:
    assert SPACE.parse("drag [4] to [7]").elements == ("4", "7")
    assert SPACE.parse('stop "[4]"').elements == ()


def test_a_final_verb_is_known_as_one() -> None:
    assert SPACE.is_final(SPACE.parse('stop "x"'))
    assert not SPACE.is_final(SPACE.parse("go_back"))


def test_the_description_has_one_line_for_each_verb() -> None:
    lines = SPACE.describe().splitlines()
    assert len(lines) == len(SPACE.verbs)
    assert lines[0].split("  ")[0] == "click [id]" and lines[0].endswith("Click it.")


@given(words)
def test_quoting_as_json_does_is_always_read(text: str) -> None:
    assert SPACE.parse(f"stop {json.dumps(text)}").args == (text,)
