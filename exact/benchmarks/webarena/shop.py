"""The named functions of task files that ask the shop's REST interface as its administrator."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import urllib.error
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from exact.benchmarks.webarena.variables import Addresses, Helper
from exact.errors import EnvironmentFailure
from exact.origins import fetch

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
