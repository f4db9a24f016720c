"""Ids are those of nodes; what is drawn anew and looks the same is the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.page.ids import Ids, NodeLocation, NodeSignature
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

SAVE, STOP = NodeSignature(1, "button", "Save"), NodeSignature(1, "button", "Stop")


def seen(ids: Ids, *nodes: tuple[int, NodeSignature], document: int = 1) -> list[str]:
    return ids.give([NodeLocation(0, document, backend, "frame") for backend, _ in nodes], [look for _, look in nodes])


def test_a_node_keeps_its_id_when_its_appearance_changes() -> None:
    ids = Ids()
    assert seen(ids, (10, SAVE), (11, STOP)) == ["1", "2"]
    assert seen(ids, (11, SAVE), (12, SAVE), (10, STOP)) == ["2", "3", "1"]


def test_redrawn_elements_have_their_earlier_ids_in_order() -> None:
    ids = Ids()
    seen(ids, (10, SAVE), (11, STOP), (12, SAVE))
    assert seen(ids, (20, SAVE), (11, STOP), (22, SAVE), (23, SAVE)) == ["1", "2", "3", "4"]
    assert ids.location("3") == NodeLocation(0, 1, 22, "frame"), "an action goes to the node that is there"


def test_a_node_whose_id_another_one_took_over_is_new_when_it_comes_back() -> None:
    ids = Ids()
    seen(ids, (10, SAVE))
    assert seen(ids, (20, SAVE)) == ["1"]
    assert seen(ids, (20, SAVE), (10, SAVE)) == ["1", "2"]


def test_ids_do_not_carry_over_to_other_documents_or_different_elements() -> None:
    ids = Ids()
    seen(ids, (10, SAVE))
    assert seen(ids, (20, STOP)) == ["2"]
    assert seen(ids, (20, STOP), document=2) == ["3"]


def test_a_copy_continues_alike_and_independently() -> None:
    ids = Ids()
    seen(ids, (10, SAVE))
    other = ids.copy()
    assert seen(other, (20, SAVE)) == seen(ids, (30, SAVE)) == ["1"]
    assert (ids.location("1"), other.location("1")) == (NodeLocation(0, 1, 30, "frame"), NodeLocation(0, 1, 20, "frame"))


looks = st.lists(st.builds(NodeSignature, st.just(1), st.sampled_from(["button", "link"]), st.sampled_from("ab")), max_size=6)


@given(st.lists(st.tuples(looks, st.booleans()), max_size=6))
def test_two_environments_that_show_the_same_give_the_same_ids_however_often_one_draws_anew(
    pages: list[tuple[list[NodeSignature], bool]],
) -> None:
    steady, restless, numbers = Ids(), Ids(), itertools.count(1)
    kept, drawn = dict[tuple[int, NodeSignature], int](), dict[tuple[int, NodeSignature], int]()
    for page, anew in pages:
        one = seen(steady, *((kept.setdefault(node, next(numbers)), node[1]) for node in enumerate(page)))
        assert len(set(one)) == len(one)
        assert seen(restless, *((drawn.setdefault(node, next(numbers)), node[1]) for node in enumerate(page))) == one
        if anew:
            drawn |= {node: next(numbers) for node in enumerate(page)}
            assert seen(restless, *((drawn[node], node[1]) for node in enumerate(page))) == one


@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_that_draws_its_buttons_anew_is_acted_on_by_the_ids_it_had(visit: Visit) -> None:
    page = """<main id=all></main><p id=out></p><script>
    const draw = () => { all.innerHTML = '<button onclick="out.textContent = this.name" name=first>Go</button><button '
      + 'onclick="draw()">Again</button><button onclick="out.textContent = this.name" name=last>Go</button>' };
    draw();</script>"""
    async with visit(page) as (env, before):
        after = await look(env, f"click [{find(before, 'Again').id}]")
        assert [each.id for each in after.elements] == [each.id for each in before.elements]
        goes = [each.id for each in after.elements if each.name == "Go"]
        assert find(await look(env, f"click [{goes[-1]}]"), "last")
        assert (await do(env, f"click [{goes[0]}]")).observation
