"""Cost of model calls. An unknown price is None, never 0."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

from exact.config import ModelConfig
from exact.models.base import Price, Usage
from exact.models.providers import Provider, serving

_MILLION = 1_000_000


class Tariff:
    """Prices of one model: those of the configuration, else those of the price list for that model at that provider."""

    def __init__(self, config: ModelConfig, provider: Provider | None = None) -> None:
        """Look up nothing yet. `provider` is the one that the configuration names unless given."""
        self._config, self._provider = config, provider

    @functools.cached_property
    def price(self) -> Price | None:
        """US dollars for a million tokens; None where the price is unknown.

        Where the list has tiers (long prompts cost more), the most expensive tier, because a cap on money has to hold for it.
        """
        if (own := self._config.price) is not None:
            return Price(input=own.input, output=own.output, cached=own.cached, cache_write=own.cache_write)
        rates = self._listed
        if rates is None:
            return None
        highest_in, highest_out = _highest(rates.input_mtok), _highest(rates.output_mtok)
        if highest_in is None:
            return None
        cached, written = _highest(rates.cache_read_mtok), _highest(rates.cache_write_mtok)
        return Price(input=highest_in, output=highest_out or 0.0, cached=cached, cache_write=written)

    def cost(self, usage: Usage) -> float | None:
        """Return the US dollars of a call. None: the price is unknown, or the server reported no tokens."""
        if not usage.input_tokens and not usage.output_tokens:
            return None
        if self._config.price is not None:
            return None if self.price is None else cost_at(usage, self.price)
        if self._listed is None:
            return None
        return float(self._listed.calc_price(_counted(usage))["total_price"])

    @functools.cached_property
    def _listed(self) -> Any:
        """Rates of the price list; None where it does not know the model at that provider."""
        import genai_prices

        provider = self._provider or serving(self._config)
        tokens = _counted(Usage(input_tokens=1, output_tokens=1))
        try:
            if provider.prices:
                return genai_prices.calc_price(tokens, self._config.model, provider_id=provider.prices).model_price
            return genai_prices.calc_price(tokens, self._config.model, provider_api_url=provider.all_endpoints[0].base_url).model_price
        except LookupError:
            return None


def cost_at(usage: Usage, price: Price) -> float:
    """Return the US dollars of a call at a price.

    Tokens read from the cache and written into it are part of the input, and cost as much without a price of their own.
    """
    read = price.input if price.cached is None else price.cached
    write = price.input if price.cache_write is None else price.cache_write
    fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    paid = fresh * price.input + usage.cached_tokens * read + usage.cache_write_tokens * write + usage.output_tokens * price.output
    return paid / _MILLION


def _counted(usage: Usage) -> Any:
    import genai_prices

    return genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
        output_tokens=usage.output_tokens or None,
    )


def _highest(rate: Any) -> float | None:
    if rate is None or isinstance(rate, Decimal):
        return None if rate is None else float(rate)
    return float(max([rate.base, *(tier.price for tier in rate.tiers)]))
