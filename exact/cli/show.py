"""`exact show`: print the searches of a run, one state, the progress of a run or a benchmark, or the cost of model calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage, require_options
from exact.cli.terminal import columns, echo
from exact.text import counted

if TYPE_CHECKING:
    from exact.context import Evaluation
    from exact.evaluation.status import AgentStatus
    from exact.observation import Observation
    from exact.report.model.reading import Reading
    from exact.runs.journal.costs import CallCost
    from exact.search.inspect.health import Symptom
    from exact.search.tree import Edge, Node
    from exact.task import Task

_PROGRESS = ("agent", "tasks", "done", "solved", "running", "failed", "left", "dollars")
_COST = ("calls", "tokens in", "cached", "out", "dollars", "abandoned")
_WIDEST = 10_000
"""Columns of a drawing that is written to a pipe."""


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--progress", is_flag=True, help="Print how far RUN is, which may be a benchmark: attempts, their cost, and the time left.")
@click.option("--cost", is_flag=True, help="Print the tokens and money of the model calls.")
@click.option(
    "--by",
    type=click.Choice(["role", "node", "model", "prompt", "task"]),
    default="role",
    show_default=True,
    help="--cost: grouping of the calls.",
)
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed: 'miniwob/click-*'.")
@click.option("--node", metavar="N", type=int, help="State to show, with its actions and the principal variation from it.")
@click.option(
    "--tree", "depth", metavar="DEPTH", type=click.IntRange(1), help="Also draw the tree to this depth, from the start or the node."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, of searches one on each line.")
@on_storage("run")
def show(
    run: Path, progress: bool, cost: bool, by: str, pattern: str | None, node: int | None, depth: int | None, as_json: bool
) -> None:  # fmt: skip
    """Print the statistics, warnings and principal variation of each search of RUN, or its progress or cost.

    RUN is a folder of `exact run`, or BENCH/agents/NAME of `exact bench`. A running, interrupted or torn journal is shown up to its end.

    With --progress, the time left and the dollars an hour assume that attempts continue as before. With --cost, calls at an unknown price
    are counted as unknown, and abandoned requests, which the provider may have charged for, are counted too.
    """
    if progress and cost:
        raise click.UsageError("--progress excludes --cost: choose one")
    if progress:
        require_options("with --progress", "progress", "as_json")
        _progress(run, as_json)
    elif cost:
        require_options("with --cost", "cost", "by", "pattern", "as_json")
        _cost(run, by, pattern, as_json)
    else:
        require_options("without --cost", "pattern", "node", "depth", "as_json")
        _searches(run, pattern, node, depth, as_json)


def _searches(run: Path, pattern: str | None, id: int | None, depth: int | None, as_json: bool) -> None:
    from exact.cli.report import started_tasks
    from exact.config import load_recorded
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder

    folder = RunFolder.open(run)
    config = load_recorded(folder.path)
    for task in started_tasks(folder, pattern):
        reading = Reading(folder.task_folder(task) / "journal.jsonl", config, folder.blobs)
        at = _node(reading, id)
        echo(_as_json(task.id, reading, at) if as_json else "\n".join(_lines(task, reading, at, whole=id is None)))
        if depth is not None and not as_json:
            _draw(reading, at, depth)


def _draw(reading: Reading, node: Node, depth: int) -> None:
    """Draw the tree below a state on the terminal: committed actions in bold, closed ones dimmed."""
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree as Drawn

    path = frozenset(reading.state.live.path)
    drawn = Drawn(Text(f"state {node.id}  V {_figure(node.value)}  N {node.visits}"))
    below, known = [(node, drawn)], {node.id}
    while below:
        here, at = below.pop()
        for edge in here.edges:
            child, style = edge.child, "dim" if edge.closed else "bold" if edge.child and edge.child.id in path and here.id in path else ""
            branch = at.add(Text(_edge(edge, reading.seen(here)), style=style))
            if child is not None and child.id not in known and child.depth < node.depth + depth:
                known.add(child.id)
                below.append((child, branch))
    console = Console(highlight=False)
    if not console.is_terminal:  # a pipe or a file has no width: nothing is cut
        console = Console(highlight=False, width=_WIDEST)
        with console.capture() as captured:
            console.print(drawn)
        echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
        return
    console.print(drawn, soft_wrap=True)


def _node(reading: Reading, id: int | None) -> Node:
    """Return the state of an id, by default the first. Raises UsageError if the tree has no such state."""
    from exact.errors import UsageError

    nodes = reading.state.search.tree.nodes
    if id is not None and not 0 <= id < len(nodes):
        raise UsageError(f"no node {id}: this tree has the nodes 0 to {len(nodes) - 1}; select one task with --task")
    return nodes[id or 0]


def _lines(task: Task, reading: Reading, node: Node, *, whole: bool) -> Iterator[str]:
    from exact.report.model.routes import lines, travel
    from exact.report.model.text import one_line
    from exact.search.inspect.stats import stats

    figures = stats(reading.state.search.tree, node)
    yield one_line(task.id)
    if whole and reading.config.value.kind == "reward":
        yield "  trained with reward: the search read the environment's rewards"
    if not whole:
        yield from _state(reading, node)
    below = "" if whole else "below it: "
    size = f"{counted(figures.states, 'state')}, {counted(figures.evaluations, 'evaluation')}"
    yield f"  {below}{size}, {figures.depth} deep (mean {figures.mean_depth:.1f})"
    yield f"  {counted(figures.proposals, 'proposal')}, {_figure(figures.branching)} a state, {_percent(figures.unused)} never tried"
    yield f"  visit entropy {_figure(figures.entropy)}, agreement of Q and V {_figure(figures.agreement)}"
    if whole:
        yield from (f"  {line}" for line in lines(travel(reading)))
        if (seconds := task.private.get("settle_seconds")) is not None:
            yield f"  states are judged once they have settled, after {seconds} s at the earliest"
        yield from (f"  warning: {symptom.text}" for symptom in _health(reading))
        if reading.state.live.ended is not None and reading.state.live.ended.answer is not None:
            yield f"  answer: {one_line(reading.state.live.ended.answer) or '(empty)'}"
    yield "  principal variation:"
    yield from (f"    {_edge(edge, reading.seen(at))}" for at, edge in _principal(reading, node))
    yield from (f"  {one_line(warning)}" for warning in reading.warnings)


def _state(reading: Reading, node: Node) -> Iterator[str]:
    from exact.report.model.text import one_line

    kind = " end" if node.terminated else " blocked" if node.blocked else " not tried" if node.unreached else ""
    value = f"V {_figure(node.value)} of {counted(node.evaluations, 'evaluation')}"
    yield f"  node {node.id}{kind}, depth {node.depth}, N {node.visits}, {value}"
    yield f"  fingerprint {one_line(node.fingerprint) or '-'}, observation {node.observation[:12] or '-'}"
    if node.closed:
        yield f"  closed: {one_line(node.closed)}"
    if node.evaluation is not None:
        yield from _evaluation(node.evaluation)
    yield from (f"    {index:2} {_edge(edge, reading.seen(node))}" for index, edge in enumerate(node.edges))


def _evaluation(evaluation: Evaluation) -> Iterator[str]:
    """Yield the first evaluation of a state: its rationale, the disagreement of its samples, and the arguments of a debate."""
    from exact.report.model.text import one_line

    yield f"  value {evaluation.value:.2f}: {one_line(evaluation.rationale) or '-'}"
    if len(evaluation.samples) > 1:
        parts = f"within {evaluation.within:.2f}, between {evaluation.between:.2f}, order effect {evaluation.order_effect:+.2f}"
        yield f"  {counted(len(evaluation.samples), 'sample')}, {parts}"
    yield from (f"    {argument.side}, round {argument.round + 1}: {one_line(argument.text)}" for argument in evaluation.arguments)
    yield from (f"    {one_line(line)}" for line in evaluation.judges)


def _edge(edge: Edge, seen: Observation | None) -> str:
    """Return an action with its figures. `seen`: the observation in which it is taken."""
    from exact.report.model.text import LABEL, by_name, one_line

    leads = f" -> node {edge.child.id}" if edge.child is not None else ""
    closed = f" ({one_line(edge.closed, LABEL)})" if edge.closed else ""
    return f"P {edge.prior:.2f}  N {edge.visits:3}  Q {_figure(edge.value):>4}  {by_name(edge.action, seen)}{leads}{closed}"


def _principal(reading: Reading, node: Node) -> Iterator[tuple[Node, Edge]]:
    """Yield the likeliest steps below a state, each with the state that it begins in."""
    from exact.search.registry import final_choice
    from exact.search.rules.final import principal

    for index in principal(reading.state.search.tree, final_choice(reading.config.search), node):
        yield node, node.edges[index]
        node = node.edges[index].child or node


def _health(reading: Reading) -> tuple[Symptom, ...]:
    from exact.search.inspect.health import health

    replayed = sum(arrival.transitions for each in reading.arrivals.values() for arrival in each)
    return health(reading.state.search.tree, steps=len(reading.state.search.acted), replayed=replayed)


def _as_json(task: str, reading: Reading, node: Node) -> str:
    import msgspec

    from exact.report.model.routes import travel
    from exact.search.inspect.stats import stats

    variation = [{"action": e.action.key, "prior": e.prior, "visits": e.visits, "value": e.value} for _, e in _principal(reading, node)]
    return json.dumps(
        {
            "task": task,
            "trained_with_reward": reading.config.value.kind == "reward",
            "node": node.id,
            "stats": msgspec.to_builtins(stats(reading.state.search.tree, node)),
            "health": msgspec.to_builtins(_health(reading)),
            "travel": msgspec.to_builtins(travel(reading)),
            "principal_variation": variation,
            "warnings": reading.warnings,
        }
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{value:.0%}"


def _progress(run: Path, as_json: bool) -> None:
    import msgspec

    from exact.evaluation.status import money_an_hour, seconds_left, status_of

    agents = status_of(run)
    left, an_hour = seconds_left(agents), money_an_hour(agents)
    if as_json:
        plain = [{**msgspec.to_builtins(each), "running": each.running, "waiting": each.waiting} for each in agents]
        echo(msgspec.json.encode({"agents": plain, "dollars_an_hour": an_hour, "seconds_left": left}))
        return
    echo(columns([*map(_agent, agents)], head=_PROGRESS))
    for each in agents:
        for attempt in each.open:
            what = " ".join(f"{each.agent} {attempt.task}".split())
            state, spent = "running" if attempt.running else "interrupted", attempt.spent
            tokens = spent.input_tokens + spent.output_tokens
            rate = f", {tokens / attempt.seconds:,.0f} a second" if attempt.seconds else ""
            echo(f"{state}: {what}, {duration(attempt.seconds)} in, {counted(spent.calls, 'call')}, {tokens:,} tokens{rate}")
    echo(_outlook(agents, left, an_hour, run))


def duration(seconds: float) -> str:
    """Return a duration in words that fit its size: `42 s`, `7 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def _agent(each: AgentStatus) -> tuple[str, ...]:
    counts = (each.tasks, each.done, each.solved, each.running, each.failed, each.waiting)
    return (" ".join(each.agent.split()), *map(str, counts), f"{each.cost:.4f}" + (" + unknown" if each.unknown else ""))


def _outlook(agents: list[AgentStatus], left: float | None, an_hour: float, run: Path) -> str:
    """Return the last line: the time left, or how to continue."""
    if any(each.running for each in agents):
        time = "unknown before the first attempt has ended" if left is None else f"about {duration(left)}"
        return f"time left: {time}; {an_hour:.2f} dollars an hour"
    if any(each.waiting or each.failed for each in agents):
        again = f"exact bench --resume --out {run}" if (run / "bench.json").exists() else f"exact resume {run}"
        return f"nothing is running: `{again}` goes on"
    return "complete"


def _cost(run: Path, by: str, pattern: str | None, as_json: bool) -> None:
    import msgspec

    from exact.cli.report import started_tasks
    from exact.runs.journal.costs import CallCost, cost_by_group, total_cost
    from exact.runs.journal.file import read_journal
    from exact.runs.journal.store import RunFolder

    folder, groups = RunFolder.open(run), dict[str, CallCost]()
    for task in started_tasks(folder, pattern):
        for name, spent in cost_by_group(read_journal(folder.task_folder(task) / "journal.jsonl"), by, task=task.id).items():  # type: ignore[arg-type]
            groups[name] = groups.get(name, CallCost()) + spent
    whole = total_cost(groups.values())
    if as_json:
        echo(msgspec.json.encode({"total": whole, "by": by, "groups": groups}).decode())
        return
    rows = [*(_calls(name or "(none)", spent) for name, spent in groups.items()), _calls("total", whole)]
    echo(columns(rows, head=(by, *_COST)))


def _calls(name: str, spent: CallCost) -> tuple[str, ...]:
    figures = (spent.calls, spent.input_tokens, spent.cached_tokens, spent.output_tokens)
    money = f"{spent.cost:.4f}" + (f" + {spent.unknown} unknown" if spent.unknown else "")
    return (" ".join(name.split()), *(f"{figure:,}" for figure in figures), money, str(spent.unaccounted))
