"""What a model call costs. An unknown price is None, never 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from exact.config import ModelConfig
from exact.models.base import Price, Usage
from exact.models.providers import serving

_MILLION = 1_000_000


def price(config: ModelConfig) -> Price | None:
    """US dollars for a million tokens: the configuration's, else the price list's for that model at that base URL.

    Where the list has steps (long prompts cost more), the dearest one: what a cap on money has to reckon with.
    """
    if config.price is not None:
        return Price(input=config.price.input, output=config.price.output)
    listed = _listed(config, Usage(input_tokens=1, output_tokens=1))
    if listed is None:
        return None
    rates = listed.model_price
    dearest_in, dearest_out = _dearest(rates.input_mtok), _dearest(rates.output_mtok)
    if dearest_in is None or dearest_out is None:
        return None
    return Price(input=dearest_in, output=dearest_out, cached=_dearest(rates.cache_read_mtok))


def cost(usage: Usage, config: ModelConfig) -> float | None:
    """US dollars for a call, or None where the price is unknown or the server reported no tokens."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    if config.price is not None:
        return at(usage, Price(input=config.price.input, output=config.price.output))
    listed = _listed(config, usage)
    return None if listed is None else float(listed.total_price)


def at(usage: Usage, price: Price) -> float:
    """US dollars for a call at a price. Cached tokens are part of the input; without a price of their own they cost as much."""
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / _MILLION


def _listed(config: ModelConfig, usage: Usage) -> Any:
    """The price list's calculation, or None where it does not know the model there."""
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens or None, output_tokens=usage.output_tokens
    )
    try:
        provider = serving(config)
        if provider.prices:
            return genai_prices.calc_price(tokens, config.model, provider_id=provider.prices)
        return genai_prices.calc_price(tokens, config.model, provider_api_url=provider.places[0].base_url)
    except LookupError:
        return None


def _dearest(rate: Any) -> float | None:
    if rate is None or isinstance(rate, Decimal):
        return None if rate is None else float(rate)
    return float(max([rate.base, *(tier.price for tier in rate.tiers)]))
