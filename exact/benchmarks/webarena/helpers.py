"""The named functions of task files that read a page. A thing that a page lacks is an empty text or 0, as the task files expect.

The named functions of task files that ask the shop's REST interface as its administrator.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import urllib.error
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from exact.benchmarks.webarena.format import OR
from exact.benchmarks.webarena.locate import in_page
from exact.benchmarks.webarena.variables import Addresses, Helper
from exact.errors import EnvironmentFailure
from exact.origins import fetch

if TYPE_CHECKING:
    from playwright.async_api import Page


_TEXT = "selector => document.querySelector(selector)?.textContent ?? ''"

_ROLE = """
name => {
  const all = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  const at = all.findIndex(each => each.outerText === '@' + name);
  return at < 0 ? '' : document.querySelectorAll('td.col-max-role span')[at]?.outerText ?? '';
}
"""

_COMMENTS = """
() => [...document.querySelectorAll('#main .comment')].map(each => ({
  author: each.querySelector('.fg-inherit')?.outerText ?? '',
  text: each.querySelector('.comment__content')?.outerText ?? '',
  time: Date.parse(each.querySelector('.comment__main > header > h1 > span > time')?.dateTime ?? '') || 0,
  parent: (each.parentElement.closest('.comment') ?? document.querySelector('#main')).querySelector('.fg-inherit')?.outerText ?? '',
}))
"""

_NUMBER = re.compile(r"\d+")

_ORDER = """
() => [...document.querySelectorAll('#my-orders-table tbody')].map(body => {
  const row = {options: {}};
  for (const cell of body.querySelectorAll('td')) {
    row[cell.classList[1]] = cell.outerText;
    for (const term of cell.querySelectorAll('dl dt')) row.options[term.outerText] = term.nextElementSibling?.outerText ?? '';
  }
  return row;
})
"""

_ATTRIBUTES = """
wanted => [...document.querySelectorAll('#productDetails_detailBullets_sections1 > tbody > *')]
  .filter(row => wanted.some(each => row.children[0]?.outerText.toLowerCase().includes(each)))
  .map(row => row.children[1]?.outerText ?? '').join(', ')
"""

_PRICE = """
() => parseFloat(document.querySelector('#maincontent .product-info-main .product-info-price .price-box.price-final_price > span > span')
  ?.outerText.slice(1).replaceAll(',', '')) || 0
"""

_REVIEWS = "() => parseInt(document.querySelector('#tab-label-reviews-title')?.outerText.split(' ')[1]) || 0"
_RATING = "() => parseFloat(document.querySelector('.rating-result')?.title) || 0"


async def get_query_text(page: Page, selector: str) -> str:
    """Return the text of the first element that matches a CSS selector."""
    return str(await in_page(page, _TEXT, selector) or "")


async def get_query_text_lowercase(page: Page, selector: str) -> str:
    """Return that text in lower case."""
    return (await get_query_text(page, selector)).lower()


async def gitlab_get_project_memeber_role(page: Page, account_name: str) -> str:
    """Return an account's role in a GitLab project, from its members' page. The name of the function is that of the task files."""
    return str(await in_page(page, _ROLE, account_name) or "")


async def reddit_get_post_url(url: str) -> str:
    """Return the address of the post that a post's or comment's address belongs to; any other address unchanged."""
    parts = urlsplit(url)
    steps = parts.path.split("/")
    if len(steps) < 4 or steps[1] != "f":
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{steps[2]}/{steps[3]}/"


async def _latest(page: Page, username: str) -> dict[str, Any]:
    """Return the newest comment of a user on a post's page; empty if there is none."""
    found = await in_page(page, _COMMENTS) or []
    return max((each for each in found if each["author"] == username), key=lambda each: each["time"], default={})


async def reddit_get_latest_comment_content_by_username(page: Page, username: str) -> str:
    """Return the text of that comment."""
    return str((await _latest(page, username)).get("text", ""))


async def reddit_get_parent_comment_username_of_latest_comment_by_username(page: Page, username: str) -> str:
    """Return the author of the comment that it answers."""
    return str((await _latest(page, username)).get("parent", ""))


async def _ordered(page: Page) -> list[dict[str, Any]]:
    return list(await in_page(page, _ORDER) or [])


async def shopping_get_order_product_name_list(page: Page) -> str:
    """Return the names of the products on an order's page, with ` |OR| ` between them."""
    return OR.join(each.get("name", "") for each in await _ordered(page))


async def shopping_get_order_product_quantity(page: Page, sku: str) -> float:
    """Return the quantity of a product in an order, or of the first that is there of several between ` |OR| `."""
    wanted = sku.split(OR)
    for each in await _ordered(page):
        if each.get("sku", "").strip() in wanted:
            ordered = _NUMBER.search(each.get("qty", ""))  # the number after it counts the shipped ones
            return float(ordered[0]) if ordered else 0.0
    return 0.0


async def shopping_get_order_product_option(page: Page, sku: str, option_name: str) -> str:
    """Return a product's option in an order: its size, its colour."""
    row = next((each for each in await _ordered(page) if each.get("sku", "").strip() == sku), {})
    return str(row.get("options", {}).get(option_name, ""))


async def shopping_get_product_attributes(page: Page, attribute: str) -> str:
    """Return the values in a product's table whose heading contains one of the names between ` |OR| `."""
    return str(await in_page(page, _ATTRIBUTES, attribute.lower().split(" |or| ")) or "")


async def shopping_get_product_price(page: Page) -> float:
    """Return the price of the product on this page."""
    return float(await in_page(page, _PRICE) or 0)


async def shopping_get_num_reviews(page: Page) -> float:
    """Return the number of reviews of the product on this page."""
    return float(await in_page(page, _REVIEWS) or 0)


async def shopping_get_rating_as_percentage(page: Page) -> float:
    """Return the rating of the product on this page, in percent."""
    return float(await in_page(page, _RATING) or 0)


ON_PAGES = {
    each.__name__: each
    for each in (
        get_query_text,
        get_query_text_lowercase,
        gitlab_get_project_memeber_role,
        reddit_get_post_url,
        reddit_get_latest_comment_content_by_username,
        reddit_get_parent_comment_username_of_latest_comment_by_username,
        shopping_get_order_product_name_list,
        shopping_get_order_product_quantity,
        shopping_get_order_product_option,
        shopping_get_product_attributes,
        shopping_get_product_price,
        shopping_get_num_reviews,
        shopping_get_rating_as_percentage,
    )
}


_SECONDS = 60.0
_MOST_BYTES = 64 << 20
"""Bytes of the largest answer."""
_ADMIN = ("admin", "admin1234")
"""Account of the benchmark's image; SHOPPING_ADMIN_USERNAME and SHOPPING_ADMIN_PASSWORD override it."""


class Shop:
    """Client of the shop. Raises EnvironmentFailure that names address and variable if the shop does not answer."""

    def __init__(self, addresses: Addresses, environ: Mapping[str, str] | None = None) -> None:
        self._addresses, self._environ = addresses, os.environ if environ is None else environ

    @property
    def helpers(self) -> dict[str, Helper]:
        """The functions by their names in task files."""
        return {
            "shopping_get_latest_order_url": self.latest_order_url,
            "shopping_get_sku_latest_review_author": self.review_author,
            "shopping_get_sku_latest_review_rating": self.review_rating,
            "shopping_get_sku_latest_review_text": self.review_text,
            "shopping_get_sku_latest_review_title": self.review_title,
            "shopping_get_sku_product_page_url": self.product_url,
        }

    async def latest_order_url(self) -> str:
        """Return the page of the newest order. Raises EnvironmentFailure if there is none."""
        order = {"searchCriteria[sortOrders][0][field]": "created_at", "searchCriteria[sortOrders][0][direction]": "DESC"}
        found = await self._get("/rest/V1/orders?" + urlencode({**order, "searchCriteria[pageSize]": "1"}))
        if not found.get("items"):
            raise EnvironmentFailure("the shop has no order at all, though its data set comes with some: is it set up?")
        return f"{self._addresses.of('SHOPPING')}/sales/order/view/order_id/{int(found['items'][0]['increment_id'])}/"

    async def review_author(self, sku: str) -> str:
        """Return the author of the newest review of a product; empty if there is none."""
        return str((await self._review(sku)).get("nickname", ""))

    async def review_rating(self, sku: str) -> str:
        """Return the rating of that review in percent."""
        ratings = (await self._review(sku)).get("ratings") or [{}]
        return str(ratings[0].get("percent", ""))

    async def review_text(self, sku: str) -> str:
        """Return the text of that review."""
        return str((await self._review(sku)).get("detail", ""))

    async def review_title(self, sku: str) -> str:
        """Return the title of that review."""
        return str((await self._review(sku)).get("title", ""))

    async def product_url(self, sku: str) -> str:
        """Return a product's page; empty if there is none."""
        found = await self._get(f"/rest/V1/products/{quote(sku, safe='')}")
        keys = {each["attribute_code"]: each["value"] for each in found.get("custom_attributes", ())}
        return f"{self._addresses.of('SHOPPING')}/{keys['url_key']}.html" if "url_key" in keys else ""

    async def _review(self, sku: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = await self._get(f"/rest/V1/products/{quote(sku, safe='')}/reviews")
        return found[-1] if found else {}

    async def _get(self, path: str) -> Any:
        token = await self._call("/rest/default/V1/integration/admin/token", self._account())
        return await self._call(path, None, {"Authorization": f"Bearer {token}"})

    def _account(self) -> dict[str, str]:
        name, word = (self._environ.get(f"SHOPPING_ADMIN_{each}") for each in ("USERNAME", "PASSWORD"))
        return {"username": name or _ADMIN[0], "password": word or _ADMIN[1]}

    async def _call(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        return await asyncio.to_thread(self._request, self._addresses.of("SHOPPING") + path, body, headers or {})

    def _request(self, url: str, body: object, headers: Mapping[str, str]) -> Any:
        data = None if body is None else json.dumps(body).encode()
        place = f"{url} ({self._addresses.variable('SHOPPING')})"
        try:
            return json.loads(fetch(url, data, headers={"Content-Type": "application/json", **headers}, seconds=_SECONDS, most=_MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise EnvironmentFailure(f"the shop's interface at {place} answered with status {error.code}") from error
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise EnvironmentFailure(f"the shop's interface at {place} does not answer: {error}") from error
