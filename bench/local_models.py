"""Run agents against a real llama.cpp server with a model of 135 million parameters (`shells/setup.sh --llamacpp`), on one thread.

Two questions, of which neither is how well the model solves tasks:

- Which form of answers does a small model keep to? On recorded states (bench/states.jsonl.gz), with ids or labels, with or without a
  grammar: the share of answers that parse, that name an element that is there, and that name the intended one. Intended is what the
  built-in policy names, in states from which it succeeded.
- Is an attempt ever lost to the server? ReAct, and R-MCTS with reflections by the model and debate, rubrics or the probability of one token
  as judge, on ten tasks of MiniWoB++, with and without a grammar.

    python bench/local_models.py [--states N] [--tasks N] [--seconds S] [--work FOLDER]

On a quiet core an answer takes 2 to 5 seconds, most of which are the prompt's tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gzip
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _common
import _llamacpp
import msgspec

from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.parse import parse_action
from exact.agents.policy.llm import LLMPolicy
from exact.config import ModelConfig, PolicyConfig, ViewConfig
from exact.context import Context
from exact.environments.browser.act.grammar import PAGE_ACTIONS
from exact.errors import ActionError
from exact.models.base import Choice
from exact.models.openai import OpenAIModel, sampling
from exact.prompts.ask import call_seed

STATES = _common.ROOT / "bench" / "states.jsonl.gz"
TASKS = (
    *("click-button", "click-link", "click-test", "click-tab", "click-dialog"),
    *("click-checkboxes", "click-option", "enter-text", "focus-text", "login-user"),
)
ELEMENTS, GRAMMARS = ("id", "label"), ("none", "action", "answer")
JUDGES = {
    "debate": {"kind": "debate", "samples": 1, "most": 1},
    "rubric": {"kind": "rubric", "samples": 1, "most": 1},
    "logprob": {"kind": "logprob"},
}
SLOTS, CONTEXT, ANSWER = 8, 4096, 64
"""Slots of the server and their tokens, and the most tokens of an answer."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded state and whether the built-in policy succeeded from it."""

    context: Context
    success: bool


class Form(NamedTuple):
    """Shares of the answers in one form."""

    elements: str
    grammar: str
    answers: int
    parsed: int
    existing: int
    """Answers that name an element, each of which is there."""
    intended: int
    asked: int
    """Answers in states with a known intended element."""
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.elements}_{self.grammar}"


def model_config(base_url: str, **fields: Any) -> dict[str, Any]:
    given = {"model": "local", "provider": "llamacpp", "base_url": base_url, "temperature": 0.7, "max_tokens": ANSWER, "timeout": 300.0}
    return given | {"price": {"input": 0, "output": 0}} | fields


async def forms(base_url: str, count: int, grammars: Sequence[str]) -> list[Form]:
    """Ask the policy's question once in each of `count` states, in each form."""
    lines = gzip.decompress(STATES.read_bytes()).splitlines()
    states = [state for line in lines if not (state := msgspec.json.decode(line, type=State)).context.terminated][:count]
    model = OpenAIModel(msgspec.convert(model_config(base_url), ModelConfig))
    try:
        intended = [await intention(state) for state in states]
        found = list[Form]()
        for elements, grammar in itertools.product(ELEMENTS, grammars):
            found.append(await form(model, states, intended, elements, grammar))
            print(f"{found[-1].name}: {found[-1].parsed} of {found[-1].answers} parse", file=sys.stderr, flush=True)
        return found
    finally:
        await model.close()


async def intention(state: State) -> str | None:
    """Return the id of the element that the built-in policy names; None where it names none, or did not succeed."""
    if not state.success:
        return None
    best = await LexicalPolicy().propose(state.context, PAGE_ACTIONS, 1)
    return best[0].action.elements[0] if best and best[0].action.elements else None


async def form(model: OpenAIModel, states: Sequence[State], intended: Sequence[str | None], elements: Any, grammar: Any) -> Form:
    config = PolicyConfig(kind="llm", samples=1, elements=elements, grammar=grammar)
    view = ViewConfig(history=2, observation_tokens=600)
    policy = LLMPolicy(model, config, view, sampling=sampling(msgspec.convert(model_config(""), ModelConfig)))
    parsed = existing = hits = 0
    began = time.perf_counter()
    for index, (state, wanted) in enumerate(zip(states, intended, strict=True)):
        request = policy._request("", state.context, PAGE_ACTIONS, samples=1)
        drawn = msgspec.structs.replace(request.sampling, seed=call_seed(1, "policy", index, 0))
        answer = await model.complete(msgspec.structs.replace(request, sampling=drawn))
        try:
            action = read(answer.choices[0], state.context, labels=elements == "label")
        except ActionError:
            continue
        parsed += 1
        existing += bool(action.elements)
        hits += bool(action.elements) and action.elements[0] == wanted
    known = sum(wanted is not None for wanted in intended)
    return Form(elements, grammar, len(states), parsed, existing, hits, known, time.perf_counter() - began)


def read(choice: Choice, context: Context, *, labels: bool) -> Any:
    if choice.finish == "length":
        raise ActionError("the answer was cut off")
    return parse_action(choice.text, PAGE_ACTIONS, context.observation, labels=labels).action


class Arm(NamedTuple):
    """The attempts of one agent."""

    name: str
    attempts: int
    lost: int
    """Attempts without a verdict."""
    solved: int
    actions: int
    calls: int
    again: int
    """Calls that repeat a question, because no answer to it was read."""
    seconds: float
    reasons: dict[str, int]


def agent(name: str, base_url: str, judge: str | None, grammar: str, seconds: float) -> dict[str, Any]:
    """Return the configuration of an agent: R-MCTS with a judge, or ReAct."""
    config: dict[str, Any] = {
        "name": name,
        "view": {"history": 2, "observation_tokens": 600},
        "policy": {"kind": "llm", "samples": 2, "grammar": grammar, "elements": "label"},
        "models": {"policy": model_config(base_url)},
        "limits": {"actions": 2, "seconds": seconds},
        "browser": {"screenshots": False},
    }
    if judge is None:
        return config | {"search": {"algorithm": "react"}, "value": {"kind": "constant"}, "reflection": {"kind": "none"}}
    search = {"algorithm": "mcts", "iterations": 2, "k": 2, "depth": 2}
    reflection = {"kind": "llm", "signals": ["policy", "outcome"], "threshold": 0.05, "k": 1}
    return config | {"search": search, "value": JUDGES[judge], "reflection": reflection}


def attempts(name: str, config: dict[str, Any], tasks: Sequence[str], work: Path) -> Arm:
    """Run an agent on the tasks by `exact run`, unless the folder has its results, and read results and journals."""
    file, out = work / f"{name}.yaml", work / name
    if len(lines(out / "results.jsonl")) < len(tasks):
        shutil.rmtree(out, ignore_errors=True)
        file.write_text(json.dumps(config))
        ids = [f"miniwob/{task}?seed=7000" for task in tasks]
        command = [sys.executable, "-m", "exact.cli", "run", *ids, "--config", str(file), "--out", str(out)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not (out / "run.json").exists():
            raise RuntimeError(f"the run of {name} did not begin: {done.stderr[-500:]}")
    results = lines(out / "results.jsonl")
    calls = [event for path in out.glob("**/journal.jsonl") for event in lines(path) if event.get("event") == "called"]
    reasons = collections.Counter(short(line["reason"] or line["status"]) for line in results)
    return Arm(
        name=name,
        attempts=len(tasks),
        lost=sum(line["status"] == "failed" for line in results) + len(tasks) - len(results),
        solved=sum(line["score"] == 1.0 for line in results),
        actions=sum(line["actions"] for line in results),
        calls=len(calls),
        again=sum(call["attempt"] > 0 for call in calls),
        seconds=sum(line["seconds"] for line in results),
        reasons=dict(reasons.most_common()),
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def short(reason: str) -> str:
    return reason if len(reason) <= 100 else f"{reason[:99]}…"


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--states", type=int, default=40, help="recorded states that the policy is asked in")
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="tasks of each agent")
    parser.add_argument("--seconds", type=float, default=300.0, help="cap on one attempt")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep the runs there, and go on with those that it has")
    return parser.parse_args()


def main() -> int:
    options, noise = parsed(), _common.Noise()
    if not _llamacpp.available():
        _common.lacks(_llamacpp.MISSING)
    arms = [(judge, grammar) for judge in (None, *JUDGES) for grammar in ("none", "action")]
    grammars = GRAMMARS
    if options.quick:
        options.states, options.tasks, options.seconds = 1, 1, 8.0
        grammars, arms = ("none", "action"), [(None, "action"), ("logprob", "action")]
    noise.probe()
    with tempfile.TemporaryDirectory() as temporary, _llamacpp.serving(slots=SLOTS, context=CONTEXT) as server:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        kept = work / "forms.json"
        if not kept.exists():
            kept.write_text(json.dumps(asyncio.run(forms(server.base_url, options.states, grammars))))
        asked = [Form(*row) for row in json.loads(kept.read_text())]
        _common.table(
            ["form of elements, grammar", "answers", "parse", "element is there", "intended", "of", "seconds"],
            [[f"{f.elements}, {f.grammar}", *map(str, f[2:7]), f"{f.seconds:.0f}"] for f in asked],
        )
        noise.probe()
        rows = list[Arm]()
        for judge, grammar in arms:
            name = f"{'react' if judge is None else f'rmcts_{judge}'}_{grammar}"
            config = agent(name, server.base_url, judge, grammar, options.seconds)
            rows.append(attempts(name, config, TASKS[: options.tasks], work))
            print(f"{name}: {rows[-1].lost} of {rows[-1].attempts} lost, {rows[-1].seconds:.0f} s", file=sys.stderr, flush=True)
            noise.probe()
    print()
    _common.table(
        ["agent, grammar", "attempts", "lost", "solved", "actions", "calls", "asked again", "seconds"],
        [[row.name, *map(str, row[1:7]), f"{row.seconds:.0f}"] for row in rows],
    )
    for row, (reason, count) in itertools.chain.from_iterable(zip(itertools.repeat(row), row.reasons.items()) for row in rows):
        print(f"{row.name}: {count} x {reason}")
    share = {form.name: form.parsed / form.answers for form in asked}
    figures = [_common.Figure("attempts_lost_to_the_server", sum(row.lost for row in rows), goal=0, at_least=False)]
    figures += [_common.Figure(f"parsed_{name}", value) for name, value in share.items()]
    figures += [_common.Figure(f"intended_{each.name}", each.intended / each.asked) for each in asked if each.asked]
    details = {"forms": [each._asdict() for each in asked], "agents": [row._asdict() for row in rows], "slots": SLOTS, "context": CONTEXT}
    _common.finish(options, figures, noise, _common.versions("openai", "msgspec"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
