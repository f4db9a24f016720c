"""`exact show`: print the statistics, warnings and principal variation of a search, or one state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo
from exact.text import counted

if TYPE_CHECKING:
    from exact.context import Evaluation
    from exact.report.model.reading import Reading
    from exact.search.inspect.health import Symptom
    from exact.search.tree import Edge, Node

_WIDEST = 10_000
"""Columns of a drawing that is written to a pipe."""


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option("--node", metavar="N", type=int, help="State to show, with its actions and the principal variation from it.")
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed: 'miniwob/click-*'.")
@click.option(
    "--tree", "depth", metavar="DEPTH", type=click.IntRange(1), help="Also draw the tree to this depth, from the start or the node."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
@on_storage("run")
def show(run: Path, node: int | None, pattern: str | None, depth: int | None, as_json: bool) -> None:
    """Print the statistics, warnings and principal variation of each search of RUN.

    A running, interrupted or torn journal is shown up to its end.
    """
    from exact.cli.report import started_tasks
    from exact.config import load_recorded
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder

    folder = RunFolder.open(run)
    config = load_recorded(folder.path)
    for task in started_tasks(folder, pattern):
        reading = Reading(folder.task_folder(task) / "journal.jsonl", config, folder.blobs)
        at = _node(reading, node)
        echo(_as_json(task.id, reading, at) if as_json else "\n".join(_lines(task.id, reading, at, whole=node is None)))
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
            branch = at.add(Text(_edge(edge), style=style))
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


def _lines(task: str, reading: Reading, node: Node, *, whole: bool) -> Iterator[str]:
    from exact.report.model.routes import lines, travel
    from exact.report.model.text import one_line
    from exact.search.inspect.stats import stats

    figures = stats(reading.state.search.tree, node)
    yield one_line(task)
    if whole and reading.config.value.kind == "reward":
        yield "  trained with reward: the search read the environment's rewards"
    if not whole:
        yield from _state(node)
    below = "" if whole else "below it: "
    size = f"{counted(figures.states, 'state')}, {counted(figures.evaluations, 'evaluation')}"
    yield f"  {below}{size}, {figures.depth} deep (mean {figures.mean_depth:.1f})"
    yield f"  {counted(figures.proposals, 'proposal')}, {_figure(figures.branching)} a state, {_percent(figures.unused)} never tried"
    yield f"  visit entropy {_figure(figures.entropy)}, agreement of Q and V {_figure(figures.agreement)}"
    if whole:
        yield from (f"  {line}" for line in lines(travel(reading)))
        yield from (f"  warning: {symptom.text}" for symptom in _health(reading))
        if reading.state.live.ended is not None and reading.state.live.ended.answer is not None:
            yield f"  answer: {one_line(reading.state.live.ended.answer) or '(empty)'}"
    yield "  principal variation:"
    yield from (f"    {_edge(edge)}" for edge in _principal(reading, node))
    yield from (f"  {one_line(warning)}" for warning in reading.warnings)


def _state(node: Node) -> Iterator[str]:
    from exact.report.model.text import one_line

    kind = " end" if node.terminated else " blocked" if node.blocked else " not tried" if node.unreached else ""
    value = f"V {_figure(node.value)} of {counted(node.evaluations, 'evaluation')}"
    yield f"  node {node.id}{kind}, depth {node.depth}, N {node.visits}, {value}"
    yield f"  fingerprint {one_line(node.fingerprint) or '-'}, observation {node.observation[:12] or '-'}"
    if node.closed:
        yield f"  closed: {one_line(node.closed)}"
    if node.evaluation is not None:
        yield from _evaluation(node.evaluation)
    yield from (f"    {index:2} {_edge(edge)}" for index, edge in enumerate(node.edges))


def _evaluation(evaluation: Evaluation) -> Iterator[str]:
    """Yield the first evaluation of a state: its rationale, the disagreement of its samples, and the arguments of a debate."""
    from exact.report.model.text import one_line

    yield f"  value {evaluation.value:.2f}: {one_line(evaluation.rationale) or '-'}"
    if len(evaluation.samples) > 1:
        parts = f"within {evaluation.within:.2f}, between {evaluation.between:.2f}, order effect {evaluation.order_effect:+.2f}"
        yield f"  {counted(len(evaluation.samples), 'sample')}, {parts}"
    yield from (f"    {argument.side}, round {argument.round + 1}: {one_line(argument.text)}" for argument in evaluation.arguments)
    yield from (f"    {one_line(line)}" for line in evaluation.judges)


def _edge(edge: Edge) -> str:
    from exact.report.model.text import LABEL, one_line

    leads = f" -> node {edge.child.id}" if edge.child is not None else ""
    closed = f" ({one_line(edge.closed, LABEL)})" if edge.closed else ""
    return f"P {edge.prior:.2f}  N {edge.visits:3}  Q {_figure(edge.value)}  {one_line(edge.action.key, LABEL)}{leads}{closed}"


def _principal(reading: Reading, node: Node) -> Iterator[Edge]:
    from exact.search.registry import final_choice
    from exact.search.rules.final import principal

    for index in principal(reading.state.search.tree, final_choice(reading.config.search), node):
        yield node.edges[index]
        node = node.edges[index].child or node


def _health(reading: Reading) -> tuple[Symptom, ...]:
    from exact.search.inspect.health import health

    replayed = sum(arrival.transitions for each in reading.arrivals.values() for arrival in each)
    return health(reading.state.search.tree, steps=len(reading.state.search.acted), replayed=replayed)


def _as_json(task: str, reading: Reading, node: Node) -> str:
    import msgspec

    from exact.report.model.routes import travel
    from exact.search.inspect.stats import stats

    variation = [{"action": e.action.key, "prior": e.prior, "visits": e.visits, "value": e.value} for e in _principal(reading, node)]
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
    return "  - " if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{value:.0%}"
