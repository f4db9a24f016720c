"""inspect_ai evaluates R-MCTS on MiniWoB++ tasks, offline: its mock model is policy and value function. Needs `pip install inspect_ai`."""

import re
import sys
import tempfile

from inspect_ai import Task, eval
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

from exact.interop.inspect import benchmark_score, rmcts, tasks

SETTINGS = [
    "policy.kind=llm", "policy.samples=2", "value.kind=llm", "value.samples=1", "reflection.kind=none", "search.iterations=2",
    "browser.screenshots=false", "limits.actions=3", "limits.money=null", "limits.calls=60",
]  # fmt: skip


def answer(messages: list, tools: list, choice: object, config: GenerateConfig) -> ModelOutput:
    """Answer as a model that reads the goal and names the button."""
    text = messages[-1].text
    wanted = re.search(r"[Cc]lick button (\w+)", text)
    if "Verdict" in messages[0].text:
        said = "It is clear from the page.\nVerdict: B"
    else:
        number = re.search(rf'\[(\d+)\] button "{wanted[1] if wanted else ""}', text)
        said = f"The goal names it.\nAction: click [{number[1] if number else 1}]"
    output = ModelOutput.from_content(model="mock", content=said)
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)  # without it, inspect fetches a tokenizer
    return output


if __name__ == "__main__":
    pattern, settings = (sys.argv[1:2] or ["miniwob/click-test-2?seed=3"])[0], sys.argv[2:]
    with tempfile.TemporaryDirectory() as logs:
        model = get_model("mockllm/model", custom_outputs=answer)
        task = Task(dataset=tasks(pattern), solver=rmcts("rmcts_builtin", [*SETTINGS, *settings]), scorer=benchmark_score())
        [log] = eval(task, model=model, log_dir=logs, display="none")
        for sample in log.samples or []:
            calls = sum(event.event == "model" for event in sample.events)
            print(f"{sample.id}: {sample.error.message if sample.error else ''}{calls} calls of the model in inspect's log")
            for score in (sample.scores or {}).values():
                print(f"score {score.value}")
