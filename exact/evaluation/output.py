"""The files made from results: the table, the curves and the page. Each is rewritten as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from exact.evaluation.folder import BenchFolder, Result, write_file
from exact.evaluation.page import render_page
from exact.evaluation.plan import Plan
from exact.evaluation.plot import HEIGHT, WIDTH, curves
from exact.evaluation.published import published_beside
from exact.evaluation.statistics import solved_within
from exact.evaluation.summary import SOLVED, Reward, by_agent, is_void, task_of
from exact.evaluation.table import render_markdown
from exact.runs.journal.file import stated_instruction
from exact.runs.journal.store import RunFolder

INSTRUCTION = 300
"""Characters of a task's text on the page."""
REFRESH = 30.0
"""Seconds between two writes of the outputs while a benchmark runs."""
COSTS = {
    "transitions": "environment steps, replays included",
    "evaluations": "evaluations",
    "calls": "model calls",
    "tokens": "tokens",
    "cost": "US dollars",
    "seconds": "seconds",
}
"""Costs that success may be drawn against, with the label of the axis."""


def write_outputs(folder: BenchFolder, rewards: Mapping[str, Reward] | None = None, *, refresh: int = 0) -> list[Path]:
    """Write table.md, a curve for each cost that any agent had, and index.html. Return their paths. Raises JournalError.

    `refresh`: seconds after which a browser reads the page again, while the benchmark runs; 0: never.
    """
    plan, results = folder.plan, list(folder.gather().values())
    files: dict[Path, str] = {}
    for kind in COSTS:
        if any(getattr(each, kind) for each in results):
            files[folder.path / f"curve_{kind}.svg"] = success_curve(plan, results, kind)
    files[folder.path / "table.md"] = render_markdown(plan, results, rewards)
    first = next(iter(files.values())) if len(files) > 1 else ""
    reports, instructions = _reports(folder), _instructions(folder)
    files[folder.path / "index.html"] = render_page(
        plan, results, first, rewards, reports=reports, instructions=instructions, refresh=refresh
    )
    for path, text in files.items():
        write_file(path, text.encode("utf-8", "replace"))
    return list(files)


async def keep_written(folder: BenchFolder, rewards: Mapping[str, Reward] | None = None, *, every: float = REFRESH) -> None:
    """Write the outputs again and again while a benchmark runs, until cancelled: every `every` seconds where results have come.

    Writing takes at most a twentieth of the time.
    """
    loop, seen = asyncio.get_running_loop(), -1
    while True:
        began = loop.time()
        if (count := len(folder.results())) != seen:
            seen = count
            await asyncio.to_thread(write_outputs, folder, rewards, refresh=max(1, round(every)))
        await asyncio.sleep(max(every, 20 * (loop.time() - began)))


def _reports(folder: BenchFolder) -> dict[tuple[str, str], str]:
    """Return the links to the reports that exist, by agent and task, and to the page of each agent, by agent and an empty task."""
    found: dict[tuple[str, str], str] = {}
    for agent in folder.plan.agents:
        run = RunFolder(folder.agent_path(agent))
        pages = {"": run.path / "index.html"} | {task.id: run.task_folder(task) / "report.html" for task in folder.plan.tasks}
        found |= {(agent, task): path.relative_to(folder.path).as_posix() for task, path in pages.items() if path.exists()}
    return found


def _instructions(folder: BenchFolder) -> dict[str, str]:
    """Return the text of each task: of the task itself, or as an environment stated it."""
    runs = [RunFolder(folder.agent_path(agent)) for agent in folder.plan.agents]
    found = {}
    for task in folder.plan.tasks:
        stated = (stated_instruction(run.task_folder(task) / "journal.jsonl") for run in runs)
        found[task.id] = " ".join((task.instruction or next(filter(None, stated), "")).split())[:INSTRUCTION]
    return found


def success_curve(plan: Plan, results: Sequence[Result], kind: str) -> str:
    """Return an SVG of success against one cost.

    An attempt without a score is left out; one whose cost is unknown counts as unsolved. Published figures are drawn only where they are of
    as many tasks.
    """
    lines, oracles = {}, {each.agent for each in results if each.oracle}
    rewarded = {each.agent for each in results if each.trained_with_reward}
    for agent, group in by_agent(results).items():
        scored = [each for each in group if each.status == "scored" and each.score is not None]
        solved = [getattr(each, kind) for each in scored if each.score is not None and each.score >= SOLVED]
        mark = " (ORACLE)" if agent in oracles else " (TRAINED WITH REWARD)" if agent in rewarded else ""
        lines[agent + (" (ORACLE, VOID)" if is_void(group) else mark)] = solved_within(solved, max(1, len(scored)))
    tasks = len({task_of(task.id) for task in plan.tasks})
    published = {f"{each.label}\n{each.split}": each.success for each in published_beside(plan.suite, tasks)}
    return curves(lines, x=COSTS[kind], title=f"{plan.suite}: budget {plan.stated_budget}", published=published)


async def as_png(svg: Path) -> Path:
    """Render an SVG file as a PNG beside it, by the browser. Return its path. Raises EnvironmentFailure."""
    from exact.config import BrowserConfig
    from exact.environments.browser.launch.launch import launch

    path, drawing = svg.with_suffix(".png"), await asyncio.to_thread(svg.read_text, "utf-8")
    config = BrowserConfig(width=WIDTH, height=HEIGHT)
    async with launch(config) as browser:
        context, drawn = await browser.open_context(config, ())
        await drawn.set_content(f"<style>body{{margin:0}}</style>{drawing}")
        write_file(path, await drawn.screenshot())
        await browser.close_context(context)
    return path
