"""The files made from results: the table, the curves and the page. Each is rewritten as a whole.

Success against cost as SVG: the share of attempts that an agent solved at a cost of at most x.

The HTML page of a benchmark: one file, without scripts or external resources.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from exact.evaluation.folder import BenchFolder, Result, write_file
from exact.evaluation.plan import Plan
from exact.evaluation.statistics import solved_within
from exact.evaluation.summary import COSTS, SOLVED, Reward, by_agent, is_void, summarise, task_of, versus
from exact.evaluation.table import (
    REPLAYS,
    WAITING,
    advised,
    failed_cell,
    format_number,
    published_beside,
    published_on,
    render_markdown,
    replays_cell,
    session_notes,
    specialised,
)
from exact.report.suite import PICTURES, LastState, last_state, result_row
from exact.runs.journal.file import stated_instruction
from exact.runs.journal.store import RunFolder

INSTRUCTION = 300
"""Characters of a task's text on the page."""
TITLE = 80
"""Characters of a chart's title, which its width can hold."""
REFRESH = 30.0
"""Seconds between two writes of the outputs while a benchmark runs."""
CURVES_BY = {
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
    for kind in CURVES_BY:
        if any(getattr(each, kind) for each in results):
            files[folder.path / f"curve_{kind}.svg"] = success_curve(plan, results, kind)
    files[folder.path / "table.md"] = render_markdown(plan, results, rewards)
    first = next(iter(files.values())) if len(files) > 1 else ""
    reports, instructions = _reports(folder), _instructions(folder)
    files[folder.path / "index.html"] = render_page(
        plan, results, first, rewards, reports=reports, instructions=instructions, lasts=_lasts(folder, results), refresh=refresh
    )
    for path, text in files.items():
        write_file(path, text.encode("utf-8", "replace"))
    return list(files)


async def keep_written(folder: BenchFolder, rewards: Mapping[str, Reward] | None = None, *, every: float = REFRESH) -> None:
    """Write the outputs again and again while a benchmark runs, until cancelled: every `every` seconds if new results have come.

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


def _lasts(folder: BenchFolder, results: Sequence[Result]) -> dict[tuple[str, str], LastState]:
    """Return the last states of attempts, with as many pictures as a page takes."""
    runs = {agent: RunFolder(folder.agent_path(agent)) for agent in folder.plan.agents}
    tasks = {task.id: task for task in folder.plan.tasks}
    found, room = dict[tuple[str, str], LastState](), PICTURES
    for each in results:
        if each.task in tasks and each.agent in runs:
            last = last_state(runs[each.agent], tasks[each.task])
            room -= len(last.picture)
            found[each.agent, each.task] = last if room > 0 else last._replace(picture="")
    return found


def success_curve(plan: Plan, results: Sequence[Result], kind: str) -> str:
    """Return an SVG of success against one cost.

    An attempt without a score is left out; one whose cost is unknown counts as unsolved. Published figures are drawn only if they are of as
    many tasks.
    """
    lines, oracles = {}, {each.agent for each in results if each.oracle}
    rewarded = {each.agent for each in results if each.trained_with_reward}
    for agent, group in by_agent(results).items():
        scored = [each for each in group if each.status == "scored" and each.score is not None]
        solved = [getattr(each, kind) for each in scored if each.score is not None and each.score >= SOLVED]
        mark = " (ORACLE)" if agent in oracles else " (TRAINED WITH REWARD)" if agent in rewarded else ""
        lines[agent + (" (ORACLE, VOID)" if is_void(group) else mark)] = solved_within(solved, max(1, len(scored)))
    tasks, title = len({task_of(task.id) for task in plan.tasks}), f"{plan.suite}: budget {plan.stated_budget}"
    published = {f"{each.label}\n{each.split}": each.success for each in published_beside(plan.suite, tasks)}
    return curves(lines, x=CURVES_BY[kind], title=title if len(title) <= TITLE else title[: TITLE - 1] + "…", published=published)


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


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 890, 440, 60, 40, 300, 50
COLOURS = ("#1b6ca8", "#c8553d", "#3f8f4f", "#8a4fa3", "#b8860b", "#2f8f9d", "#a33f5f", "#555555", "#6b8e23", "#d2691e")
Points = Sequence[tuple[float, float]]
_Scale = Callable[[float], float]


def curves(lines: Mapping[str, Points], *, x: str, title: str, published: Mapping[str, float] | None = None) -> str:
    """Return an SVG chart of step functions on a logarithmic axis of cost.

    `lines`: by name, the points (cost, share) at which the share rises; a cost of 0 is drawn at the left end. `published`: published shares
    that were not re-run, drawn as dashed grey lines; the second line of a name says which whole the share is of.
    """
    costs = [cost for points in lines.values() for cost, _ in points if cost > 0]
    low, high = _decades(min(costs, default=1.0), max(costs, default=1.0))

    def across(cost: float) -> float:
        return LEFT + (math.log10(max(cost, low)) - math.log10(low)) / (math.log10(high) - math.log10(low)) * (WIDTH - LEFT - RIGHT)

    def up(share: float) -> float:
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [*_frame(x, title), *_grid(low, high, across, up)]
    published = published or {}
    shares = [*(points[-1][1] if points else 0.0 for points in lines.values()), *published.values()]
    ends = spread_labels([up(share) for share in shares], [14.0] * len(lines) + [26.0] * len(published))
    for (name, points), end, colour in zip(lines.items(), ends, COLOURS * (len(lines) // len(COLOURS) + 1), strict=False):
        parts.append(f'<path d="{_steps(points, across, up)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    for (name, share), end in zip(published.items(), ends[len(lines) :], strict=True):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(share):.1f}" y2="{up(share):.1f}" stroke="#999" stroke-dasharray="4 4"/>'
        )
        who, _, where = name.partition("\n")
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" fill="#777" font-size="10">{escape(who)}</text>')
        note = escape(", ".join(filter(None, (where, "not re-run"))))
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 15:.1f}" fill="#777" font-size="9">{note}</text>')
    return "\n".join([*parts, "</svg>\n"])


def spread_labels(positions: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return the positions of labels, moved down if they would overlap. `heights` gives the height of each label, in pixels."""
    placed, free = dict[int, float](), -math.inf
    for i in sorted(range(len(positions)), key=lambda i: positions[i]):
        placed[i] = max(positions[i], free)
        free = placed[i] + heights[i]
    return [placed[i] for i in range(len(positions))]


def _decades(low: float, high: float) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** max(math.ceil(math.log10(high)), math.floor(math.log10(low)) + 1)


def _frame(x: str, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x)}, at most</text>',
        f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">share of attempts solved</text>',
    ]


def _grid(low: float, high: float, across: _Scale, up: _Scale) -> list[str]:
    parts = []
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    decade = low
    while decade <= high * 1.001:
        parts.append(f'<text x="{across(decade):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{decade:g}</text>')
        decade *= 10
    return parts


def _steps(points: Points, across: _Scale, up: _Scale) -> str:
    path = [f"M{LEFT},{up(0):.1f}"]
    for cost, share in points:
        path.append(f"H{across(cost):.1f}V{up(share):.1f}")
    return "".join([*path, f"H{WIDTH - RIGHT}"])


def render_page(
    plan: Plan,
    results: Sequence[Result],
    curve: str,
    rewards: Mapping[str, Reward] | None = None,
    *,
    reports: Mapping[tuple[str, str], str] | None = None,
    instructions: Mapping[str, str] | None = None,
    lasts: Mapping[tuple[str, str], LastState] | None = None,
    refresh: int = 0,
) -> str:
    """Return the HTML. `curve` is an SVG made by `plot.curves`, whose texts are escaped already.

    `reports`: links to reports by agent and task. `instructions`: texts of tasks by id. `lasts`: last states of attempts, likewise.
    `refresh`: seconds after which a browser reads the page again; 0: never.
    """
    from markupsafe import Markup

    from exact.report.page import rendered

    groups = {agent: by_agent(results).get(agent, []) for agent in plan.agents}
    rows = [summarise(agent, found, rewards) for agent, found in groups.items()]
    by_id, lasts, reports = {task.id: task for task in plan.tasks}, lasts or {}, reports or {}
    keys = [(each, (each.agent, each.task)) for each in results if each.task in by_id]
    return rendered(
        "bench.html.j2",
        (),
        plan=plan,
        rows=rows,
        solved={agent: sum(each.score is not None and each.score >= SOLVED for each in found) for agent, found in groups.items()},
        rewards=list(dict.fromkeys(name for each in rows for name in each.rewards)),
        partial=any(each.partial for each in rows),
        apart=REPLAYS if any(each.replays for each in rows) else "",
        waiting=WAITING if any(each.needs_user for each in rows) else "",
        later=[*session_notes(plan), *specialised(plan, results)],
        live=any(each.live for each in rows),
        against={agent: versus(groups[agent], groups[plan.agents[0]]) for agent in plan.agents[1:]},
        advice=advised(plan, results),
        costs=COSTS,
        about=[(name, value) for name, value in {**plan.machine, **plan.versions, "begun": plan.begun}.items() if value],
        published=published_on(plan.suite),
        cells={key: result_row(key[0], by_id[each.task], each, reports.get(key, ""), lasts.get(key)) for each, key in keys},
        lasts=lasts,
        missing=len(plan.pairs) - len(results),
        curve=Markup(curve) if len({task_of(task.id) for task in plan.tasks}) > 1 else "",
        reports=reports,
        instructions=instructions or {},
        refresh=refresh,
        number=format_number,
        failed=failed_cell,
        replays=replays_cell,
    )
