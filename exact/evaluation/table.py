"""Results of a benchmark as Markdown tables.

Published figures with their sources. They were not re-run here: prompts, budgets and machines differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise

import msgspec

from exact.evaluation.folder import Result
from exact.evaluation.plan import Plan
from exact.evaluation.summary import AgentSummary, Reward, Versus, advice, by_agent, summarise, task_of, versus
from exact.text import counted

REWARD = " (TRAINED WITH REWARD: read the environment's rewards)"
ORACLE = " (ORACLE: saw the score, headroom only)"
VOID = " (ORACLE, VOID: no environment reported a score to it)"
REPLAYS = (
    "replays not the same: in a fresh environment, the committed actions led to another state (drifted) or could not be executed "
    "(refused); the score is that of the state in which the replay ended."
)
WAITING = "wait for a person: the page wants what only a person can do, such as a captcha; in no share."
_COSTS = {
    "actions": "actions", "transitions": "steps", "evaluations": "values", "calls": "calls", "tokens": "tokens", "cost": "$",
    "seconds": "seconds",
}  # fmt: skip


def render_markdown(plan: Plan, results: Sequence[Result], rewards: Mapping[str, Reward] | None = None) -> str:
    """Return the page: the plan, success, costs, each agent against the first, and published figures."""
    groups = {agent: by_agent(results).get(agent, []) for agent in plan.agents}
    rows = [summarise(agent, found, rewards) for agent, found in groups.items()]
    parts = [f"# {plan.suite}", *_about(plan, results), *_success(rows), *_took(rows)]
    if len(rows) > 1:
        first = plan.agents[0]
        against = {agent: versus(groups[agent], groups[first]) for agent in plan.agents[1:]}
        parts += _against(first, against, {each.agent: each for each in rows})
        parts += [lines] if (lines := "\n".join(f"- {line}" for line in advised(plan, results))) else []
    return "\n\n".join([*parts, *_published(plan)]) + "\n"


def advised(plan: Plan, results: Sequence[Result]) -> list[str]:
    """Return what each agent brings over the first one, and which to use. An oracle is headroom, and not to be used."""
    found = by_agent(results)
    rows = {agent: summarise(agent, found.get(agent, [])) for agent in plan.agents}
    first = rows[plan.agents[0]]
    others = [each for each in rows.values() if each is not first and each.scored and not (each.oracle or first.oracle)]
    return [advice(first, each, versus(found[each.agent], found[first.agent])) for each in others if first.scored]


def agent_label(summary: AgentSummary) -> str:
    """Return an agent's name; an oracle, and one that read rewards, is always marked."""
    return summary.agent + (VOID if summary.void else ORACLE if summary.oracle else REWARD if summary.trained_with_reward else "")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in each) + " |" for each in cells)


def format_number(value: float) -> str:
    """Format a figure in at most about four characters; NaN as `unknown`."""
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _about(plan: Plan, results: Sequence[Result]) -> list[str]:
    tasks = len({task_of(task.id) for task in plan.tasks})
    missing = len(plan.pairs) - len(results)
    facts = [
        f"{counted(tasks, 'task')}, {counted(len(plan.tasks), 'seed')} in all, {counted(len(plan.agents), 'agent')}; "
        f"budget for each task: {plan.stated_budget}.",
        "Intervals are 95 percent, bootstrapped over tasks with their seeds; gains are paired on task and seed. "
        "Success is the score of the committed actions alone, in an environment that search never used.",
        " ".join(f"{name} {value}." for name, value in {**plan.machine, **plan.versions, "begun": plan.begun}.items() if value),
        *session_notes(plan),
        *specialised(plan, results),
    ]
    if plan.same_task:
        facts.append("**Agents with a memory may have been shown reflections from other seeds of the same task.**")
    if missing:
        facts.append(f"**Unfinished: {missing} of {counted(len(plan.pairs), 'attempt')} {'is' if missing == 1 else 'are'} left to run.**")
    return facts


def session_notes(plan: Plan) -> list[str]:
    """Return a sentence for each later session: when it began, and the changes since the session before."""
    notes = []
    for before, now in pairwise(plan.sessions):
        other = [f"{name} {value}" for name, (_, value) in now.since(before).items()] or ["unchanged"]
        added = f", with {', '.join(now.agents)} added" if now.agents else ""
        notes.append(f"Resumed{f' {now.begun}' if now.begun else ''}{added}: {', '.join(other)}.")
    return notes


def specialised(plan: Plan, results: Sequence[Result]) -> list[str]:
    """Return a sentence that names the agents whose model other seeds of the suite's tasks trained, if there are any."""
    agents = [agent for agent in plan.agents if any(each.agent == agent and each.policy == "learned" for each in results)]
    if plan.suite.partition("/")[0] != "miniwob" or not agents:
        return []
    return [f"Specialised: the model of {', '.join(agents)} (policy `learned`) was trained on other seeds of half of the suite's tasks."]


def _success(rows: Sequence[AgentSummary]) -> list[str]:
    rewards = list(dict.fromkeys(name for each in rows for name in each.rewards))
    live, partial = any(each.live for each in rows), any(each.partial for each in rows)
    unanswered, apart = any("answer" in each.missing for each in rows), any(each.replays for each in rows)
    waiting = any(each.needs_user for each in rows)
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
            *([str(each.needs_user)] if waiting else []),
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
                "only self-evaluated",
                *(["wait for a person"] if waiting else []),
            ],
            body,
        ),
        ("unanswered: scored 0 because the task asks for a final answer and none was given. " if unanswered else "")
        + (REPLAYS + " " if apart else "")
        + "failed: ended by an infrastructure failure after all reruns, in no share. reruns: attempts repeated after an infrastructure "
        "failure; each is in attempts.jsonl. only self-evaluated: no evaluator, in no share." + (f" {WAITING}" if waiting else ""),
    ]


def failed_cell(summary: AgentSummary) -> str:
    """Return the number of failed attempts, with their causes if known."""
    return _counted(summary.failed, {kind: count for kind, count in summary.missing.items() if kind != "answer"})


def replays_cell(summary: AgentSummary) -> str:
    """Return the number of replays that differed from their attempts, by kind."""
    return _counted(sum(summary.replays.values()), summary.replays)


def _counted(number: int, kinds: Mapping[str, int]) -> str:
    why = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{number} ({why})" if why else str(number)


def _took(rows: Sequence[AgentSummary]) -> list[str]:
    body = [
        [agent_label(each), *(format_number(each.costs[kind]) for kind in _COSTS), format_number(each.restores), str(each.drifted)]
        for each in rows
        if each.scored
    ]
    return ["## Mean cost of an attempt", markdown_table(["agent", *_COSTS.values(), "restores", "drifted (all)"], body)]


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
        "McNemar's exact test assumes independent attempts; the test by task flips whole tasks, whose seeds are not independent.",
    ]


def _published(plan: Plan) -> list[str]:
    published = published_on(plan.suite)
    if not published:
        return []
    body = [
        [each.label, each.split, f"{each.success:.3f}" + (f" +- {each.error:.3f}" if each.error else ""), f"[{each.source}]({each.url})"]
        for each in published
    ]
    return ["## Published by others, not re-run here", markdown_table(["agent", "on", "success", "source"], body)]


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published success rate."""

    suite: str
    split: str
    """Subset of the suite's tasks and the limits, if the source states them."""
    tasks: int
    """Number of tasks."""
    agent: str
    model: str
    success: float
    """Success rate in [0, 1]."""
    error: float | None
    """Standard error, if the source gives one."""
    source: str
    url: str

    @property
    def label(self) -> str:
        """Name of the agent and its model, for tables and plots."""
        return f"{self.agent}{f', {self.model}' if self.model else ''}"


@cache
def published() -> tuple[Published, ...]:
    """Return all published figures."""
    text = (resources.files("exact.evaluation") / "published.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Published, ...])


def published_on(suite: str) -> tuple[Published, ...]:
    """Return the figures on a suite. `suite` is as in `Plan.suite`: `miniwob/click-* miniwob/use-* seeds 0..4`; task files have none."""
    names = {word.partition("?")[0].partition("/")[0] for word in suite.partition(" seeds ")[0].split()}
    return tuple(each for each in published() if names == {each.suite})


def published_beside(suite: str, tasks: int) -> tuple[Published, ...]:
    """Return the figures on as many tasks of a suite as were run: a part of a suite is not compared with the whole of it."""
    return tuple(each for each in published_on(suite) if each.tasks == tasks)
