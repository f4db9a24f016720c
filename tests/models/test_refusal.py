import msgspec
import pytest

from exact.models.providers import ModelCapabilities
from exact.models.refusal import Learned, adjusted, prompt_filtered, too_long

BODY = {
    "model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}],
    "temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "n": 3, "seed": 1, "logprobs": True, "response_format": {}, "min_p": 0.1,
}  # fmt: skip
BARE = {key: BODY[key] for key in ("model", "messages")}
PICTURE = {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}
NEW = Learned(takes=ModelCapabilities())


def after(body, message, param=""):
    return adjusted(NEW, body, param, message)


@pytest.mark.parametrize(
    ("param", "message", "lacks"),
    [
        ("n", "n must be 1", {"n": False}),
        ("", "n must equal 1: several choices are not offered", {"n": False}),
        ("", "This endpoint can only return one choice per request, got n=4", {"n": False}),
        ("", "[{'loc': ['body', 'n'], 'msg': 'Input should be less than or equal to 1'}]", {"n": False}),
        ("", "n_cmpl cannot be greater than the number of slots", {"n": False}),
        ("", "Unrecognized request argument supplied: seed", {"seed": False}),
        ("", 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', {"seed": False}),
        ("", "`temperature` is deprecated for this model.", {"sampling": False}),
        ("", "temperature must be between 0 and 0.4", {"sampling": False}),
        ("", "topP is not a known option", {"sampling": False}),
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.5. Only the default (1) value is supported.",
            {"sampling": False},
        ),
        ("", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", {"both": False}),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"limit": "max_completion_tokens"}),
        ("", "System role not supported", {"system": False}),
        ("", "This model has no system prompt", {"system": False}),
        ("response_format", "response_format is not supported by this model", {"json_schema": False}),
        ("response_format.json_schema.strict", "Input should be false", {"json_schema": False}),
        ("", "This model does not support structured outputs", {"json_schema": False}),
        ("logprobs", "logprobs is not supported with this model", {"logprobs": False}),
        ("", "You are not allowed to request log probabilities", {"logprobs": False}),
    ],
)
def test_a_refused_field_is_a_capability_that_lacks(param, message, lacks):
    assert after(BODY, message, param) == Learned(takes=ModelCapabilities(**lacks))


def test_a_field_without_a_capability_is_left_out_by_name():
    assert after(BODY, "extra inputs are not permitted: body.min_p").without == {"min_p"}
    assert after(BODY, "max_tokens is too large: 100000").without == {"max_tokens"}


@pytest.mark.parametrize(
    ("message", "least"),
    [
        ("max_tokens must be at least 16", 16),
        ("Invalid 'max_tokens': integer below minimum value. Expected a value >= 16, but got 7 instead.", 16),
        ("[{'loc': ['body', 'max_tokens'], 'msg': 'Input should be greater than or equal to 8'}]", 8),
        ("max_tokens must be greater than 9", 10),
        ("max_tokens: minimum of 32", 32),
    ],
)
def test_a_cap_that_is_too_low_is_raised(message, least):
    assert after(BODY, message, "max_tokens") == Learned(takes=ModelCapabilities(least_tokens=least))


@pytest.mark.parametrize("message", ["max_tokens must be at least 1", "max_tokens must be at least 4096", "max_tokens: wrong"])
def test_a_cap_that_no_minimum_explains_is_left_out(message):
    assert after(BODY, message, "max_tokens").without == {"max_tokens"}


def test_a_refusal_in_other_words_leaves_out_all_that_can_be():
    found = after(BODY, "Nope.")
    assert found.without == {"max_tokens", "min_p"}
    assert found.takes == ModelCapabilities(n=False, logprobs=False, json_schema=False, seed=False, sampling=False)


def test_pictures_and_then_the_system_turn_are_the_last_to_go():
    assert after(PICTURE, "Nope.").takes == ModelCapabilities(images=False)
    assert after(BARE, "Nope.").takes == ModelCapabilities(system=False)
    assert after({"model": "m", "messages": [{"role": "user", "content": "Which?"}]}, "Nope.") is None


@pytest.mark.parametrize("message", ["image input is not supported", "this model has no vision", "messages.0.content must be a string"])
def test_a_model_without_pictures_is_told_by_their_names(message):
    assert after(PICTURE | {"seed": 1}, message).takes == ModelCapabilities(images=False)


def test_the_other_name_of_the_cap_is_tried_once():
    message = "Unsupported parameter: 'max_tokens'"
    swapped = after(BODY, message)
    assert swapped.takes.limit == "max_completion_tokens"
    again = adjusted(swapped, {**BARE, "max_completion_tokens": 7}, "", "Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens'.")
    assert again.without == {"max_completion_tokens"}


@pytest.mark.parametrize("message", ["Nope.", "seed is bad, n is bad, temperature is bad", "system role not supported", "no pictures"])
def test_repeated_refusals_end(message):
    known, bodies = NEW, 0
    while known is not None and bodies < 20:
        takes = known
        body = {key: value for key, value in BODY.items() if not takes.refuses(key)}
        if takes.takes.system is False:
            body["messages"] = [{"role": "user", "content": "Which?"}]
        if takes.takes.limit == "max_completion_tokens" and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        known, bodies = adjusted(known, body, "", message), bodies + 1
    assert bodies < 6


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("content_filter", "The response was filtered due to the prompt triggering a content management policy."),
        ("", "Your request was flagged as potentially violating our usage policy."),
        ("data_inspection_failed", "Input data may contain inappropriate content."),
        ("", "Output blocked by content filtering policy"),
        ("", "PROHIBITED_CONTENT"),
    ],
)
def test_a_filtered_prompt_is_known_by_code_or_words(code, message):
    assert prompt_filtered(code, message)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "This model's maximum context length is 8192 tokens"),
        ("exceed_context_size_error", "the request exceeds the available context size"),
        ("", "prompt is too long: 213462 tokens > 200000 maximum"),
    ],
)
def test_a_prompt_that_is_too_long_is_known_by_code_or_words(code, message):
    assert too_long(code, message) and not prompt_filtered(code, message)


@pytest.mark.parametrize("message", ["temperature too high", "Unrecognized request argument supplied: seed", "model m does not exist"])
def test_other_refusals_are_neither_filters_nor_lengths(message):
    assert not prompt_filtered("", message) and not too_long("", message)


def test_a_learned_field_is_refused_by_its_capability_or_its_name():
    known = Learned(takes=msgspec.structs.replace(NEW.takes, sampling=False), without=frozenset({"min_p"}))
    assert [field for field in BODY if known.refuses(field)] == ["temperature", "top_p", "min_p"]


@pytest.mark.parametrize("message", ["`moderation` is deprecated for this model.", "Unsupported parameter: 'content_filter'"])
def test_a_field_with_the_name_of_a_filter_is_no_filter(message):
    body = BODY | {"moderation": {}, "content_filter": True}
    assert not prompt_filtered("", message, body) and prompt_filtered("", message)
    assert prompt_filtered("", "The prompt was blocked by moderation.", body)
