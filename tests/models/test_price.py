import pytest

from exact.config import ModelConfig, PriceConfig
from exact.models.base import Price, Tariff, Usage, cost_at

USAGE = Usage(input_tokens=1000, cached_tokens=400, output_tokens=100)


def test_cached_tokens_have_their_own_price():
    assert cost_at(USAGE, Price(input=10.0, output=20.0, cached=1.0)) == pytest.approx((600 * 10 + 400 * 1 + 100 * 20) / 1e6)


def test_cached_tokens_without_a_price_cost_what_others_do():
    assert cost_at(USAGE, Price(input=10.0, output=20.0)) == pytest.approx((1000 * 10 + 100 * 20) / 1e6)


def test_a_listed_model_has_a_price_and_the_same_cost():
    config = ModelConfig(model="gpt-4o")
    listed = Tariff(config).price
    assert listed and listed.cached and listed.input < listed.output
    assert Tariff(config).cost(USAGE) == pytest.approx(cost_at(USAGE, listed))


@pytest.mark.parametrize("config", [ModelConfig(model="no-such-model"), ModelConfig(model="gpt-4o", base_url="http://127.0.0.1:8000/v1")])
def test_an_unknown_price_is_none_and_so_is_the_cost(config):
    assert Tariff(config).price is None and Tariff(config).cost(USAGE) is None


def test_the_configured_price_goes_first():
    config = ModelConfig(model="gpt-4o", price=PriceConfig(input=1.0, output=1.0))
    assert Tariff(config).price == Price(input=1.0, output=1.0) and Tariff(config).cost(USAGE) == pytest.approx(1100 / 1e6)


def test_a_configured_price_of_cached_input_is_used():
    config = ModelConfig(model="m", price=PriceConfig(input=1.0, output=1.0, cached=0.1))
    assert Tariff(config).cost(USAGE) == pytest.approx((600 + 0.1 * 400 + 100) / 1e6)


def test_a_cap_uses_the_highest_tier_of_a_price():
    tariff = Tariff(ModelConfig(model="gemini-1.5-pro", base_url="https://generativelanguage.googleapis.com"))
    stepped, small = tariff.price, tariff.cost(Usage(input_tokens=1000))
    assert stepped and small and stepped.input * 1000 / 1e6 > small


def test_a_call_without_reported_tokens_has_no_known_cost():
    assert Tariff(ModelConfig(model="gpt-4o")).cost(Usage()) is None
