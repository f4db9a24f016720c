"""What a model call costs. An unknown price is None, never 0."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

from exact.config import ModelConfig
from exact.models.base import Price, Usage
from exact.models.providers import Provider, serving

_MILLION = 1_000_000


class Tariff:
    """The prices of one model: the configuration's, else the price list's for that model at that provider."""

    def __init__(self, config: ModelConfig, provider: Provider | None = None) -> None:
        """`provider` is the one that the configuration names unless given."""
        self._config, self._provider = config, provider

    @functools.cached_property
    def price(self) -> Price | None:
        """US dollars for a million tokens.

        Where the list has steps (long prompts cost more), the dearest one: what a cap on money has to reckon with.
        """
        if (own := self._config.price) is not None:
            return Price(input=own.input, output=own.output, cached=own.cached)
        rates = self._listed
        if rates is None:
            return None
        dearest_in, dearest_out = _dearest(rates.input_mtok), _dearest(rates.output_mtok)
        if dearest_in is None:
            return None
        return Price(input=dearest_in, output=dearest_out or 0.0, cached=_dearest(rates.cache_read_mtok))

    def cost(self, usage: Usage) -> float | None:
        """US dollars for a call, or None where the price is unknown or the server reported no tokens."""
        if not usage.input_tokens and not usage.output_tokens:
            return None
        if self._config.price is not None:
            return None if self.price is None else at(usage, self.price)
        if self._listed is None:
            return None
        return float(self._listed.calc_price(_counted(usage))["total_price"])

    @functools.cached_property
    def _listed(self) -> Any:
        """The price list's rates, or None where it does not know the model there."""
        import genai_prices

        provider = self._provider or serving(self._config)
        tokens = _counted(Usage(input_tokens=1, output_tokens=1))
        try:
            if provider.prices:
                return genai_prices.calc_price(tokens, self._config.model, provider_id=provider.prices).model_price
            return genai_prices.calc_price(tokens, self._config.model, provider_api_url=provider.places[0].base_url).model_price
        except LookupError:
            return None


def at(usage: Usage, price: Price) -> float:
    """US dollars for a call at a price. Cached tokens are part of the input; without a price of their own they cost as much."""
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / _MILLION


def _counted(usage: Usage) -> Any:
    import genai_prices

    return genai_prices.Usage(
        input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens or None, output_tokens=usage.output_tokens or None
    )


def _dearest(rate: Any) -> float | None:
    if rate is None or isinstance(rate, Decimal):
        return None if rate is None else float(rate)
    return float(max([rate.base, *(tier.price for tier in rate.tiers)]))
