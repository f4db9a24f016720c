# ruff: noqa: T201
"""A program for the virtual environment of inspect_ai: see test_inspect.py."""

import asyncio
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from exact.config import ModelConfig, PriceConfig
from exact.errors import ModelError
from exact.interop.inspect import InspectModel, benchmark_score, rmcts
from exact.models.base import ChatRequest, Image, Message, Sampling, Text


def said(text, **more):
    output = ModelOutput.from_content(model="mock", content=text, **more)
    output.usage = ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9, input_tokens_cache_read=3)
    return output


seen = []


def answer(messages, tools, choice, config):
    seen.append((messages, config))
    if len(seen) == 4:
        raise RuntimeError("quota \n used up")
    return said(f"answer {len(seen)}")


async def ask():
    mock = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    model = InspectModel(mock, ModelConfig(model="x", price=PriceConfig(input=1, output=1)))
    request = ChatRequest(
        messages=(Message("system", (Text("be brief"),)), Message("user", (Text("look"), Image(b"png"), Image(b"png")))),
        sampling=Sampling(n=3, temperature=0.5, max_tokens=9),
        role="policy",
        grammar="root",
    )
    found = await model.complete(request)
    print([choice.text for choice in found.choices], found.usage.input_tokens, found.usage.cached_tokens, found.usage.cost, found.notes)
    messages, config = seen[0]
    print([each.role for each in messages], messages[1].content[1].image, messages[1].content[2].text)
    print(config.num_choices, seen[1][1].num_choices, config.temperature, config.max_tokens)
    try:
        await model.complete(request)
    except ModelError as error:
        print("ModelError:", error)


if __name__ == "__main__":
    asyncio.run(ask())
    named = ({}, {"task": "minwob/x"}, {"url": "file:///x"}, {"url": "http://127.0.0.1:9/"})
    broken = [Sample(input="Look", metadata=each) for each in named]
    config = ["reflection.kind=none", "search.iterations=1"]
    [log] = eval(
        Task(dataset=broken, solver=rmcts(settings=config), scorer=benchmark_score()),
        model="mockllm/model",
        log_dir=sys.argv[1],
        display="none",
        fail_on_error=False,
    )
    for sample in log.samples:
        print(sample.scores, sample.error.message)
