"""The end of an attempt: when nothing more is committed, the agent's own evaluation, and the reflections on what surprised it.

Pages that only a person can pass: a captcha, or the code of a second factor.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from exact.context import Evaluation, Reflection
from exact.errors import AnswerError, BudgetExceeded, InfrastructureError, ModelError, PartError
from exact.observation import Observation
from exact.parts import calling, expect
from exact.reflection.contrast import contrast
from exact.runs.attempt.agent_calls import evaluated
from exact.runs.attempt.context import AttemptContext
from exact.runs.attempt.hindsight import SOLVED, hindsight
from exact.runs.attempt.memory import attempt_id, recalled_ids, went_well
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import scrubbed
from exact.search.tree import Node

STOPPED = "stopped by a viewer"


def why_over(attempt: AttemptContext) -> str:
    """Return why no further action will be committed; empty while one may be."""
    if attempt.state.tree.root.terminated:
        return "the episode ended" if final_answer(attempt.state) is None else "the agent stopped"
    if is_stopped_unsearched(attempt.state):
        return STOPPED
    if what := _needs_user(attempt):
        return f"{NEEDS_USER}: {what}"
    try:
        attempt.state.budget.check("actions")
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
    if attempt.state.decided is not None or attempt.state.isolated is not False:
        return ""
    root = attempt.state.tree.root
    what = needs_user(attempt.blobs.get_observation(root.observation)) if root.observation else ""
    return "" if attempt.config.browser.ask_user and "second factor" in what else what


def is_stopped_unsearched(state: AttemptState) -> bool:
    """Return True where a viewer stopped the search before anything was searched from the present root."""
    return state.stopped and state.decided is None and not state.tree.root.visited


def final_answer(state: AttemptState) -> str | None:
    """Return the text of the final `stop`; None where none was committed."""
    root = state.tree.root
    if root.edge is None or not root.terminated or root.edge.action.name != "stop":
        return None
    return " ".join(map(str, root.edge.action.args))


class Ending:
    """Evaluates the end of an attempt and learns from it."""

    def __init__(self, attempt: AttemptContext) -> None:
        self._attempt, self._state = attempt, attempt.state

    async def evaluate(self) -> None:
        """Journal the agent's own evaluation of its final state.

        The search's evaluation of it is taken where there is one. An algorithm that does not simulate has none, and is asked for none
        where the benchmark scores the attempt. Raises ModelError where there is neither an evaluation nor a benchmark's score.
        """
        root = self._state.tree.root
        if self._state.judged or self._state.scored:
            return
        evaluation = found = root.evaluation if root.evaluation is not None and not root.evaluation.unjudged else None
        settings = self._attempt.config.reflection
        confirms = self._attempt.memory is not None and settings.outcome == "judge" and settings.confirm
        if found is None or confirms:
            if found is None and not self._state.algorithm.simulates and await self._is_scored():
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
            with self._state.budget.reserve({"evaluations": 1}):
                seen = await attempt.context(root, "value", draw=root.evaluations, confirms=confirms)
                return await evaluated(attempt.agent.value, seen)

    async def _is_scored(self) -> bool:
        """Return True where the benchmark scores the attempt."""
        return (await self._attempt.live.open()).capabilities.evaluates

    async def reflect(self) -> None:
        """Write reflections on the greatest surprises to memory.

        A reflector or a memory that fails is journalled, and the attempt is scored all the same.
        """
        attempt, settings, scored = self._attempt, self._attempt.config.reflection, self._state.scored
        if attempt.memory is None or attempt.agent.reflector is None or (scored and settings.outcome == "judge"):
            return
        outcome = scored.score.value if scored else self._state.judged.evaluation.value if self._state.judged else None
        unconfirmed = not scored and not settings.confirm  # the final state was evaluated once only
        surprises = contrast(
            hindsight(self._state, attempt.blobs, outcome, attempt.config.search.noise),
            signals=settings.signals, threshold=settings.threshold, most=settings.most, add_q=settings.add_q,
            praise=unconfirmed or outcome is None or outcome >= SOLVED,
        )  # fmt: skip
        written = {(each.reflection.kind, each.reflection.node, each.reflection.action) for each in self._state.reflected}
        for kind, surprise in surprises:
            if (kind, surprise.node, surprise.step.action.key) in written:
                continue
            seen = attempt.bare_context(self._state.tree.nodes[surprise.node])
            try:
                with calling("reflector.reflect"):
                    found = await attempt.agent.reflector.reflect(seen, surprise, kind)
                reflection = expect("reflector.reflect", found, Reflection)
            except (ModelError, PartError, BudgetExceeded) as error:
                attempt.record(ev.Failed(what="reflection", node=surprise.node, reason=str(error)))
                continue
            reflection = msgspec.structs.replace(
                reflection, outcome=outcome, outcome_source="evaluator" if scored else "judge", signal=surprise.signal
            )
            reflection = scrubbed(reflection, attempt.blobs.scrubber)
            try:
                with calling("memory.add"):
                    await asyncio.to_thread(attempt.memory.add, reflection)
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
                with calling("memory.used"):
                    await asyncio.to_thread(attempt.memory.used, id, used, went_well(attempt.config, self._state))
            except (InfrastructureError, PartError) as error:
                attempt.record(ev.Failed(what="reflection", node=self._state.tree.root.id, reason=str(error)))


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
