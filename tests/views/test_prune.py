from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.observe.describe import elements_text
from exact.models.tokens import rough
from exact.observation import Element, Observation
from exact.views.prune import KEPT_ENTRIES, prune_text


def page(*rows: tuple[str, str, int, bool]) -> Observation:
    """Return an observation with rows of role, name, depth and visibility."""
    elements = tuple(Element(id=str(i), role=r, name=n, depth=d, visible=v) for i, (r, n, d, v) in enumerate(rows, 1))
    return Observation(text=elements_text(elements), fingerprint="f", url="http://a/", elements=elements)


def test_text_within_the_limit_stays_as_it_is():
    seen = page(("button", "Buy", 0, True), ("StaticText", "far", 0, False))
    assert prune_text(seen, 1000) == (seen.text, ())


def test_a_repeated_list_is_folded_and_says_so():
    rows = [("list", "", 0, True)]
    for i in range(40):
        rows += [("listitem", "", 1, True), ("link", f"item {i}", 2, True)]
    found = prune_text(page(*rows), 300)
    shown = [f'"item {i}"' in found.text for i in range(40)]
    assert shown[: KEPT_ENTRIES[0]] == [True] * KEPT_ENTRIES[0] and shown[-1] and not any(shown[KEPT_ENTRIES[0] : -1])
    assert f"  (... {2 * (40 - KEPT_ENTRIES[0] - 1)} left out: 31 listitem, 31 link)" in found.text
    assert found.left_out == ("62 of 81 lines of http://a/, 0 of them outside the view",)


def test_content_in_view_is_kept_longer_and_controls_longer_than_text():
    rows = [
        (role, f"{role} {i} {where}", i % 3, where == "in") for i in range(30) for role in ("button", "heading") for where in ("in", "out")
    ]
    found = prune_text(page(*rows), 500).text
    counts = [sum(f'"{role} {i} {where}"' in found for i in range(30)) for role, where in
              (("button", "in"), ("heading", "in"), ("button", "out"), ("heading", "out"))]  # fmt: skip
    assert counts[0] >= counts[1] >= counts[2] >= counts[3] and counts[0] > 0 == counts[3]


def test_a_focused_field_outside_the_view_stays():
    far = Element(id="99", role="textbox", name="Search", visible=False, states=("focused",))
    elements = (*(Element(id=str(i), role=("heading", "link")[i % 2], name=f"x {i}") for i in range(50)), far)
    found = prune_text(Observation(text=elements_text(elements), fingerprint="f", elements=elements), 100)
    assert "[99]" in found.text


rows = st.tuples(
    st.sampled_from(["button", "link", "listitem", "StaticText", "heading", "generic"]),
    st.text(max_size=30),
    st.integers(0, 4),
    st.booleans(),
)


@given(st.lists(rows, max_size=120), st.integers(60, 600), st.none() | st.integers(300, 3000))
def test_any_page_keeps_its_order_and_its_budget_and_says_what_is_missing(given_rows, tokens, characters):
    seen = page(*given_rows)
    found = prune_text(seen, tokens, characters=characters)
    lines = seen.text.split("\n")
    kept = [line for line in found.text.split("\n") if line in lines]
    places = iter(lines)
    assert all(line in places for line in kept)
    assert bool(found.left_out) == (found.text != seen.text)
    if found.left_out:
        assert "left out" in found.text
        assert rough(found.text) <= tokens + 40 and (characters is None or len(found.text) <= characters + 200)


def test_lines_that_are_no_elements_are_cut_from_the_end():
    seen = Observation(text="\n".join(f"line {i}" for i in range(500)), fingerprint="f")
    found = prune_text(seen, 100)
    assert found.text.startswith("line 0\nline 1") and "line 499" not in found.text and found.left_out
