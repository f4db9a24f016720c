"""Measure the accuracy of value functions on recorded states of MiniWoB++ tasks with known outcomes.

The states are in bench/states.jsonl.gz. They were drawn at random from searches of the tasks on which the built-in agent was tuned. The
outcome is whether the built-in policy succeeded from the state in a fresh environment, so it is the value of a state *for that policy*.
Prints accuracy at 0.5, Brier score and area under the curve, with intervals over tasks, and the cost of each value function.

    python bench/judges.py                                         the built-in value function and a constant one
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
import msgspec

from exact.agents.agent import build_agent
from exact.agents.base import ValueFunction
from exact.benchmarks import registry
from exact.calibration.collect import evaluated_nodes, open_source
from exact.calibration.label import label
from exact.calibration.measure import Prediction, auc, brier, interval
from exact.config import Config, load, parse
from exact.context import Context
from exact.errors import InfrastructureError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Price
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


class Metered:
    """A model that counts what it was asked."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.calls, self.tokens, self.money, self.unknown = 0, 0, 0.0, 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def price(self) -> Price | None:
        return self._model.price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        answer = await self._model.complete(request)
        self.calls += 1
        self.tokens += answer.usage.input_tokens + answer.usage.output_tokens
        self.money += answer.usage.cost or 0.0
        self.unknown += answer.usage.cost is None
        return answer

    async def close(self) -> None:
        await self._model.close()


class Row(NamedTuple):
    """One value function's results."""

    name: str
    judged: list[Prediction]
    failed: int
    calls: int
    tokens: int
    money: float
    unknown: int
    """Calls whose cost is not known: then `money` is less than what was paid."""

    @property
    def dollars(self) -> str:
        return f"{self.money:.4f}" + (f" + {self.unknown} unknown" if self.unknown else "")

    def shown(self, figure: Callable[[Sequence[Prediction]], float | None]) -> str:
        """Format a figure with its interval."""
        found = interval(self.judged, figure) if self.judged else None
        return "-" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def recorded() -> list[State]:
    return [msgspec.json.decode(line, type=State) for line in gzip.decompress(STATES.read_bytes()).splitlines()]


async def judge(name: str, settings: Config, states: Sequence[State]) -> Row:
    """Evaluate all states with a value function, eight at a time."""
    opened = Models(settings.models, folder=_common.ROOT / ".bench")
    models = {role: Metered(model) for role, model in open_models(settings, opened).items()}
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
        name, judged, len(found) - len(judged), sum(m.calls for m in meters), sum(m.tokens for m in meters),
        sum(m.money for m in meters), sum(m.unknown for m in meters),
    )  # fmt: skip


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
        settings = ["--set", "search.iterations=12", "--set", "limits.transitions=60", "--set", "browser.screenshots=false"]
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
        seen = agent_context(state, source.folder.blobs, task, node, state.moment(-1, node))
        states.append(State(context=seen, success=each.success))
        print(f"{len(states)}: {each.task} state {each.node}: {'success' if each.success else 'failure'}", file=sys.stderr, flush=True)
    STATES.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, states)), mtime=0))


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--config", type=Path, nargs="*", default=[], help="configurations whose value functions are judged too")
    parser.add_argument("--states", type=int, metavar="N", help="only the first N states")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="record the states anew")
    return parser.parse_args()


async def main() -> int:
    options, noise = parsed(), _common.Noise()
    if options.make:
        await make(options.make)
    states = recorded()
    if options.states or options.quick:
        states = states[: options.states or QUICK]
    configs = {"builtin": parse({}), "constant": parse({"value": {"kind": "constant"}})}
    configs |= {path.stem: load(path) for path in options.config}
    noise.probe()
    rows = [await judge(name, settings, states) for name, settings in configs.items()]
    noise.probe()
    tasks, rate = len({state.context.task.id for state in states}), statistics.fmean(state.success for state in states)
    print(f"{len(states)} states of {tasks} tasks, {rate:.0%} succeed\n")
    _common.table(
        ["value function", "accuracy", "Brier", "AUC", "failed", "calls", "tokens", "dollars"],
        [[row.name, *map(row.shown, (accuracy, brier, auc)), *map(str, row[2:5]), row.dollars] for row in rows],
    )
    builtin = rows[0].judged
    figures = [_common.Figure("builtin_brier", brier(builtin)), _common.Figure("builtin_auc", auc(builtin) or 0.0)]
    details = {
        "rows": [
            {
                "name": row.name,
                "accuracy": accuracy(row.judged),
                "brier": brier(row.judged),
                "auc": auc(row.judged),
                "failed": row.failed,
                "calls": row.calls,
                "tokens": row.tokens,
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
