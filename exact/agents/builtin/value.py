"""The value function of the embedded agent, which is not a language model: how much of the instruction is visibly done."""

from __future__ import annotations

from exact.agents.builtin.judge import judge
from exact.agents.builtin.progress import Status
from exact.agents.builtin.recall import adjustment
from exact.agents.builtin.situation import Situation, situation
from exact.context import Context, Evaluation
from exact.reflection.lesson import action_label


class BuiltinValue:
    """Estimates success from the parts of the instruction that are done and open; needs no model, draws no random number.

    A state that ended the episode is judged from the last observation before its end and the action taken there.
    """

    async def evaluate(self, context: Context) -> Evaluation:
        """The estimated probability of success, with the parts that are done and open."""
        ended = context.terminated and context.history
        history = context.history[:-1] if ended else context.history
        at = situation(context.instruction, context.observation, history)
        value, why = self._ended(context, at) if ended else self._going(context, at)
        if context.history:
            last = context.history[-1]
            label = action_label(last.action, last.observation)
            change, lesson = adjustment(context.reflections, "value", context.instruction, label)
            value, why = value + change, why + (f"; {lesson}" if lesson else "")
        value = min(max(value, 0.01), 0.98)
        return Evaluation(value=value, rationale=f"{why}. {_told(at)}", samples=(value,))

    def _ended(self, context: Context, at: Situation) -> tuple[float, str]:
        verdict = judge(at, context.history[-1].action)
        finished = verdict.guess and bool(at.progress.tasks) and not at.progress.open
        value = 0.7 * at.progress.sure if finished else verdict.score * (0.3 if verdict.guess else 1.0)
        return value, f"the episode ended with {context.history[-1].action}: {verdict.why}"

    def _going(self, context: Context, at: Situation) -> tuple[float, str]:
        if context.steps_left == 0:
            return 0.02, "no action is left"
        progress = at.progress
        value = 0.1 + 0.6 * progress.share - 0.08 * min(progress.stray, 3)
        return value, f"{progress.share:.0%} of the instruction is done or in sight"


def _told(at: Situation) -> str:
    done = [str(s.part) for s in at.progress.statuses if s.done]
    open_ = [_open(s) for s in at.progress.statuses if not s.done]
    return f"Done: {', '.join(done) or 'nothing'}. Open: {', '.join(open_) or 'nothing'}"


def _open(status: Status) -> str:
    return f"{status.part} ({'in sight' if status.best >= 0.6 else 'not in sight'})"
