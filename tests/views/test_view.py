import base64
import io

import msgspec
import pytest
from PIL import Image as Picture

from exact.errors import EnvironmentFailure, UsageError
from exact.models import tokens
from exact.models.base import Image
from exact.observation import Box, Element
from exact.prompts.library import render_prompt
from exact.reflection.record import action_label
from exact.task import Task
from exact.views.pictures import load_task_pictures, mark_elements, scale_picture
from exact.views.view import summarise_steps, view_context
from tests.prompts.states import LIST, SHOE, context, page


def png(width: int, height: int, colour: str = "white") -> bytes:
    buffer = io.BytesIO()
    Picture.new("RGB", (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-5-5", "gemini-3.8-flash", "qwen3-vl"])
def test_a_picture_is_scaled_down_to_its_price_and_says_so(model):
    small = scale_picture(png(1280, 2048), 600, model)
    assert small.tokens <= 600 and tokens.picture(*tokens.size(small.data), model) == small.tokens
    assert small.note.startswith("a picture of 1280 x 2048 was scaled to ")


def test_a_picture_that_is_cheap_enough_stays_to_the_byte():
    data = png(200, 100)
    assert scale_picture(data, 1000) == (data, 255, "")


def test_no_picture_is_made_smaller_than_can_be_seen():
    assert min(tokens.size(scale_picture(png(600, 600), 1, "gpt-4o").data)) >= 64


def test_marks_are_drawn_where_elements_are_and_nowhere_else():
    elements = (
        Element(id="7", role="button", box=Box(20, 30, 60, 20)),
        Element(id="8", role="button", box=Box(120, 30, 60, 20), visible=False),
        Element(id="9", role="StaticText", box=Box(20, 80, 60, 10)),
        Element(id="10", role="link", box=Box(190, 90, 50, 50)),
    )
    with Picture.open(io.BytesIO(mark_elements(png(200, 100), elements))) as picture:
        assert picture.size == (200, 100)
        white = (255, 255, 255)
        assert picture.getpixel((20, 40)) != white and picture.getpixel((22, 20)) != white
        assert picture.getpixel((120, 40)) == white and picture.getpixel((21, 81)) == white
        assert picture.getpixel((199, 95)) != white


def test_the_pictures_of_a_task_are_read_from_files_and_data(tmp_path):
    (tmp_path / "a.png").write_bytes(png(3, 2))
    url = "data:image/jpeg;base64," + base64.b64encode(b"jpeg").decode()
    task = Task(id="t", instruction="", images=(str(tmp_path / "a.png"), url))
    assert load_task_pictures(task) == (Image(png(3, 2)), Image(b"jpeg", "image/jpeg"))


@pytest.mark.parametrize("where", ["none.png", "data:image/png;base64,%%", __file__])
def test_a_picture_of_a_task_that_cannot_be_read_is_a_usage_error(where):
    with pytest.raises(UsageError, match="picture"):
        load_task_pictures(Task(id="t", instruction="", images=(where,)))


def test_a_picture_of_a_task_is_fetched_from_its_address_once(httpserver):
    buffer = io.BytesIO()
    Picture.new("RGB", (2, 2)).save(buffer, "PNG")
    httpserver.expect_ordered_request("/one.png").respond_with_data(buffer.getvalue(), content_type="image/png")
    for _ in range(2):
        (found,) = load_task_pictures(Task(id="a", instruction="", images=(httpserver.url_for("/one.png"),)))
        assert (found.data, found.media_type) == (buffer.getvalue(), "image/png")
    with pytest.raises(EnvironmentFailure, match=r"http://127\.0\.0\.1:9/x\.png cannot be fetched"):
        load_task_pictures(Task(id="a", instruction="", images=("http://127.0.0.1:9/x.png",)))


def test_a_view_cuts_what_is_long_and_notes_it():
    long = page(*((("link", "heading")[i % 2], f"Shoe number {i}") for i in range(400)), screenshot=png(1280, 2048))
    found = view_context(context(long, history=context().history * 9), tokens=300, history=5, images=True, image_tokens=500)
    assert tokens.rough(found.context.observation.text) <= 340 and found.context.observation.elements == long.elements
    assert [note.split(" of ")[0] for note in found.left_out] == [found.left_out[0].split(" of ")[0], "the first 4", "a picture"]
    assert len(found.images) == 1 and tokens.picture(*tokens.size(found.images[0].data)) <= 500


def test_a_view_of_what_fits_is_what_it_was():
    found = view_context(context(), tokens=5000, history=5)
    assert found[:3] == (context(), (), ())


def test_the_pictures_of_the_task_go_before_the_states(tmp_path):
    (tmp_path / "a.png").write_bytes(png(3, 2))
    task = Task(id="t", instruction="x", images=(str(tmp_path / "a.png"),))
    seen = msgspec.structs.replace(SHOE, screenshot=png(9, 9))
    assert [tokens.size(image.data) for image in view_context(context(seen, task=task), tokens=500, history=5, images=True).images] == [
        (3, 2),
        (9, 9),
    ]
    assert len(view_context(context(seen, task=task), tokens=500, history=5).images) == 1


def test_the_fence_never_cuts_what_a_view_has_left():
    long = page(*((("link", "heading")[i % 2], f"{'x' * 100} {i}") for i in range(400)))
    shown = view_context(context(long), tokens=50_000, history=5).context
    assert "characters left out" not in render_prompt("value", context=shown, label=action_label, history=5).user


def test_a_summary_counts_verbs_pages_and_refusals():
    (step,) = context().history
    other = msgspec.structs.replace(step, observation=SHOE, error="no")
    assert summarise_steps(()) == "" and summarise_steps([step, step, other]) == "3 click; on shop.test/, shop.test/blue; 1 refused"
    far = [msgspec.structs.replace(step, observation=msgspec.structs.replace(LIST, url=f"http://h/{i}")) for i in range(9)]
    assert summarise_steps(far).endswith("h/5 and 3 more")


def test_several_forms_at_once_and_cuts_are_reported():
    html = "\n".join(f'<p exact="{i}">line {i}</p>' for i in range(400))
    boxed = tuple(msgspec.structs.replace(each, box=Box(20, 30, 60, 20)) for each in LIST.elements)
    seen = msgspec.structs.replace(LIST, html=html, elements=boxed, screenshot=png(200, 100), downloads=("bill.csv (3 bytes)",))
    found = view_context(context(seen), tokens=300, history=3, images=True, marks=True, html=True)
    assert len(found.images) == 1 and found.images[0].data != seen.screenshot
    assert found.context.observation.html.startswith('<p exact="0">') and any("lines of the HTML" in note for note in found.left_out)
    text = str(
        render_prompt(
            "policy",
            context=found.context,
            label=action_label,
            history=3,
            actions="",
            style="plain",
            examples=(),
            elements="id",
            thinks=True,
        ).messages()
    )
    assert "HTML:" in text and "Downloaded: bill.csv" in text and "left out)" in text


def test_html_is_shown_only_where_it_is_asked_for_and_was_observed():
    seen = msgspec.structs.replace(LIST, html="<p>here</p>", url="http://shop.test/")
    assert view_context(context(seen), tokens=3000, history=3).context.observation.html == ""
    with pytest.raises(UsageError, match=r"set browser\.html"):
        view_context(context(msgspec.structs.replace(seen, html="")), tokens=3000, history=3, html=True)


def test_the_tree_is_cut_to_the_view_or_left_out():
    elements = (
        Element(id="1", role="button", name="Here"),
        *(Element(id=str(i), role="link", name=f"Below {i}", visible=False) for i in range(2, 60)),
    )
    seen = msgspec.structs.replace(LIST, text="\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements), elements=elements)
    found = view_context(context(seen), tokens=3000, history=3, tree="view")
    assert "Here" in found.context.observation.text and "Below" not in found.context.observation.text
    assert "(... 58 left out: 58 link)" in found.context.observation.text and found.left_out
