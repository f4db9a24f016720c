"""The end of an attempt: when nothing more is committed, the agent's own evaluation, and the reflections on what surprised it.

Pages that only a person can pass: a captcha, or the code of a second factor.

Expected against observed: for each committed step a record from which reflections are made.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from exact.agents.answer import plain
from exact.agents.base import evaluate
from exact.context import Evaluation, Reflection, Taken
from exact.errors import AnswerError, BudgetExceeded, InfrastructureError, ModelError, PartError
from exact.observation import Observation
from exact.parts import awaited, calling, expect, without_result
from exact.reflection.contrast import FailedPath, Option, Record, contrast
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.memory import attempt_id, recalled_ids, went_well
from exact.runs.journal import events as ev
from exact.runs.journal.state import AGENT_STOPPED, EPISODE_ENDED, AttemptState, final_answer
from exact.runs.journal.store import Blobs, scrubbed
from exact.search.base import Alternative, Decision
from exact.search.rules.backup import mean
from exact.search.rules.exhaust import settled_value
from exact.search.rules.final import NOISE
from exact.search.tree import Edge, Node
from exact.search.work import Work

STOPPED = "stopped by a viewer"


def why_over(attempt: AttemptContext) -> str:
    """Return why no further action will be committed; empty while one may be."""
    if attempt.state.search.tree.root.terminated:
        return EPISODE_ENDED if final_answer(attempt.state) is None else AGENT_STOPPED
    if is_stopped_unsearched(attempt.state):
        return STOPPED
    if what := _needs_user(attempt):
        return f"{NEEDS_USER}: {what}"
    try:
        attempt.state.spending.task.check("actions")
    except BudgetExceeded as exceeded:
        return str(exceeded)
    limit = attempt.config.limits.seconds
    if limit is not None and attempt.journal.now >= limit:
        return str(BudgetExceeded("task", "seconds", limit))
    return ""


def _needs_user(attempt: AttemptContext) -> str:
    """Return what the present page asks of a person that an agent cannot do. The code of a second factor it may ask the person for.

    In an isolated environment everything can be tried.
    """
    if attempt.state.live.decided is not None or attempt.state.live.isolated is not False:
        return ""
    root = attempt.state.search.tree.root
    what = needs_user(attempt.blobs.get_observation(root.observation)) if root.observation else ""
    return "" if attempt.config.browser.ask_user and "second factor" in what else what


def is_stopped_unsearched(state: AttemptState) -> bool:
    """Return True where a viewer stopped the search before anything was searched from the present root."""
    return state.people.stopped and state.live.decided is None and not state.search.tree.root.visited


class Ending:
    """Evaluates the end of an attempt and learns from it."""

    def __init__(self, attempt: AttemptContext) -> None:
        self._attempt, self._state = attempt, attempt.state

    async def extract(self) -> None:
        """Journal the object that the task asks for, or why there is none. What an unfinished attempt has found is marked as partial.

        Raises ModelError if the model does not answer.
        """
        attempt, root, ended = self._attempt, self._state.search.tree.root, self._state.live.ended
        if not attempt.task.answer or self._state.live.extracted is not None or ended is None:
            return
        if (guide := attempt.guide) is not None and guide.ended_as_before and guide.way.data and guide.way.answer == attempt.task.answer:
            attempt.record(ev.Extracted(data=guide.way.data))
            return
        said, data, error = ended.answer or "", "", ""
        try:
            if attempt.agent.answerer is None:
                found, error = plain(attempt.task.answer, said), ""
            else:
                found, error = await attempt.agent.answerer.answer(attempt.bare_context(root), attempt.task.answer, said)
            data = json.dumps(found, ensure_ascii=False)
        except (AnswerError, BudgetExceeded) as failed:
            error = str(failed)
        attempt.record(ev.Extracted(data=data, partial=ended.answer is None or bool(data and error), error=error))

    async def evaluate(self) -> None:
        """Journal the agent's own evaluation of its final state.

        The search's evaluation of it is taken if there is one, unless the answer has become an object, with which it is evaluated again.
        An algorithm that does not simulate has none, and is asked for none if the benchmark scores the attempt. Raises ModelError if there
        is neither an evaluation nor a benchmark's score.
        """
        root = self._state.search.tree.root
        if self._state.live.judged or self._state.live.scored:
            return
        guide = self._attempt.guide
        if guide is not None and guide.ended_as_before and guide.way.evaluation is not None and root.evaluation is None:
            self._attempt.record(ev.Judged(evaluation=guide.way.evaluation))
            return
        evaluation = found = root.evaluation if root.evaluation is not None and not root.evaluation.unjudged else None
        settings = self._attempt.config.reflection
        confirms = self._attempt.memory is not None and settings.outcome == "judge" and settings.confirm
        if found is None or confirms or self._object:
            if found is None and not self._state.search.algorithm.simulates and await self._is_scored():
                return
            try:
                evaluation = await self._evaluate(root, confirms=found is not None)
            except (BudgetExceeded, TimeoutError):
                pass
            except ModelError as error:
                self._attempt.record(
                    ev.Failed(what="answer" if isinstance(error, AnswerError) else "model", node=root.id, reason=str(error))
                )
                if found is None and not await self._is_scored():
                    raise
        if evaluation is not None:
            self._attempt.record(ev.Judged(evaluation=evaluation, bought=evaluation is not found))

    async def _evaluate(self, root: Node, *, confirms: bool) -> Evaluation:
        """Ask the value function about the final state. Raises ModelError, BudgetExceeded, TimeoutError."""
        attempt, limit = self._attempt, self._attempt.config.limits.seconds
        async with asyncio.timeout(None if limit is None else max(0.0, limit - attempt.journal.now)):
            with self._state.spending.task.reserve({"evaluations": 1}):
                seen = await attempt.context(root, "value", draw=root.evaluations, confirms=confirms)
                return await evaluate(attempt.agent.value, msgspec.structs.replace(seen, data=self._object))

    @property
    def _object(self) -> str:
        """The object that a model has put the answer into, in JSON; empty without one."""
        extracted = self._state.live.extracted
        return extracted.data if extracted is not None and self._attempt.agent.answerer is not None else ""

    async def _is_scored(self) -> bool:
        """Return True where the benchmark scores the attempt."""
        return (await self._attempt.live.open()).capabilities.evaluates

    async def reflect(self) -> None:
        """Write reflections on the greatest surprises to memory.

        A reflector or a memory that fails is journalled, and the attempt is scored all the same.
        """
        attempt, settings, scored = self._attempt, self._attempt.config.reflection, self._state.live.scored
        reflector = attempt.agent.reflector
        if attempt.memory is None or reflector is None or (scored and settings.outcome == "judge"):
            return
        outcome = scored.score.value if scored else self._state.live.judged.evaluation.value if self._state.live.judged else None
        unconfirmed = not scored and not settings.confirm  # the final state was evaluated once only
        surprises = contrast(
            hindsight(self._state, attempt.blobs, outcome, NOISE),
            signals=settings.signals, threshold=settings.threshold, most=settings.most,
            praise=unconfirmed or outcome is None or outcome >= SOLVED,
        )  # fmt: skip
        written = {(each.reflection.kind, each.reflection.node, each.reflection.action) for each in self._state.live.reflected}
        for kind, surprise in surprises:
            if (kind, surprise.node, surprise.step.action.key) in written:
                continue
            seen = attempt.bare_context(self._state.search.tree.nodes[surprise.node])
            try:
                with calling("reflector.reflect", reflector):
                    said = await awaited(reflector.reflect(seen, surprise, kind))
                    reflection = said if said is None else expect(said, Reflection)
            except (ModelError, PartError, BudgetExceeded) as error:
                attempt.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            if reflection is None:
                continue
            reflection = msgspec.structs.replace(
                reflection, outcome=outcome, outcome_source="evaluator" if scored else "judge", signal=surprise.signal
            )
            reflection = scrubbed(reflection, attempt.blobs.scrubber)
            try:
                with calling("memory.add", attempt.memory):
                    without_result(await asyncio.to_thread(attempt.memory.add, reflection))
            except (InfrastructureError, PartError) as error:
                attempt.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            attempt.record(ev.Reflected(reflection=reflection))

    async def report_use(self) -> None:
        """Report to memory how the attempt ended in which its reflections were recalled."""
        attempt = self._attempt
        if attempt.memory is not None and (used := recalled_ids(self._state)):
            id = attempt_id(attempt.config.name, attempt.task, attempt.journal.path)
            try:
                with calling("memory.used", attempt.memory):
                    without_result(await asyncio.to_thread(attempt.memory.used, id, used, went_well(attempt.config, self._state)))
            except (InfrastructureError, PartError) as error:
                attempt.record(ev.Failed(what="reflection", node=self._state.search.tree.root.id, reason=str(error)))


NEEDS_USER = "needs_user"
"""Beginning of the reason of an attempt that ended at such a page, and the status of its result."""
_ROBOT = re.compile(
    r"not a robot|verify (?:that )?you(?:'re| are) (?:a )?human|human verification|re-?captcha|h-?captcha|"
    r"\bcaptcha\b|cloudflare security challenge|"
    r"turnstile challenge|kein roboter|pas un robot|no soy un robot|non sono un robot|não sou um robô|geen robot|"
    r"nie jestem robotem|"
    r"я не робот|不是机器人|不是機器人|人机验证|人機驗證|ロボットではありません",
    re.I,
)
"""Names of the controls of a captcha."""
_CODE = re.compile(
    r"(?:verification|authentication|authenticator|security|one[- ]time|confirmation|two[- ]factor|two[- ]step|login|sms)"
    r" ?-?(?:code|passcode|pin)\b|"
    r"\b(?:2fa|otp|totp|mfa)\b|one[- ]time password|[456][- ]digit code|bestätigungscode|sicherheitscode|"
    r"einmalpasswort|code de (?:vérification|sécurité)|"
    r"código de (?:verificación|seguridad|verificação|segurança)|codice di (?:verifica|sicurezza)|verificatiecode|"
    r"beveiligingscode|"
    r"kod (?:weryfikacyjny|bezpieczeństwa)|код (?:подтверждения|из смс)|验证码|驗證碼|認証コード|確認コード",
    re.I,
)
"""Names of the fields of a second factor."""
_CONTROLS = ("checkbox", "Iframe", "iframe", "button", "textbox", "img", "image")
_FIELDS = ("textbox", "spinbutton")


def needs_user(seen: Observation) -> str:
    """Return what a page asks of a person that an agent cannot do; empty where it asks nothing of the kind.

    Only controls count: a page may write of captchas.
    """
    for each in seen.elements:
        if each.role in _CONTROLS and "checked" not in each.states and _ROBOT.search(each.name):
            return f"a captcha at {seen.url}"
        if each.role in _FIELDS and not each.value and _CODE.search(each.name):
            return f"the code of a second factor at {seen.url}"
    return ""


FAILED = 0.3
"""Greatest value of an end that counts as failed."""
SOLVED = 0.5
"""Least value of an attempt that counts as one that went well."""


def hindsight(state: AttemptState, blobs: Blobs, outcome: float | None, noise: float = 0.3) -> list[Record]:
    """Return a record of each committed step that was carried out, in order.

    outcome: how the attempt ended, in [0, 1], in place of the last state's value; None where that is not known. noise: standard deviation
    of one evaluation, where the search measured none.
    """
    decided = [each for each, step in zip(state.live.decisions, state.live.committed, strict=False) if not step.refused]
    measured = math.sqrt(state.search.tree.squares / state.search.tree.repeats) if state.search.tree.repeats else 0.0
    found = list[Record]()
    for i, (decision, before, after) in enumerate(zip(decided, state.live.path, state.live.path[1:], strict=False)):
        following = decided[i + 1].decision.value if i + 1 < len(decided) else outcome
        found.append(_record(state, blobs, decision, before, after, following, outcome, max(noise, measured)))
    return found


def _record(
    state: AttemptState,
    blobs: Blobs,
    decided: ev.Decided,
    before: int,
    after: int,
    following: float | None,
    outcome: float | None,
    noise: float,
) -> Record:
    node, came, decision = state.search.tree.nodes[before], state.search.tree.nodes[after], decided.decision
    edge = node.edges[decision.edges[0]]
    options = {each.edge: each for each in decision.alternatives}
    chosen = options.get(decision.edges[0])
    visits = chosen.visits if chosen else 1
    evaluation = came.evaluation if came.evaluation is not None and not came.evaluation.unjudged else None
    first = evaluation.value if evaluation is not None else None
    ended = outcome if after == state.live.path[-1] else None
    seen = partial(_seen_after, blobs, node)
    return Record(
        step=_taken(blobs, node, edge),
        after=blobs.get_observation(came.observation) if came.observation else None,
        node=before,
        before=node.value,
        chosen=decision.value,
        chosen_visits=visits,
        expected=_expected(state.search.algorithm, node, edge, came, decision.value, visits),
        came=first if ended is None else ended,
        first=first,
        judgement=evaluation,
        final=_worth(state, edge, came, outcome) if ended is None else ended,
        following=following,
        favourite=_favourite(decision, seen),
        best_other=max(_options(decision, seen), key=lambda option: option.value, default=None),
        failed=_deepest_failure(blobs, node, edge),
        noise=noise,
    )


def _expected(algorithm: object, node: Node, edge: Edge, came: Node, q: float | None, visits: int) -> float | None:
    """Return Q at the decision without the evaluations of the state that followed: what was expected before it was visited.

    Where Q holds nothing else it is V of the state before. A maximum, and a value that is settled, holds those evaluations only while
    nothing below is known. A mixture of mean and maximum is left as it is.
    """
    own = came.value
    if q is None or own is None or not visits:
        return q
    below = visits - came.backups
    if came.leaf or below <= 0:
        return node.value
    if edge.settled or not isinstance(algorithm, Work) or algorithm.backup is not mean:
        return q
    return min(1.0, max(0.0, (visits * q - algorithm.discount * came.backups * own) / below))


def _worth(state: AttemptState, edge: Edge, came: Node, outcome: float | None) -> float | None:
    """Return the value of a state on the path in hindsight: the search's backup of all that was found below it until the end.

    No less than a good outcome, to which the state led.
    """
    if came.mean is None:
        return None
    found = settled_value(came)
    if found is None:
        rule = state.search.algorithm.backup if isinstance(state.search.algorithm, Work) else mean
        found = rule(Edge(action=edge.action, prior=edge.prior, visits=1, total=came.mean), came)
    return max(found, outcome) if outcome is not None and outcome >= SOLVED else found


def _seen_after(blobs: Blobs, node: Node, alternative: Alternative) -> Observation | None:
    """Return the observation that an action of a state led to in the search; None if it was not seen."""
    child = node.edges[alternative.edge].child if alternative.edge < len(node.edges) else None
    return blobs.get_observation(child.observation) if child is not None and child.observation else None


def _options(decision: Decision, seen: Callable[[Alternative], Observation | None]) -> Iterator[Option]:
    """Yield the actions that were not chosen and had a value."""
    for other in decision.alternatives:
        if other.edge != decision.edges[0] and other.value is not None:
            yield _option(other, other.value, seen(other))


def _favourite(decision: Decision, seen: Callable[[Alternative], Observation | None]) -> Option | None:
    """Return the policy's first choice, where it was another action and was searched."""
    first = max(decision.alternatives, key=lambda each: each.prior, default=None)
    if first is None or first.edge == decision.edges[0] or first.value is None:
        return None
    return _option(first, first.value, seen(first))


def _option(alternative: Alternative, value: float, after: Observation | None) -> Option:
    return Option(action=alternative.action, value=value, visits=alternative.visits, after=after)


def _taken(blobs: Blobs, node: Node, edge: Edge) -> Taken:
    return Taken(observation=blobs.get_observation(node.observation), action=edge.action, rationale=edge.rationale)


def _deepest_failure(blobs: Blobs, node: Node, committed: Edge) -> FailedPath | None:
    """Return the deepest end below the other actions of a state whose value counts as failed."""
    found: tuple[Node, Edge] | None = None
    for edge in node.edges:
        if edge is committed or edge.child is None or edge.child.parent is not node:
            continue
        for end in _ends(edge.child):
            if end.value is not None and end.value <= FAILED and (found is None or end.depth > found[0].depth):
                found = end, edge
    if found is None:
        return None
    end, edge = found
    name = edge.child.observation if edge.child is not None and not edge.child.leaf else ""
    after = blobs.get_observation(name) if name else None
    return FailedPath(step=_taken(blobs, node, edge), after=after, depth=end.depth, value=end.value or 0.0)


def _ends(node: Node) -> Iterator[Node]:
    """Yield the terminated states at and below a node."""
    below = [node]
    while below:
        here = below.pop()
        if here.terminated:
            yield here
        below += [edge.child for edge in here.edges if edge.child is not None and edge.child.parent is here]
