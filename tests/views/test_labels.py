import msgspec
import pytest

from exact.context import Taken
from exact.observation import Element, Observation
from exact.views.labels import element_label, label_action, label_first
from exact.views.view import view_context

from ..prompts.states import ACTIONS, SHOE, context, page


@pytest.mark.parametrize(
    ("line", "by_label"),
    [
        ('[1] button "Previous"', '"Previous" button [1]'),
        ('    [12] link "He said \\"[3] button\\"" focused', '    "He said \\"[3] button\\"" link [12] focused'),
        ('[4] textbox value="Ann" required', 'textbox [4] value="Ann" required'),
        ("[5] textbox", "textbox [5]"),
        ('[6] graphics-symbol "dot" 3x3 at 1,2 (outside the view)', '"dot" graphics-symbol [6] 3x3 at 1,2 (outside the view)'),
        ("(... 3 left out: 3 link)", "(... 3 left out: 3 link)"),
        ("", ""),
    ],
)
def test_a_line_names_the_label_before_the_id(line, by_label):
    assert label_first(line) == by_label


def test_an_action_names_each_element_by_label_and_id():
    seen = page(("button", "Buy"), ("list", ""), ("link", "a" * 80))
    assert label_action("drag [1] to [2]", seen) == 'drag "Buy" button [1] to list [2]'
    assert label_action('fill [9] "[1]"', seen) == 'fill [9] "[1]"'
    assert label_action("click [3]", seen) == f'click "{"a" * 59}…" link [3]'


def test_a_name_of_space_is_no_label():
    assert element_label(Element(id="7", role="button", name=" \n")) == "button [7]"


def test_a_view_by_label_also_names_what_was_tried_by_label():
    tried = Taken(observation=SHOE, action=ACTIONS.parse("click [2]"), error="it is covered")
    seen = view_context(context(tried=(tried,)), tokens=500, history=5, labels=True).context
    assert seen.observation.text.splitlines()[1] == '"Buy" button [2]'
    assert [str(taken.action) for taken in seen.tried] == ['click "Buy" button [2]']


def test_a_view_lists_the_elements_that_its_text_shows():
    many = page(*[("link", f"Link number {i}") for i in range(60)])
    assert view_context(context(many), tokens=9000, history=5).elements == many.elements
    few = view_context(context(many), tokens=60, history=5, labels=True)
    assert 0 < len(few.elements) < 60
    assert all(f"[{element.id}]" in few.context.observation.text for element in few.elements)
    other = Observation(text="a world of its own", fingerprint="0", elements=many.elements)
    assert view_context(context(other), tokens=500, history=5).elements == many.elements


def test_a_view_by_id_stays_as_it_was():
    assert view_context(context(), tokens=500, history=5).context.observation == SHOE
    assert msgspec.structs.asdict(view_context(context(), tokens=500, history=5).context)["tried"] == ()
