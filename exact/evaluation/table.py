"""Results as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from exact.evaluation.folder import Result
from exact.evaluation.plan import Plan
from exact.evaluation.published import published_on
from exact.evaluation.summary import AgentSummary, Reward, Versus, by_agent, summarise, task_of, versus

ORACLE = " (ORACLE: told the verdict, headroom only)"
VOID = " (ORACLE, VOID: no environment told it any verdict)"
REPLAYS = (
    "replays not the same: the committed actions, repeated in a fresh environment, met another state (drifted) or did not fit (refused); "
    "the score is that of where they ended."
)
_COSTS = {
    "actions": "actions", "transitions": "steps", "evaluations": "values", "calls": "calls", "tokens": "tokens", "cost": "$",
    "seconds": "seconds",
}  # fmt: skip


def render_markdown(plan: Plan, results: Sequence[Result], rewards: Mapping[str, Reward] | None = None) -> str:
    """The whole page: what was run, success, what it took, each agent against the first, and what others published."""
    groups = {agent: by_agent(results).get(agent, []) for agent in plan.agents}
    rows = [summarise(agent, found, rewards) for agent, found in groups.items()]
    parts = [f"# {plan.suite}", *_about(plan, results), *_success(rows), *_took(rows)]
    if len(rows) > 1:
        first = plan.agents[0]
        against = {agent: versus(groups[agent], groups[first]) for agent in plan.agents[1:]}
        parts += _against(first, against, {each.agent: each for each in rows})
    return "\n\n".join([*parts, *_published(plan)]) + "\n"


def agent_label(found: AgentSummary) -> str:
    """An agent's name; an oracle is always called one."""
    return found.agent + (VOID if found.void else ORACLE if found.oracle else "")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    cells = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in each) + " |" for each in cells)


def format_number(value: float) -> str:
    """Short; `unknown` for what is not known."""
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _about(plan: Plan, results: Sequence[Result]) -> list[str]:
    tasks = len({task_of(task.id) for task in plan.tasks})
    missing = len(plan.pairs) - len(results)
    facts = [
        f"{tasks} tasks, {len(plan.tasks)} tasks and seeds, {len(plan.agents)} agents; budget for each task: {plan.stated_budget}.",
        "Intervals are 95 percent, bootstrapped over tasks with their seeds; gains are paired on task and seed. "
        "Success is the score of the committed actions alone, in an environment that search never used.",
        " ".join(f"{name} {value}." for name, value in {**plan.machine, **plan.versions, "begun": plan.begun}.items() if value),
        *session_notes(plan),
    ]
    if plan.same_task:
        facts.append("**Agents that remember may have been shown lessons from other seeds of the same task.**")
    if missing:
        facts.append(f"**Unfinished: {missing} of {len(plan.pairs)} attempts are still to be made.**")
    return facts


def session_notes(plan: Plan) -> list[str]:
    """For each session in which it was gone on with: when, and what was not as in the one before."""
    told = []
    for before, now in pairwise(plan.sessions):
        other = [f"{name} {value}" for name, (_, value) in now.since(before).items()] or ["as before"]
        added = f", with {', '.join(now.agents)} added" if now.agents else ""
        told.append(f"Gone on with{f' {now.begun}' if now.begun else ''}{added}: {', '.join(other)}.")
    return told


def _success(rows: Sequence[AgentSummary]) -> list[str]:
    rewards = list(dict.fromkeys(name for each in rows for name in each.rewards))
    live, partial = any(each.live for each in rows), any(each.partial for each in rows)
    unanswered, apart = any("answer" in each.missing for each in rows), any(each.replays for each in rows)
    header = ["agent", "success", *(["score"] if partial else []), *(["in the promoted environment"] if live else []), *rewards]
    body = [
        [
            agent_label(each),
            str(each.success),
            *([str(each.score)] if partial else []),
            *([str(each.live or "-")] if live else []),
            *(str(each.rewards.get(name, "-")) for name in rewards),
            str(each.scored),
            *([str(each.missing.get("answer", 0))] if unanswered else []),
            *([replays_cell(each)] if apart else []),
            failed_cell(each),
            str(each.reruns),
            str(each.judged),
        ]
        for each in rows
    ]
    return [
        "## Success",
        markdown_table(
            [
                *header,
                "scored",
                *(["unanswered"] if unanswered else []),
                *(["replays not the same"] if apart else []),
                "failed",
                "reruns",
                "only judged",
            ],
            body,
        ),
        ("unanswered: scored 0 because the task asks for a final answer and none was given. " if unanswered else "")
        + (REPLAYS + " " if apart else "")
        + "failed: ended by the infrastructure after all reruns, in no share. reruns: attempts made again because the infrastructure ended "
        "them; each is in attempts.jsonl. only judged: without an evaluator, in no share.",
    ]


def failed_cell(found: AgentSummary) -> str:
    """How many failed, and of what where that is known."""
    return _counted(found.failed, {kind: count for kind, count in found.missing.items() if kind != "answer"})


def replays_cell(found: AgentSummary) -> str:
    """How many replays were not the same as their attempts, and in what."""
    return _counted(sum(found.replays.values()), found.replays)


def _counted(number: int, kinds: Mapping[str, int]) -> str:
    why = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{number} ({why})" if why else str(number)


def _took(rows: Sequence[AgentSummary]) -> list[str]:
    body = [
        [agent_label(each), *(format_number(each.costs[kind]) for kind in _COSTS), format_number(each.restores), str(each.drifted)]
        for each in rows
        if each.scored
    ]
    return ["## What an attempt took, in the mean", markdown_table(["agent", *_COSTS.values(), "restores", "drifted (all)"], body)]


def _against(first: str, against: Mapping[str, Versus], rows: Mapping[str, AgentSummary]) -> list[str]:
    body = [
        [
            agent_label(rows[agent]),
            str(found.gain),
            str(found.wins),
            str(found.losses),
            str(found.ties),
            str(found.unpaired),
            f"{found.mcnemar:.3f}",
            f"{found.by_task:.3f}",
        ]
        for agent, found in against.items()
    ]
    return [
        f"## Against {agent_label(rows[first])}",
        markdown_table(["agent", "gain", "wins", "losses", "ties", "unpaired", "p (McNemar)", "p (by task)"], body),
        "McNemar's exact test takes attempts for independent; the other flips whole tasks, whose seeds are not.",
    ]


def _published(plan: Plan) -> list[str]:
    found = published_on(plan.suite)
    if not found:
        return []
    body = [
        [each.label, each.split, f"{each.success:.3f}" + (f" +- {each.error:.3f}" if each.error else ""), f"[{each.source}]({each.url})"]
        for each in found
    ]
    return ["## Published by others, not re-run here", markdown_table(["agent", "on", "success", "source"], body)]
