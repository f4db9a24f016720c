"""Reports in a real browser."""

import pytest
from playwright.async_api import Page, expect

from exact.runs.journal.store import RunFolder
from tests.report.conftest import Show

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def selected(page: Page) -> str | None:
    return await page.locator(".card.selected").get_attribute("id")


async def test_it_opens_without_errors_or_requests_at_the_last_committed_step(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await expect(page.locator("h1")).to_have_text("Buy two packs of green tea.")
        await expect(page.locator(".ending")).to_have_text("Solved")
        await expect(page.locator("#panel h2")).to_have_text('click [12] button "Pay"')
        assert await page.locator(".card").count() > 10


async def test_a_click_selects_a_state_and_names_it_in_the_address(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await page.locator("#item-1").click()
        await expect(page.locator("#panel h2")).to_have_text('click [4] link "Green tea"')
        assert page.url.endswith("#node=1")
        await expect(page.locator("#said")).to_contain_text("State 1")


async def test_arrow_keys_move_and_enter_selects(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await page.locator("#tree").focus()
        await page.keyboard.press("Home")
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
        assert await page.locator("#tree").get_attribute("aria-activedescendant") == "item-1"
        assert await selected(page) == "item-0"
        await page.keyboard.press("Enter")
        assert await selected(page) == "item-1"
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Enter")
        assert await selected(page) == "item-0"


async def test_a_deep_link_selects_its_state_at_once_and_when_it_changes(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=2") as page:
        assert await selected(page) == "item-2"
        await page.get_by_role("link", name="state 1", exact=True).first.click()
        await expect(page.locator("#panel h2")).to_have_text('click [4] link "Green tea"')


async def test_a_link_to_no_state_shows_the_last_committed_step(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=99999") as page:
        assert await selected(page) == "item-13"


async def test_space_folds_a_branch_and_unfolds_it(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        every = await page.locator(".card").count()
        await page.locator("#tree").focus()
        await page.keyboard.press("Home")
        await page.keyboard.press(" ")
        await expect(page.locator(".card")).to_have_count(1)
        await expect(page.locator("#item-0")).to_have_attribute("aria-expanded", "false")
        await page.keyboard.press("ArrowDown")
        await expect(page.locator(".card")).to_have_count(every)


async def test_committed_only_folds_what_was_not_committed(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        every = await page.locator(".card").count()
        await page.get_by_role("button", name="Committed only").click()
        assert await page.locator(".card").count() < every
        await expect(page.locator(".card.committed")).to_have_count(5)
        await page.get_by_role("button", name="Expand all").click()
        await expect(page.locator(".card")).to_have_count(every)


async def test_zooming_moves_the_stage(show: Show, shop: RunFolder) -> None:
    async with show(shop, reduced_motion="reduce") as page:
        before = await page.locator("#tree svg > g").get_attribute("transform")
        await page.get_by_role("button", name="Zoom in").click()
        assert await page.locator("#tree svg > g").get_attribute("transform") != before


async def test_the_acted_element_is_outlined_where_it_stands(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=1") as page:
        frame = await page.locator(".shot").first.bounding_box()
        mark = await page.locator(".shot i").first.bounding_box()
        assert frame and mark
        # Green tea is the second element: 16, 74 of 332 x 214 pixels, of which the lowest 43 are empty and left out
        assert (mark["x"] - frame["x"]) / frame["width"] == pytest.approx(16 / 332, abs=0.02)
        assert (mark["y"] - frame["y"]) / frame["height"] == pytest.approx(74 / 171, abs=0.02)


async def test_a_screenshot_is_enlarged_by_a_click(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await page.locator("#panel .shot").first.click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_the_panel_shows_evaluation_prompts_and_reflections(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=0") as page:
        panel = page.locator("#panel")
        await expect(panel).to_contain_text("a link with these words is visible")
        await expect(panel).to_contain_text("Set the quantity first.")
        await panel.get_by_text("Model call: policy").click()
        await panel.get_by_text("Prompt: user").last.click()
        await expect(panel.get_by_text('[4] link "Green tea"').last).to_be_visible()


async def test_the_list_below_the_tree_shows_where_each_reflection_was_used_and_the_outcome(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        told = page.locator("h2:has-text('Reflections shown') + blockquote")
        await expect(told).to_contain_text("Set the quantity first.")
        await expect(told.get_by_role("link", name="state 0")).to_be_visible()
        await expect(told).to_contain_text("the attempt ended:")


async def test_a_refused_action_is_shown_with_its_reason(show: Show, shop: RunFolder) -> None:
    async with show(shop) as page:
        await page.locator(".card.refused").first.click()
        await expect(page.locator("#panel")).to_contain_text("there is no element [9]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_has_enough_contrast_in_both_themes(show: Show, shop: RunFolder, scheme: str) -> None:
    async with show(shop, color_scheme=scheme) as page:
        brightness = await page.evaluate(
            "() => ['color', 'backgroundColor'].map(p => getComputedStyle(document.body)[p].match(/\\d+/g).slice(0, 3)"
            ".reduce((sum, part) => sum + Number(part), 0))"
        )
        ink, ground = brightness
        assert (ground - ink > 400) if scheme == "light" else (ink - ground > 400)


async def test_no_content_is_wider_than_a_telephone(show: Show, shop: RunFolder) -> None:
    async with show(shop, viewport={"width": 400, "height": 800}) as page:
        assert await page.evaluate("document.documentElement.scrollWidth") <= 400
