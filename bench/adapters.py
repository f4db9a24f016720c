"""Do peft and llama.cpp agree about the same LoRA adapter? An adapter of random weights is served by both, and both are asked 20 questions.

The adapter is drawn, not trained: each of its layers changes what the model says, so that a layer that is turned, transposed or left out in
the conversion (bench/_gguf_adapter.py) shows. Questions are states of MiniWoB++ (bench/roles_states.jsonl.gz). Both servers give the
log-probabilities of the five likeliest first tokens, and tokens that both name are compared. The weights are quantised, and llama.cpp
rounds the inputs of layers too, so that it differs from peft without an adapter as well.

    python bench/adapters.py [--quick] [--weights GGUF]    SmolLM2 (quick), Qwen2.5-Coder 0.5B, or other weights

  adapter_difference    mean difference of log-probabilities, with the adapter in both
  base_difference       the same without the adapter
  adapter_changes       mean difference that the adapter makes, in peft
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import _common
import _llamacpp
from _instruct import FOLDER
from _role_states import recorded
from grpo import PYTHON
from sft import environ, served

ASKED, LIKELIEST, SHOWN = 20, 5, 1500
"""Questions, tokens that are compared of each answer, and most characters of a state."""
GOAL = 0.05
DRAWN = """
import sys
import torch
from exact.learning.train.model import adapter, load_model
from exact.learning.train.settings import LoraSettings
torch.manual_seed(0)
loaded = load_model(sys.argv[1])
adapted = adapter(loaded.model, LoraSettings(), sys.argv[1])
for name, weights in adapted.named_parameters():
    if "lora_B" in name:
        torch.nn.init.normal_(weights, std=float(sys.argv[3]))
adapted.save_pretrained(sys.argv[2])
"""
SPREAD = 0.05
"""Standard deviation of the drawn weights."""
Chances = Sequence[Mapping[str, float]]


def questions() -> list[list[dict[str, str]]]:
    """Return the questions: what to do next, in so many states."""
    shown = [(state.context.instruction, state.context.observation.text[:SHOWN]) for state in recorded()[:ASKED]]
    system = {"role": "system", "content": "You name elements of pages."}  # without one, chat templates add one of their own
    return [[system, {"role": "user", "content": f"{text}\n\nGoal: {goal}\nWhich element is clicked next?"}] for goal, text in shown]


def chances(address: str) -> Chances:
    """Return the log-probabilities of the likeliest first tokens of the answer to each question."""
    found = list[Mapping[str, float]]()
    for asked in questions():
        body = {"model": "local", "messages": asked, "temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": LIKELIEST}
        request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            (token,) = json.load(answer)["choices"][0]["logprobs"]["content"]
        found.append({each["token"]: each["logprob"] for each in token["top_logprobs"]})
    return found


def by_llamacpp(weights: Path | None, adapter: Path | None) -> Chances:
    with _llamacpp.serving(slots=1, weights=weights, adapter=adapter) as server:
        return chances(server.address)


def by_peft(model: str) -> Chances:
    with served(PYTHON, model) as address:
        return chances(address)


def difference(one: Chances, other: Chances) -> float:
    """Return the mean difference of the log-probabilities of tokens that both name."""
    apart = [abs(some[token] - more[token]) for some, more in zip(one, other, strict=True) for token in some.keys() & more.keys()]
    return statistics.fmean(apart)


def run(*command: object) -> None:
    done = subprocess.run(list(map(str, command)), env=environ(), cwd=_common.ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[1]}: {done.stderr[-1000:]}")


def main() -> None:
    parser, noise = _common.parser(__doc__ or ""), _common.Noise()
    parser.add_argument("--weights", type=Path, default=FOLDER / "qwen2.5-coder-0.5b.gguf", metavar="GGUF", help="weights of a model")
    options = parser.parse_args()
    if not PYTHON.exists() or not _llamacpp.available():
        _common.lacks("torch and llama.cpp are not both installed: run shells/setup.sh --train and --llamacpp")
    if not options.quick and not options.weights.exists():
        _common.lacks(f"there is no file {options.weights}: run shells/setup.sh --instruct")
    weights = None if options.quick else options.weights.resolve()
    model = str(weights or "smollm2")
    with tempfile.TemporaryDirectory() as name:
        drawn, file = Path(name) / "adapter", Path(name) / "adapter.gguf"
        run(PYTHON, "-c", DRAWN, model, drawn, SPREAD)
        run(PYTHON, _common.ROOT / "bench" / "_gguf_adapter.py", drawn, file, *([weights] if weights else []))
        peft, base = by_peft(str(drawn)), by_peft(model)
        ours, plain = by_llamacpp(weights, file), by_llamacpp(weights, None)
    shared = [len(one.keys() & other.keys()) for one, other in zip(peft, ours, strict=True)]
    figures = [
        _common.Figure("adapter_changes", difference(peft, base)),
        _common.Figure("base_difference", difference(plain, base)),
        _common.Figure("tokens_that_both_name", sum(shared)),
        _common.Figure("adapter_difference", difference(ours, peft), GOAL, at_least=False),
    ]
    _common.finish(options, figures, noise, _common.versions("exact-agent"), {"weights": model.rpartition("/")[2]})


if __name__ == "__main__":
    main()
