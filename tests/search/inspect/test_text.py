from exact import Tree
from exact.action import Action
from exact.search.inspect.text import draw, to_html
from exact.search.tree import Edge


def tree():
    made = Tree()
    made.root.edges = [
        Edge(Action(name="click", args=(), key="click <b>\x1b[31m"), prior=0.75),
        Edge(Action(name="stop", args=(), key="stop"), prior=0.25),
    ]
    child = made.add(made.root, 0)
    made.root.edges[0].visits, made.root.edges[0].q = 2, 0.5
    child.edges = [Edge(Action(name="back", args=(), key="back"), prior=1.0)]
    return made


def test_a_tree_a_state_and_an_action_are_one_line_each():
    made = tree()
    for each in (made, made.root, made.root.edges[0]):
        assert "\n" not in repr(each) and len(repr(each)) < 200
    assert repr(made).startswith("<Tree: 2 states, 0 iterations, most visited: click")
    assert repr(made.root) == "<Node: state 0  V -  N 0>"


def test_a_tree_is_drawn_with_each_action_below_its_state():
    lines = str(tree()).splitlines()
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4, 2]
    assert "Q 0.50  P 0.75  ->  state 1" in lines[1] and "stop" in lines[3]
    assert len(draw(tree(), depth=1).splitlines()) == 3


def test_what_a_page_wrote_is_inert():
    assert "\x1b" not in str(tree()) and "<b>" not in to_html(tree()) and "&lt;b&gt;" in to_html(tree())


def test_html_closes_what_it_opens():
    html = to_html(tree())
    assert html.count("<details") == html.count("</details>") == 2 and html.count("<div") == html.count("</div>") == 2


def test_a_leaf_has_no_triangle():
    html = to_html(tree())
    assert "<summary><code>stop" not in html and "<code>stop" in html and "<summary><code>back" not in html


def test_an_action_is_shown_in_words_if_they_are_known():
    made = tree()
    made.names[0, 0] = 'click button "Add"'
    assert 'click button "Add"  N 2' in str(made) and 'click button "Add"' in repr(made) and "click &lt;b&gt;" not in to_html(made)


def test_a_large_tree_is_drawn_in_part_and_what_is_missing_is_counted():
    made = Tree()
    made.root.edges = [Edge(Action(name="go", args=(), key=f"go {i}"), prior=0.001) for i in range(1000)]
    lines = str(made).splitlines()
    assert len(lines) == 501 and lines[-1] == "... not drawn: 501 further actions and what is below"
