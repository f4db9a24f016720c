"""The HTML page of a benchmark: one file, without scripts or external resources."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from exact.evaluation.folder import Result
from exact.evaluation.plan import Plan
from exact.evaluation.summary import COSTS, Reward, by_agent, summarise, versus
from exact.evaluation.table import REPLAYS, WAITING, failed_cell, format_number, published_on, replays_cell, session_notes, specialised

if TYPE_CHECKING:
    import jinja2


def render_page(
    plan: Plan,
    results: Sequence[Result],
    curve: str,
    rewards: Mapping[str, Reward] | None = None,
    *,
    reports: Mapping[tuple[str, str], str] | None = None,
    instructions: Mapping[str, str] | None = None,
    refresh: int = 0,
) -> str:
    """Return the HTML. `curve` is an SVG made by `plot.curves`, whose texts are escaped already.

    `reports`: links to reports by agent and task. `instructions`: texts of tasks by id. `refresh`: seconds after which a browser reads the
    page again; 0: never.
    """
    from markupsafe import Markup

    groups = {agent: by_agent(results).get(agent, []) for agent in plan.agents}
    rows = [summarise(agent, found, rewards) for agent, found in groups.items()]
    return _template().render(
        plan=plan,
        rows=rows,
        rewards=list(dict.fromkeys(name for each in rows for name in each.rewards)),
        partial=any(each.partial for each in rows),
        apart=REPLAYS if any(each.replays for each in rows) else "",
        waiting=WAITING if any(each.needs_user for each in rows) else "",
        later=[*session_notes(plan), *specialised(plan, results)],
        live=any(each.live for each in rows),
        against={agent: versus(groups[agent], groups[plan.agents[0]]) for agent in plan.agents[1:]},
        costs=COSTS,
        about=[(name, value) for name, value in {**plan.machine, **plan.versions, "begun": plan.begun}.items() if value],
        published=published_on(plan.suite),
        results={(each.agent, each.task): each for each in results},
        missing=len(plan.pairs) - len(results),
        curve=Markup(curve),
        reports=reports or {},
        instructions=instructions or {},
        refresh=refresh,
    )


@functools.cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("exact.evaluation", "html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": format_number, "failed": failed_cell, "replays": replays_cell}
    return environment.get_template("bench.html.j2")
