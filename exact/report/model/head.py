"""The head of a report: the outcome of an attempt in plain words.

Model costs of an attempt by role, and the part that was not used.

The part that people took in an attempt, for its report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from exact.config import Config
from exact.config.agents import VALUES
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.routes import lines, not_let_out, travel, writes, wrong
from exact.report.model.text import LABEL, LINE, by_name, one_line
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState, final_answer
from exact.search.inspect.health import Symptom, health
from exact.task import Task
from exact.text import counted, inert

ANSWER = 20_000
"""Maximum length of an answer or an evaluator's reason, in characters."""
_JUDGES = {
    "lexical": "the built-in value function (not a language model)",
    "learned": "the learned built-in value function (a small model, not a language model)",
    "constant": "a constant value, without information",
    "reward": "the environment's rewards (not a result on a benchmark)",
    "oracle": "an oracle that knows the benchmark's score",
}


def head(
    reading: Reading, task: Task, committed: tuple[data.CommittedStep, ...] = (), *, oracle: bool = False, running: bool = False
) -> data.Head:
    """Return the head of a report.

    `committed`: its steps. `oracle`: whether the values came from the benchmark's score. `running`: whether a process works on the attempt.
    """
    config, state, sent = reading.config, reading.state, writes(reading)
    last = reading.steps[-1][1] if reading.steps else None
    refused = last is not None and not_let_out(last)
    ending, headline, sentence = _ending(reading, refused or "", running)
    answer = state.live.ended.answer if state.live.ended else final_answer(state)
    return data.Head(
        task=one_line(task.id),
        instruction=inert(state.live.instruction or task.instruction or "(the environment has not stated its goal)", 4 * LINE),
        agent=one_line(config.name),
        ending=ending,
        headline=headline,
        sentence=one_line(sentence, 4 * LINE),
        brief=_brief(reading),
        answer=None if answer is None else inert(answer.strip(), ANSWER),
        reason=inert(state.live.scored.score.reason.strip(), ANSWER) if state.live.scored else "",
        stopped=one_line(state.finished.reason, 4 * LINE) if ending == "failed" and state.finished else "",
        began=state.live.started or state.finished is None,
        way_on=_way_on(reading, bool(refused)),
        labels=_labels(config, oracle or str(config.value.kind) == "oracle"),
        facts=_facts(reading),
        setting=_setting(reading),
        warnings=tuple(dict.fromkeys(one_line(warning) for warning in reading.warnings)),
        health=tuple(symptom.text for symptom in _health(reading)),
        committed=sent.committed,
        simulated=sent.simulated,
        contained=sent.contained,
        blocked=sent.blocked,
        refused=sent.refused,
        outside=sent.outside,
        unknown=sent.unknown,
        costs=costs(reading),
        waste=tuple(waste(reading)),
        wrong=wrong(reading, committed, ending),
    )


def _health(reading: Reading) -> tuple[Symptom, ...]:
    replayed = sum(arrival.transitions for each in reading.arrivals.values() for arrival in each)
    searched, committed = reading.state.search.acted.values(), [step for _, step, _ in reading.steps if step is not None]
    unsettled = [bool(info.get("unsettled")) for info in (*(each.info for each in searched), *(each.info for each in committed))]
    return health(reading.state.search.tree, steps=len(reading.state.search.acted), replayed=replayed, unsettled=unsettled)


_CAUSES = {
    "the agent stopped": "The agent said that it was done",
    "the episode ended": "The site ended the task",
    "stopped by a viewer": "A person stopped it",
    "no action is left": "No action was left to try",
    "the agent's answers cannot be parsed": "The model's answers could not be read",
}
"""Reasons for an end, by the beginning of the recorded ones."""
_KINDS = {"calls": "model calls", "seconds": "time", "transitions": "steps"}
"""Kinds of budget in the words of a reader."""
_LIMIT = re.compile(r"the (?:task|attempt)'s budget of (\S+) (\w+) ")
_BROKEN = {
    "model": "The model did not answer",
    "environment": "The browser or the site did not answer",
    "judge": "The model that gives the score did not answer",
    "part": "A part of the agent raised an error",
    "commit": "A crash left open whether an action was carried out",
}
"""Causes of a failure, by the missing part."""


def standing(state: AttemptState) -> str:
    """Return the state of an attempt at the end of its journal, in one to three words."""
    if state.finished is not None:
        return "ended"
    if state.live.ended is not None:
        return "judging"
    people = state.people
    return "stopping" if people.stopped else "paused" if people.paused else "asking a person" if people.questions else "searching"


_STANDING = {
    "judging": ("Being checked", "It has ended, and its outcome is being checked."),
    "stopping": ("Stopping", "A viewer stopped the search: the best actions found are committed."),
    "paused": ("Paused", "A viewer paused it."),
    "asking a person": ("Asks a person", "It waits for the answer of a person."),
}


def _running(reading: Reading) -> tuple[data.Ending, str, str]:
    """Return the work of a running attempt, and the action that it has in view."""
    tree, number = reading.state.search.tree, len(reading.state.live.committed) + 1
    if not reading.state.live.started:
        return "unfinished", "Starting", "The start of the task is being opened."
    if (words := _STANDING.get(standing(reading.state))) is not None:
        return "unfinished", *words
    began = tree.search_began
    share = f": {tree.iterations - began} of {counted(tree.allowed - began, 'iteration')}" if tree.allowed > began else ""
    best = max((edge for edge in tree.root.edges if edge.visits), key=lambda edge: (edge.visits, edge.q), default=None)
    view = f"; best so far: {by_name(best.action, reading.seen(tree.root))}, rated {best.q:.2f}" if best else ""
    return "unfinished", f"Searching{share}", f"It looks for action {number}{view}."


def _ending(reading: Reading, refused: str, running: bool) -> tuple[data.Ending, str, str]:
    """Return how the attempt ended, a headline for it, and why, as a reader without knowledge of search understands it.

    refused: why safety did not let the last write out; empty if it did.
    """
    state = reading.state
    if state.live.scored is not None:
        score = state.live.scored.score
        given = f"{score.value:.2f}" + ("" if score.raw is None else f" (raw {score.raw:g})")
        if score.success:
            return "solved", "Solved", f"The evaluator found what the goal asks for: score {given}."
        said = f"The evaluator did not find what the goal asks for: score {given}."
        return "unsolved", "Not solved", f"{_cause(reading, refused)} {said}"
    if state.finished is None and running:
        return _running(reading)
    if state.finished is None and state.people.paused:
        return "unfinished", "Paused", f"A viewer paused it after {state.spending.elapsed:.1f} s."
    if state.finished is None:
        return "unfinished", "Unfinished", f"The journal ends after {state.spending.elapsed:.1f} s, before the attempt ended."
    match state.finished.status:
        case "judged":
            headline = "Blocked by safety" if refused else _unchecked(state)
            return "stopped" if refused else "judged", headline, f"{_cause(reading, refused)} No evaluator has checked the result."
        case "needs_user":
            wanted = state.finished.reason.partition(": ")[2] or state.finished.reason
            return "stopped", "Needs a person", f"The page wants what only a person can do, so there is no score: {wanted}."
        case "failed" if not state.live.started:
            return "failed", "Did not begin", "The start of the task was not reached, so nothing was searched and nothing was done."
        case "failed":
            return "failed", "Failed", broken(state.finished.missing)
    return "stopped", "Stopped", "The attempt was interrupted before its end, so there is no score."


def _unchecked(state: AttemptState) -> str:
    """Return the headline of an attempt that no evaluator checks."""
    if state.live.ended is not None and state.live.ended.answer is not None:
        return "Done, unchecked"
    return "Ended" if state.search.tree.root.terminated else "Not finished"


def _cause(reading: Reading, refused: str) -> str:
    """Return why no further action was committed, as a sentence."""
    ended = reading.state.live.ended
    recorded = ended.reason if ended else reading.state.finished.reason if reading.state.finished else ""
    return refused or f"{cause(recorded)}{'; a person took part' if reading.state.people.touched else ''}."


def cause(recorded: str) -> str:
    """Return the recorded reason for an end in the words of a reader, without a full stop."""
    if (limit := _LIMIT.search(recorded)) is not None:
        kind = _KINDS.get(limit[2], limit[2])
        amount = f"${limit[1]}" if kind == "money" else f"{limit[1]} s" if kind == "time" else limit[1]
        return f"No {kind} left: the limit is {amount}"
    return next((words for reason, words in _CAUSES.items() if recorded.startswith(reason)), one_line(recorded[:1].upper() + recorded[1:]))


def broken(missing: str) -> str:
    """Return which part of an attempt failed, as a sentence. `missing`: as in ResultLine."""
    return f"{_BROKEN.get(missing, 'The infrastructure failed')}, so there is no score."


def _way_on(reading: Reading, refused: bool) -> Literal["", "resume", "new run", "allow"]:
    finished = reading.state.finished
    if finished is not None and finished.status == "failed":
        return "resume" if finished.resumable else "new run"
    solved = reading.state.live.scored is not None and reading.state.live.scored.score.success
    return "allow" if refused and finished is not None and not solved else ""


def _brief(reading: Reading) -> str:
    """Return the cost of the attempt in one line."""
    state, spent = reading.state, reading.state.spending.task.spent
    if not state.live.started:
        return ""
    actions, limit, calls = int(spent.get("actions", 0)), reading.config.limits.actions, int(spent.get("calls", 0))
    took = counted(actions, "action") if limit is None else f"{actions} of {counted(limit, 'action')}"
    money = _money(spent.get("money", 0.0), state.spending.cost_known) if calls else "$0"
    return " · ".join((took, duration(state.spending.elapsed), money))


def judge(config: Config) -> str:
    """Return a description of the value function."""
    model = config.models.value or config.models.policy
    if config.value.kind not in VALUES:
        return f"{config.value.kind} (a value function of the user's own)"
    return _JUDGES.get(config.value.kind, f"a language model ({model.model if model else 'unnamed'})")


def _labels(config: Config, oracle: bool) -> tuple[str, ...]:
    labels = []
    proposes, evaluates = (each.kind in ("learned", "lexical") for each in (config.policy, config.value))
    if proposes or evaluates:
        part = "agent" if proposes and evaluates else "policy" if proposes else "value function"
        labels.append(f"Built-in {part}: not a language model")
    if config.value.kind == "constant":
        labels.append("Constant values: no information for the search")
    if config.value.kind == "reward":
        labels.append("Trained with reward: the search read the environment's rewards")
    if oracle:
        labels.append("Oracle values: headroom, not a result")
    return tuple(labels)


def _facts(reading: Reading) -> tuple[data.Fact, ...]:
    state, spent = reading.state, reading.state.spending.task.spent
    usage = [called.usage for called in state.spending.calls.values()]
    tokens = f"{sum(u.input_tokens for u in usage):,} tokens in, {sum(u.output_tokens for u in usage):,} out" if usage else ""
    replayed = sum(arrival.transitions for each in reading.arrivals.values() for arrival in each)
    states = sum(reading.merged(node) is node for node in state.search.tree.nodes)
    broke, judged = state.spending.failures, state.live.judged
    return (
        data.Fact(label="States seen", value=_count(states), note=counted(state.search.tree.iterations, "iteration")),
        data.Fact(label="Transitions", value=_count(int(spent.get("transitions", 0))), note=f"{replayed} replayed" if replayed else ""),
        *_travelled(reading),
        data.Fact(label="Evaluations", value=_count(int(spent.get("evaluations", 0)))),
        *((data.Fact(label="Own evaluation", value=f"{judged.evaluation.value:.2f}", note="by the agent"),) if judged else ()),
        data.Fact(label="Model calls", value=_count(int(spent.get("calls", 0))), note=tokens),
        *((data.Fact(label="Resumed", value=f"{reading.resumed}×"),) if reading.resumed else ()),
        data.Fact(label="Drift", value=_count(state.spending.drifted), note="states not reached again" if state.spending.drifted else ""),
        data.Fact(label="Failures", value=_count(broke), note="calls or environments that broke" if broke else ""),
    )


def _travelled(reading: Reading) -> tuple[data.Fact, ...]:
    """Return figures about how environments reached states."""
    found = travel(reading)
    times = sum(each.times for each in found.moved)
    return (data.Fact(label="Arrivals", value=_count(times), note="; ".join(lines(found, label=""))),) if times else ()


def _setting(reading: Reading) -> tuple[data.Fact, ...]:
    config, opened = reading.config, reading.state.live.opened
    s = config.search
    proposals = f"{counted(s.k, 'proposal')} a state"
    size = f"{counted(s.iterations, 'iteration')} an action, {proposals}, {s.depth} deep"
    look = {
        "mcts": f"Monte Carlo tree search (PUCT, c {s.c:g}): {size}",
        "greedy": f"greedy: one simulated step, {proposals}",
        "react": "ReAct: one proposal, no search",
        "explorer": "explorer: one proposal, no search; the agent takes its own steps back",
    }.get(s.algorithm, f"{s.algorithm}: {size}")
    policy = config.models.policy
    proposer = {
        "lexical": "the lexical built-in policy (not a language model)",
        "learned": "the learned built-in policy (a small model, not a language model)",
        "random": "at random",
        "llm": f"a language model ({policy.model if policy else 'unnamed'})",
    }.get(config.policy.kind, f"{config.policy.kind} (a policy of the user's own)")
    facts = [
        data.Fact(label="Search", value=look),
        data.Fact(label="Proposed by", value=one_line(proposer)),
        data.Fact(label="Evaluated by", value=one_line(judge(config))),
        data.Fact(label="Seed", value=str(opened.seed if opened else config.seed)),
    ]
    if opened is not None and opened.versions:
        facts.append(
            data.Fact(label="Versions", value=one_line(", ".join(f"{name} {version}" for name, version in opened.versions.items())))
        )
    return tuple(facts)


def _count(number: int) -> str:
    return f"{number:,}"


def _money(spent: float, known: bool) -> str:
    return f"${spent:.4f}" if known else f"at least ${spent:.4f}" if spent else "unknown cost"


def duration(seconds: float) -> str:
    """Return a duration as text: `41.3 s`, `3 min 20 s`."""
    return f"{seconds:.1f} s" if seconds < 90 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def costs(reading: Reading) -> tuple[data.Cost, ...]:
    """Return the cost of each role, most expensive first."""
    found: dict[str, data.Cost] = {}
    for called in (each for calls in reading.calls.values() for each in calls):
        before, used = found.get(called.role), reading.used(called.selection)
        money = called.usage.cost or 0.0
        found[called.role] = data.Cost(
            role=one_line(called.role, LABEL),
            calls=(before.calls if before else 0) + 1,
            input_tokens=(before.input_tokens if before else 0) + called.usage.input_tokens,
            output_tokens=(before.output_tokens if before else 0) + called.usage.output_tokens,
            money=(before.money if before else 0.0) + money,
            known=(before.known if before else True) and called.usage.cost is not None,
            seconds=(before.seconds if before else 0.0) + called.seconds,
            unused=(before.unused if before else 0) + (not used),
            unused_money=(before.unused_money if before else 0.0) + (0.0 if used else money),
        )
    return tuple(sorted(found.values(), key=lambda cost: (-cost.money, -cost.calls, cost.role)))


def waste(reading: Reading) -> Iterator[str]:
    """Yield sentences about results that were paid for and not used."""
    state = reading.state
    edges = [edge for node in state.search.tree.nodes for edge in node.edges]
    untried = sum(edge.child is None and not edge.closed for edge in edges)
    if untried:
        yield f"{untried} of {len(edges)} proposed actions were never tried."
    if state.spending.late:
        yield f"{counted(state.spending.late, 'answer')} arrived too late to be used."
    if state.spending.unaccounted:
        yield f"No sum includes the cost of {counted(state.spending.unaccounted, 'abandoned model request')}."
    moved = travel(reading)
    if (wasted := moved.prepared - moved.used) > 0:
        yield f"Prepared states that were not requested: {wasted} of {moved.prepared}."


_WORDS = {
    "pause": "paused",
    "resume": "resumed",
    "stop": "stopped the search",
    "expand": "asked to expand state {node}",
    "prune": "pruned at state {node}",
    "instruct": "changed the instruction to: {text}",
    "act": "gave the next action: {text}",
    "take": "used the browser",
}


def people(reading: Reading) -> tuple[data.PersonPart, ...]:
    """Return the questions to people, their answers and their commands, in order."""
    found, asked = list[data.PersonPart](), dict[str, ev.PersonAsked]()
    for event in reading.people:
        match event:
            case ev.PersonAsked():
                asked[event.id] = event
            case ev.PersonAnswered() if event.id in asked:
                found.append(_answer(asked.pop(event.id), event))
            case ev.Commanded() if event.command in _WORDS:
                words = one_line(_WORDS[event.command].format(node=event.node, text=event.text))
                found.append(_part(event, words, event.refused and f"refused: {one_line(event.refused)}", touched=event.touches))
    found += [_part(event, _question(event), "no answer yet") for event in asked.values()]
    return tuple(found)


def _answer(asked: ev.PersonAsked, answer: ev.PersonAnswered) -> data.PersonPart:
    said = "no answer in time" if answer.answer is None else f"answered {one_line(answer.answer)!r} after {answer.seconds:.1f} s"
    return _part(answer, _question(asked), said, touched=answer.touched)


def _question(asked: ev.PersonAsked) -> str:
    question = asked.question
    fields = ", ".join(f"{name}: {value}" for name, value in question.fields.items())
    match question.kind:
        case "question":
            words = f"was asked: {question.text}"
        case "action":
            words = f"was asked to allow the action {question.text}"
        case _:
            words = f"was asked to allow {question.method} {question.url}" + (f" with {fields}" if fields else "")
    return one_line(words)


def _part(event: ev.PersonAsked | ev.PersonAnswered | ev.Commanded, words: str, outcome: str, *, touched: bool = False) -> data.PersonPart:
    by = "" if isinstance(event, ev.PersonAsked) else event.by
    return data.PersonPart(seconds=event.t, by=by, words=words, outcome=outcome, touched=touched)
