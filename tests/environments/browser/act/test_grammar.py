import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.act.grammar import BROWSER_ACTIONS, chord
from exact.errors import ActionError

IDS = st.from_regex(r"[1-9][0-9]{0,4}", fullmatch=True)
TEXTS = st.text(max_size=40)
POINTS = st.integers(0, 99_999)
KEYS = st.sampled_from(["a", "A", "Enter", "esc", " ", "+", "ArrowLeft", "é", '"', "\\", "7", "F5"])
HELD = st.lists(st.sampled_from(["Ctrl", "control", "ALT", "shift", "cmd"]), max_size=3)
URLS = st.sampled_from(["https://Shop.Example", "http://a.test:80/b?c=d#e", "/cart?q='\"", "http://a.test/ä b"])
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["click", "hover"]), IDS),
    st.tuples(st.sampled_from(["fill", "select"]), IDS, TEXTS),
    st.tuples(st.just("press"), st.builds(lambda held, key: "+".join([*held, key]), HELD, KEYS)),
    st.tuples(st.just("drag"), IDS, IDS),
    st.tuples(st.just("click_at"), POINTS, POINTS),
    st.tuples(st.just("scroll"), st.sampled_from(["up", "down"])),
    st.tuples(st.just("goto"), URLS),
    st.tuples(st.sampled_from(["go_back", "wait"])),
    st.tuples(st.just("stop"), TEXTS),
)


@given(ACTIONS)
def test_an_action_that_is_written_and_read_again_is_the_same(words: tuple[str | int, ...]) -> None:
    action = BROWSER_ACTIONS.action(str(words[0]), *words[1:])
    assert BROWSER_ACTIONS.parse(action.key) == action


@given(HELD, KEYS)
def test_a_canonical_chord_is_its_own_canonical_form(held: list[str], key: str) -> None:
    once = chord("+".join([*held, key]))
    assert chord(once) == once


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ('press "ctrl+A"', 'press "Control+a"'),
        ('press "shift+Ctrl+Tab"', 'press "Control+Shift+Tab"'),
        ('press "Shift+a"', 'press "A"'),
        ("press 'return'", 'press "Enter"'),
        ('press " "', 'press "Space"'),
        ('press "Ctrl++"', 'press "Control++"'),
        ("click_at 10.4 20", "click_at 10 20"),
        ("click [ 4 ]", "click [4]"),
        ('goto "https://Shop.Example"', 'goto "https://shop.example/"'),
        ("drag [1] to [2]", "drag [1] to [2]"),
    ],
)
def test_texts_that_mean_the_same_have_one_key(written: str, key: str) -> None:
    assert BROWSER_ACTIONS.parse(written).key == key


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('press "Entr"', "did you mean 'Enter'?"),
        ('press "Hyper+a"', "unknown modifier 'Hyper'"),
        ('press ""', "unknown key ''"),
        ('goto "shop"', 'write goto "https://host/path"'),
        ('goto "http://[broken"', "is no URL"),
        ("click_at -1 5", "is invalid"),
        ("scroll left", "scroll takes up or down"),
        ("clik [3]", "did you mean 'click'?"),
    ],
)
def test_an_invalid_action_is_refused_with_the_way_out(written: str, words: str) -> None:
    with pytest.raises(ActionError) as refused:
        BROWSER_ACTIONS.parse(written)
    assert words in str(refused.value)


def test_only_stop_ends_the_task() -> None:
    assert [verb.name for verb in BROWSER_ACTIONS.verbs.values() if verb.final] == ["stop"]
