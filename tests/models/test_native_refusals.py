"""Servers of the native APIs that refuse each optional field in turn, in words of their own."""

import msgspec
import pytest

from exact.models.openai import OpenAIModel

from .native import recorded
from .test_messages import message, text
from .test_openai import Waits
from .test_refusing_servers import WORDINGS
from .test_responses import response, said

OPTIONS = {
    "responses": {
        "background": False, "max_tool_calls": 3, "metadata": {}, "parallel_tool_calls": False, "reasoning": {"effort": "low"},
        "safety_identifier": "s", "service_tier": "flex", "stream": False, "truncation": "disabled", "user": "u",
        "prompt_cache_retention": "24h", "moderation": {"model": "x"},
    },
    "messages": {
        "container": "c", "context_management": {}, "inference_geo": "eu", "mcp_servers": [], "metadata": {}, "service_tier": "auto",
        "stop_sequences": ["x"], "stream": False, "thinking": {"type": "adaptive"}, "tool_choice": {"type": "none"}, "top_k": 20,
        "speed": "fast", "diagnostics": {}, "betas": [],
    },
}  # fmt: skip
OURS = {
    "responses": ["include", "prompt_cache_key", "store", "temperature", "text", "top_logprobs", "top_p", "max_output_tokens"],
    "messages": ["output_config", "temperature", "top_p"],
}


@pytest.mark.parametrize("wording", range(len(WORDINGS)))
@pytest.mark.parametrize("api", OPTIONS)
async def test_a_refused_field_costs_one_request_and_only_once(configured, ask, api, wording):
    answered = {"responses": response(said("Buy it.")), "messages": message(text("Buy it."))}[api]
    refused = list[str]()
    with recorded(lambda body: WORDINGS[wording](refused[0]) if refused[0] in body else answered) as server:
        request = msgspec.structs.replace(ask(temperature=0.5, top_p=0.9, logprobs=True, top_logprobs=5), schema={"type": "object"})
        for field in [*OPTIONS[api], *OURS[api]]:
            refused[:] = [field]
            server.bodies.clear()
            model = OpenAIModel(configured(server.base_url, api=api, extra=OPTIONS[api], retries=0), sleep=Waits())
            answers = [await model.complete(request) for _ in range(2)]
            await model.close()
            first, second, third = server.bodies
            assert field in first and field not in second and second == third, field
            assert all(answer.choices[0].text == "Buy it." for answer in answers), field
            assert ("system" in third) == ("system" in first) and ("max_tokens" in third) == (api == "messages"), field
