"""Measure the accuracy of value functions on recorded states of MiniWoB++ tasks with known outcomes.

The states are in bench/states.jsonl.gz. They were drawn at random from searches of the tasks on which the built-in agent was tuned. The
outcome is whether the built-in policy succeeded from the state in a fresh environment, so it is the value of a state *for that policy*.
Prints accuracy at 0.5, Brier score, expected calibration error and area under the curve, with intervals over tasks, and the calls, tokens
and dollars of each value function, in all and for one judgement.

The rows marked "simulated" ask a simulated model, which believes what the built-in value function says, with noise
(bench/_simulated_judge.py): they compare how kinds ask and what they cost, not how well a model judges.

    python bench/judges.py                                         the built-in value function, a constant one, and simulated judges
    python bench/judges.py --local KIND ...                        also these kinds with a small model (shells/setup.sh --llamacpp)
    python bench/judges.py --config shells/configs/X.yaml ...      also the value functions of these configurations (they ask their models)
    python bench/judges.py --states N --config ...                 on the first N states only
    python bench/judges.py --make FOLDER                           record the states again from new runs in FOLDER (half an hour)
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import _common
import _llamacpp
import msgspec
from _attempts import LEXICAL
from _simulated_judge import SimulatedJudge

from exact.agents.agent import build_agent
from exact.agents.base import ValueFunction
from exact.agents.roles import roles
from exact.benchmarks import registry
from exact.calibration.collect import evaluated_nodes, label, open_source
from exact.calibration.measure import Prediction, auc, brier, ece, interval
from exact.config import Config, load, parse
from exact.context import Context
from exact.errors import InfrastructureError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, WrappedModel
from exact.models.open import Models
from exact.runs.attempt.observations import agent_context
from exact.runs.journal.store import RunFolder
from exact.runs.runner import open_models

STATES = _common.ROOT / "bench" / "states.jsonl.gz"
COUNT, QUICK = 160, 60


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded state and what became of it."""

    context: Context
    success: bool


class Metered(WrappedModel):
    """A model that counts what it was asked."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model)
        self.calls, self.read, self.written, self.money, self.unknown = 0, 0, 0, 0.0, 0

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        answer = await self._model.complete(request)
        self.calls += 1
        self.read += answer.usage.input_tokens
        self.written += answer.usage.output_tokens
        self.money += answer.usage.cost or 0.0
        self.unknown += answer.usage.cost is None
        return answer


class Row(NamedTuple):
    """One value function's results."""

    name: str
    judged: list[Prediction]
    failed: int
    calls: int
    read: int
    written: int
    """Tokens in and out."""
    money: float
    unknown: int
    """Calls whose cost is not known: then `money` is less than what was paid."""

    @property
    def tokens(self) -> int:
        return self.read + self.written

    @property
    def each(self) -> str:
        """Format the tokens in and out and the dollars of one judgement, in millionths."""
        judged = max(1, len(self.judged) + self.failed)
        money = "-" if self.unknown else f"{self.money / judged * 1e6:.0f}"
        return f"{self.read / judged:.0f} + {self.written / judged:.0f}, {money}"

    @property
    def dollars(self) -> str:
        return f"{self.money:.4f}" + (f" + {self.unknown} unknown" if self.unknown else "")

    def shown(self, figure: Callable[[Sequence[Prediction]], float | None]) -> str:
        """Format a figure with its interval."""
        found = interval(self.judged, figure) if self.judged else None
        return "-" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def recorded() -> list[State]:
    return [msgspec.json.decode(line, type=State) for line in gzip.decompress(STATES.read_bytes()).splitlines()]


async def judge(name: str, settings: Config, states: Sequence[State], model: ChatModel | None = None) -> Row:
    """Evaluate all states with a value function, eight at a time. `model` stands for all of its models, where one is given."""
    opened = Models(settings.models, folder=_common.ROOT / ".bench")
    asked = open_models(settings, opened) if model is None else dict.fromkeys(roles(settings), model)
    models = {role: Metered(each) for role, each in asked.items()}
    value, room = build_agent(settings, models.__getitem__).value, asyncio.Semaphore(8)

    async def one(index: int, state: State, value: ValueFunction) -> Prediction | None:
        async with room:
            try:
                found = await value.evaluate(msgspec.structs.replace(state.context, node=index))
            except InfrastructureError as error:
                print(f"{name}, state {index}: {error}", file=sys.stderr)
                return None
        return Prediction(state.context.task.id.partition("?")[0], index, found.value, state.success)

    try:
        found = await asyncio.gather(*(one(i, state, value) for i, state in enumerate(states)))
    finally:
        await opened.close()
    judged = [each for each in found if each is not None]
    meters = models.values()
    return Row(
        name, judged, len(found) - len(judged), sum(m.calls for m in meters), sum(m.read for m in meters), sum(m.written for m in meters),
        sum(m.money for m in meters), sum(m.unknown for m in meters),
    )  # fmt: skip


KINDS: dict[str, dict[str, object]] = {
    "llm": {"kind": "llm"},
    "debate": {"kind": "debate"},
    "logprob": {"kind": "logprob"},
    "debate_logprob": {"kind": "debate", "verdict": "logprob"},
}
"""Value functions of the rows with a simulated model, and with a small one."""


async def simulated(states: Sequence[State], builtin: Row) -> list[Row]:
    """Evaluate all states with each kind, by a model that believes what the built-in value function says."""
    values = {one.node: one.value for one in builtin.judged}
    model = SimulatedJudge([values[node] for node in range(len(states))])
    named = {"models": {"policy": {"model": "simulated"}}, "reflection": {"kind": "none"}}
    return [await judge(f"{name} (simulated)", parse({"value": value} | named), states, model) for name, value in KINDS.items()]


async def local(kinds: Sequence[str], states: Sequence[State]) -> list[Row]:
    """Evaluate all states with each of some kinds by a small model on this machine, with one sample each."""
    with _llamacpp.serving(slots=2, context=6144) as server:
        model = {"model": _llamacpp.MODEL, "provider": "llamacpp", "base_url": server.base_url, "max_tokens": 200, "timeout": 1200}
        named = {"models": {"policy": model | {"structured": "always", "price": {"input": 0, "output": 0}}}, "reflection": {"kind": "none"}}
        values = {kind: KINDS[kind] | {"samples": 1} for kind in kinds}
        return [await judge(f"{kind} ({_llamacpp.MODEL})", parse({"value": values[kind]} | named), states) for kind in kinds]


def accuracy(judged: Sequence[Prediction]) -> float:
    """Return the accuracy of predicting success from a value of 0.5 on."""
    return statistics.fmean((one.value >= 0.5) == one.success for one in judged)


async def make(folder: Path) -> None:
    """Search tasks of the tuned half, draw states, let the policy finish from each, and keep them."""
    names = [id.partition("?")[0] for id in registry.suite("miniwob").lists()["browsergym"]]
    tuned = [name for name in names if int(hashlib.sha256(name.partition("/")[2].encode()).hexdigest()[0], 16) % 2 == 0]
    run = folder / "run"
    if not run.exists():
        config = _common.ROOT / "shells" / "configs" / "rmcts_builtin.yaml"
        settings = [
            "--set",
            "policy.kind=lexical",
            "--set",
            "value.kind=lexical",
            "--set",
            "search.iterations=12",
            "--set",
            "limits.transitions=60",
            "--set",
            "browser.screenshots=false",
        ]
        command = [sys.executable, "-m", "exact.cli", "run", *(f"{name}?seed={seed}" for name in tuned for seed in (20,))]
        await asyncio.to_thread(subprocess.run, [*command, "--config", str(config), "--out", str(run), *settings], check=False)
    source = open_source(RunFolder.open(run))
    nodes = {(task.id, node.id): (task, state, node) for task, state, node in evaluated_nodes(source)}
    policy = build_agent(source.config, {}.__getitem__).policy
    states = list[State]()
    async for each in label(
        source, COUNT, environments=lambda task: registry.suite(task.id).environments(source.config.browser), policy=policy, seed=1
    ):
        if each.reason:
            continue
        task, state, node = nodes[each.task, each.node]
        seen = agent_context(state, source.folder.blobs, task, node, state.search.moment(-1, node))
        states.append(State(context=seen, success=each.success))
        print(f"{len(states)}: {each.task} state {each.node}: {'success' if each.success else 'failure'}", file=sys.stderr, flush=True)
    STATES.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, states)), mtime=0))


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--config", type=Path, nargs="*", default=[], help="configurations whose value functions are judged too")
    parser.add_argument("--states", type=int, metavar="N", help="only the first N states")
    parser.add_argument("--local", nargs="*", default=[], choices=KINDS, metavar="KIND", help="kinds to judge by with a small local model")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="record the states anew")
    return parser.parse_args()


async def main() -> int:
    options, noise = parsed(), _common.Noise()
    if options.make:
        await make(options.make)
    states = recorded()
    if options.states or options.quick:
        states = states[: options.states or QUICK]
    configs = {"builtin": parse(LEXICAL), "constant": parse({"value": {"kind": "constant"}})}
    configs |= {path.stem: load(path) for path in options.config}
    noise.probe()
    rows = [await judge(name, settings, states) for name, settings in configs.items()]
    rows += await simulated(states, rows[0])
    if options.local:
        if not _llamacpp.available():
            _common.lacks(_llamacpp.MISSING)
        rows += await local(options.local, states)
    noise.probe()
    tasks, rate = len({state.context.task.id for state in states}), statistics.fmean(state.success for state in states)
    print(f"{len(states)} states of {tasks} tasks, {rate:.0%} succeed\n")
    _common.table(
        ["value function", "accuracy", "Brier", "ECE", "AUC", "failed", "calls", "tokens", "dollars", "each: tokens in + out, $ / 1e6"],
        [
            [row.name, *map(row.shown, (accuracy, brier, ece, auc)), *map(str, (row.failed, row.calls, row.tokens)), row.dollars, row.each]
            for row in rows
        ],
    )
    builtin = rows[0].judged
    figures = [_common.Figure("builtin_brier", brier(builtin)), _common.Figure("builtin_auc", auc(builtin) or 0.0)]
    spent = {row.name.partition(" ")[0]: row.money for row in rows if row.name.endswith("(simulated)")}
    figures += [
        _common.Figure("debate_price_in_logprobs", spent["debate"] / spent["logprob"], goal=10),
        _common.Figure("llm_price_in_logprobs", spent["llm"] / spent["logprob"]),
    ]
    details = {
        "rows": [
            {
                "name": row.name,
                "accuracy": accuracy(row.judged),
                "brier": brier(row.judged),
                "ece": ece(row.judged),
                "auc": auc(row.judged),
                "failed": row.failed,
                "calls": row.calls,
                "tokens": row.tokens,
                "tokens_in": row.read,
                "tokens_out": row.written,
                "dollars": row.money,
                "unknown": row.unknown,
            }
            for row in rows
            if row.judged
        ]
    }
    _common.finish(options, figures, noise, _common.versions("exact-agent"), details)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
