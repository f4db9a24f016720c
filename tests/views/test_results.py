"""Results of tools in prompts: they stay where a page is cut, and where a state is shown as a picture alone."""

from __future__ import annotations

from exact.observation import Element, Observation
from exact.views.prune import prune_text
from exact.views.view import IN_THE_PICTURE, observation_text, view_context

from ..prompts.states import context

RESULT = ("Result of find {}:", "| 42", '| [7] button "Pay"')
ELEMENTS = tuple(Element(id=str(i), role=("button", "link")[i % 2], name=f"Number {i}") for i in range(500))
PAGE = "\n".join(f'[{each.id}] {each.role} "{each.name}"' for each in ELEMENTS)


def state(results: int = len(RESULT), screenshot: bytes | None = None) -> Observation:
    return Observation(text="\n".join((*RESULT, PAGE)), results=results, elements=ELEMENTS, screenshot=screenshot)


def test_results_are_the_last_to_be_left_out() -> None:
    kept = prune_text(state(), 200)
    assert kept.left_out and kept.text.split("\n")[:3] == [*RESULT]
    assert prune_text(state(0), 200).text.split("\n")[0] != RESULT[0], "without the number they are text like any other"


def test_a_state_that_is_shown_as_a_picture_has_its_results_in_words() -> None:
    import io

    from PIL import Image

    Image.new("RGB", (8, 8)).save(picture := io.BytesIO(), "PNG")
    seen = view_context(context(state(screenshot=picture.getvalue())), tokens=1000, history=3, images=True, text=False)
    assert seen.context.observation.text == "\n".join((*RESULT, IN_THE_PICTURE))
    assert observation_text(seen.context.observation).endswith(IN_THE_PICTURE)
