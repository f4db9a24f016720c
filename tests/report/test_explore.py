"""What a reader does with a report: find, replay, fold, look closer, choose colours."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from exact.runs.journal.store import RunFolder
from tests.report.conftest import Show
from tests.report.journals import debate_run, grown_run
from tests.report.test_build import small

pytestmark = pytest.mark.asyncio(loop_scope="session")
CALM = {"reduced_motion": "reduce"}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def many(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a search of some hundred states."""
    return await asyncio.to_thread(grown_run, tmp_path_factory.mktemp("many") / "run", 200, drawn=small, screenshots=False)


async def scale(page: Page) -> float:
    return float(await page.evaluate("view.transform.k"))


async def test_finding_marks_what_holds_the_words_and_steps_through_it(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        await page.get_by_role("searchbox").fill("basket pay")
        hits = await page.locator(".card.found").count()
        assert 0 < hits < await page.locator(".card").count()
        await expect(page.locator("#hits")).to_have_text(f"{hits} found")
        await page.keyboard.press("Enter")
        await expect(page.locator("#hits")).to_have_text(f"1 of {hits}")
        await expect(page.locator(".card.selected.found")).to_have_count(1)
        await page.keyboard.press("Escape")
        await expect(page.locator(".card.found")).to_have_count(0)


async def test_a_state_is_found_by_its_number_even_where_it_is_folded_away(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        await page.locator("#tree").focus()
        await page.keyboard.press("Home")
        await page.keyboard.press(" ")
        await expect(page.locator(".card")).to_have_count(1)
        await page.keyboard.press("/")
        await page.keyboard.type("2")
        await page.keyboard.press("Enter")
        await expect(page.locator(".card.selected")).to_have_attribute("id", "item-2")


async def test_the_slider_shows_the_tree_as_it_was(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        every = await page.locator(".card").count()
        slider = page.get_by_role("slider")
        await slider.fill("4")
        few = await page.locator(".card").count()
        assert 1 < few < every
        await expect(page.locator("#when")).to_contain_text("iteration 4 of")
        await expect(page.locator(".card.committed")).to_have_count(1)
        assert "N 0" in str(await page.locator("#item-1 .stats").text_content()) or await page.locator("#item-1").count()
        await slider.focus()
        await page.keyboard.press("End")
        await expect(page.locator(".card")).to_have_count(every)
        await expect(page.locator(".card.committed")).to_have_count(5)


async def test_figures_grow_with_the_iterations(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        seen = []
        for iteration in (3, 10, 24):
            await page.get_by_role("slider").fill(str(iteration))
            seen.append(int(str(await page.evaluate("standing(NODES.get(0).choices[0]).visits"))))
        assert seen == sorted(seen) and seen[0] < seen[-1]


async def test_the_replay_runs_to_the_end(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        await page.get_by_role("slider").fill("90")
        await page.get_by_role("button", name="Replay the growth of the tree").click()
        await expect(page.get_by_role("button", name="Replay the growth of the tree")).to_be_visible(timeout=10_000)
        await expect(page.locator("#when")).to_contain_text("iteration 96 of 96")


async def test_pictures_come_into_cards_when_one_looks_closer(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        await expect(page.locator(".card image:visible")).to_have_count(0)
        for _ in range(6):
            await page.get_by_role("button", name="Zoom in").click()
        assert await page.locator(".card image:visible").count() > 0


async def test_the_small_map_shows_what_is_in_view_and_moves_it(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        for _ in range(5):
            await page.get_by_role("button", name="Zoom in").click()
        await expect(page.locator("#minimap")).to_be_visible()
        await page.locator("#minimap").scroll_into_view_if_needed()
        before = await page.evaluate("[view.transform.x, view.transform.y]")
        box = await page.locator("#minimap").bounding_box()
        assert box
        await page.mouse.click(box["x"] + box["width"] - 10, box["y"] + 20)
        assert await page.evaluate("[view.transform.x, view.transform.y]") != before


async def test_keys_zoom_step_and_show_help(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        await page.locator("#tree").focus()
        before = await scale(page)
        await page.keyboard.press("+")
        assert await scale(page) > before
        await page.keyboard.press("[")
        await expect(page.locator("#when")).to_contain_text("iteration 95 of 96")
        await page.keyboard.press("]")
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        assert await page.evaluate("view.selected.node.current") is True
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


async def test_letters_typed_into_the_field_are_no_commands(show: Show, shop: RunFolder) -> None:
    async with show(shop, **CALM) as page:
        before = await scale(page)
        await page.get_by_role("searchbox").focus()
        await page.keyboard.type("+[f?")
        assert await scale(page) == before
        await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_all_marks_are_shown_and_hidden(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=1", **CALM) as page:
        await expect(page.locator("#panel .shot b")).to_have_count(0)
        await page.get_by_role("button", name="Set of marks").click()
        await expect(page.locator("#panel .shot").last.locator("b")).to_have_count(3)
        await expect(page.locator("#panel .shot").last.locator("b").first).to_have_text("8")
        await page.get_by_role("button", name="Set of marks").click()
        await expect(page.locator("#panel .shot b")).to_have_count(0)


async def test_changes_by_an_action_are_shown_line_by_line(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=1", **CALM) as page:
        await expect(page.locator(".diff ins")).to_have_text(
            ['+ [8] spinbutton "Quantity"', '+ [10] button "Add to basket"', '+ [11] link "Back"']
        )
        await expect(page.locator(".diff del").first).to_have_text('- [3] textbox "Search"')


@pytest.mark.parametrize(
    ("before", "after", "signs"),
    [("a\nb\nc", "a\nx\nc", " -+ "), ("a", "a", " "), ("", "a", "-+"), ("a\nb", "b\na", "- +"), ("a\na\na", "a", " --")],
)
async def test_lines_are_aligned_by_what_is_the_same(show: Show, shop: RunFolder, before: str, after: str, signs: str) -> None:
    async with show(shop) as page:
        found = await page.evaluate("([a, b]) => changes(a, b)", [before, after])
        assert sorted(sign for sign, _ in found) == sorted(signs)
        assert "\n".join(text for sign, text in found if sign != "+") == before
        assert "\n".join(text for sign, text in found if sign != "-") == after


async def test_below_the_tree_is_what_was_written_and_what_it_cost(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        below = page.locator("#below .plain")
        await expect(below).to_contain_text("POST http://shop.test/pay (201)")
        await expect(below).to_contain_text("It stands.")
        await expect(below).to_contain_text("2 writes of the search were blocked")
        await expect(below.locator("tbody tr")).to_have_count(2)
        await expect(below).not_to_contain_text("Where it went wrong")


async def test_budget_and_values_are_drawn_over_the_iterations(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        assert await page.locator("#budget .line").count() >= 4
        assert await page.locator("#values .line").count() >= 4
        await expect(page.locator("#budget .commit")).to_have_count(4)
        await page.get_by_role("slider").fill("5")
        await expect(page.locator("#values .key")).to_contain_text('link "Green tea"')


async def test_a_debate_is_shown_in_its_order_with_its_disagreement(show: Show, tmp_path: Path) -> None:
    async with show(debate_run(tmp_path / "run")) as page:
        said = page.locator(".arguments li")
        await expect(said).to_have_count(2)
        await expect(said.first).to_contain_text("The door is open.")
        await expect(page.locator("#panel")).to_contain_text("order effect +0.20")
        await page.locator("#panel").get_by_text("Judges (2)").click()
        await expect(page.locator("#panel")).to_contain_text("judge-a: 0.70")


async def test_colours_are_chosen_and_kept_apart_from_the_systems(show: Show, shop: RunFolder) -> None:
    async with show(shop, color_scheme="light") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.locator("#theme").click()
        await page.locator("#theme").click()
        dark = await page.evaluate(ground)
        assert light != dark
        await page.emulate_media(color_scheme="dark")
        assert await page.evaluate(ground) == dark
        await page.locator("#theme").click()
        assert await page.evaluate(ground) == dark


async def test_a_tree_of_many_states_is_drawn_on_a_canvas_and_can_still_be_read_and_clicked(show: Show, many: RunFolder) -> None:
    async with show(many, **CALM) as page:
        await page.evaluate("TreeView.most = 100")
        await page.get_by_role("button", name="Expand all").click()
        await expect(page.locator("#tree > canvas")).to_have_count(1)
        await expect(page.locator(".card")).to_have_count(0)
        await page.locator("#tree").focus()
        for key in ("Home", "ArrowRight", "ArrowDown", "Enter"):
            await page.keyboard.press(key)
        key = await page.evaluate("view.selected.key")
        await expect(page.locator("#item-cursor")).to_contain_text(f"State {key}")
        await page.evaluate("view.area.call(view.zoom.transform, d3.zoomIdentity.translate(20, 40))")
        box = await page.locator("#tree").bounding_box()
        assert box
        await page.mouse.click(box["x"] + 100, box["y"] + 40 + await page.evaluate("view.placed.get('0').x"))
        assert await page.evaluate("view.selected.key") == "0"
        await page.get_by_role("button", name="Committed only").click()
        await expect(page.locator("#tree > svg")).to_have_count(1)


async def test_both_ways_of_drawing_put_colour_where_the_states_are(show: Show, many: RunFolder) -> None:
    async with show(many, **CALM) as page:
        await page.evaluate("TreeView.most = 100")
        await page.get_by_role("button", name="Expand all").click()
        painted = """(() => {
            const canvas = document.querySelector("#tree > canvas"), pen = canvas.getContext("2d");
            return pen.getImageData(0, 0, canvas.width, canvas.height).data.filter((value, place) => place % 4 === 3 && value > 0).length;
        })()"""
        assert await page.evaluate(painted) > 1000


@pytest.mark.parametrize("width", [360, 390, 768])
async def test_no_part_overlaps_another_on_a_narrow_screen(show: Show, shop: RunFolder, width: int) -> None:
    async with show(shop, "#node=1", viewport={"width": width, "height": 800}, **CALM) as page:
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        if await page.locator("#ask").is_visible():
            await page.locator("#ask").click()
        steps, tree, panel = [await page.locator(part).bounding_box() for part in ("#steps", ".stage", "#panel")]
        assert steps and tree and panel and tree["y"] >= steps["y"] + steps["height"] - 1
        assert panel["y"] >= tree["y"] + tree["height"] - 1 or (panel["x"] >= steps["width"] and panel["y"] + panel["height"] <= tree["y"])


async def test_every_state_has_a_spoken_name_a_level_and_a_fold(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await expect(page.locator("#item-1")).to_have_attribute("aria-label", re.compile(r"State 1, click \[4\].*Q 0\.\d\d.*committed"))
        await expect(page.locator("#item-1")).to_have_attribute("aria-level", "2")
        await expect(page.locator("#item-1")).to_have_attribute("aria-expanded", "true")
