import pytest

from exact.models.providers import ModelCapabilities
from exact.models.refusal import lacking

BODY = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}],
    "temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "n": 3, "seed": 1, "logprobs": True, "response_format": {},
}  # fmt: skip
OLD = ModelCapabilities()


@pytest.mark.parametrize(
    ("param", "message", "lacks"),
    [
        ("n", "n must be 1", {"n": False}),
        ("", "Unrecognized request argument supplied: seed", {"seed": False}),
        ("", 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', {"seed": False}),
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.5. Only the default (1) value is supported.",
            {"sampling": False},
        ),
        ("", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", {"both": False}),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"limit": "max_completion_tokens"}),
        ("messages[0].role", "Unsupported value: 'messages[0].role' does not support 'system' with this model.", {"system": False}),
        ("", "System role not supported", {"system": False}),
        ("response_format", "response_format is not supported by this model", {"json_schema": False}),
        ("logprobs", "logprobs is not supported with this model", {"logprobs": False}),
    ],
)
def test_a_refused_field_is_a_capability_that_lacks(param, message, lacks):
    found = lacking(OLD, BODY, param, message)
    assert found == ModelCapabilities(**lacks)


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("", "temperature too high"),
        ("temperature", "temperature must be between 0 and 2"),
        ("max_tokens", "max_tokens is too large: 100000"),
        ("", "This model's maximum context length is 8192 tokens"),
        ("messages", "content is unsupported"),
    ],
)
def test_a_wrong_value_is_no_lack(param, message):
    assert lacking(OLD, BODY, param, message) is None


def test_a_field_that_was_not_sent_is_not_to_blame():
    assert lacking(OLD, {"messages": []}, "seed", "seed is not supported") is None
