"""The lexical value function of the built-in agent, which is not a language model: the visibly completed share of the instruction."""

from __future__ import annotations

from exact.action import Action
from exact.agents.builtin.judge.finish import absence, completion, nearness_to_end
from exact.agents.builtin.judge.progress import SubgoalStatus
from exact.agents.builtin.judge.recall import reflection_adjustment
from exact.agents.builtin.judge.score import score_action
from exact.agents.builtin.judge.situation import ActionScore, Situation, read_situation
from exact.agents.builtin.page.coverage import setting_coverage, word_coverage, wrong_record_clicks
from exact.agents.builtin.page.matching import CONFIDENT, affinity, proximity
from exact.context import Context, Evaluation

_WEIGHT_OF_ACTION = 0.4
"""Weight of an action's score, less 0.5, in the value of an unseen state."""


class LexicalValue:
    """Estimates success from the completed and open subgoals. Uses no model and no random numbers.

    A state that ended the episode is evaluated from the last observation before its end and the final action, an unseen one from the state
    before it and the action.
    """

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the estimated probability of success, with the completed and open subgoals as the rationale."""
        before = (context.terminated or context.unseen) and context.history
        history = context.history[:-1] if before else context.history
        situation = read_situation(context, history)
        judge = self._unseen if before and context.unseen else self._ended if before else self._going
        value, reason = judge(context, situation)
        if context.history:
            last = context.history[-1]
            change, reflection = reflection_adjustment(context, "value", last.action, last.observation, context.history[:-1])
            value, reason = value + change, reason + (f"; {reflection}" if reflection else "")
        value = min(max(value, 0.01), 0.98)
        return Evaluation(value=value, rationale=f"{reason}. {_summary(situation)}", samples=(value,))

    def _ended(self, context: Context, situation: Situation) -> tuple[float, str]:
        """Return the value of an ended episode, and the reason.

        An end with all subgoals completed finished the task; an end with open subgoals came too early.
        """
        action = context.history[-1].action
        scored = score_action(situation, action)
        if situation.application:
            return self._stopped(situation, action, scored)
        if scored.exploratory:
            value, left = self._ended_by_a_guess(situation, action, scored.score), 0
        else:
            left = _open_count(situation, action)
            value = scored.score * 0.5**left
        value *= _setting_factor(situation) * (0.75 + 0.25 * word_coverage(situation.goal, situation.page, situation.history))
        return value, f"the episode ended with {action}: {scored.reason}" + (f"; parts left: {left}" if left else "")

    def _unseen(self, context: Context, situation: Situation) -> tuple[float, str]:
        """Return the value of the state before an action whose effect is unknown, raised or lowered by the action's own score."""
        action = context.history[-1].action
        value, _ = self._going(context, situation)
        scored = score_action(situation, action)
        return value + _WEIGHT_OF_ACTION * (scored.score - 0.5), f"what {action} leads to is unknown: {scored.reason}"

    def _stopped(self, situation: Situation, action: Action, scored: ActionScore) -> tuple[float, str]:
        """Return the value of ending an application's episode: how far the task is completed, or how good the given answer is."""
        if action.name != "stop":
            return scored.score, f"the episode ended with {action}: {scored.reason}"
        given = str(action.args[0])
        found = next((each.score for each in situation.answers if each.text == given), 0.0)
        worth = (
            completion(situation)
            if situation.question is None
            else 0.4 * absence(situation)
            if given == situation.question.absent_answer != ""
            else found
        )
        return 0.95 * worth, f"stopped with {given!r}: {scored.reason}"

    def _ended_by_a_guess(self, situation: Situation, action: Action, score: float) -> float:
        """Return the value of an end by an exploratory action: that of the work completed before.

        If no open subgoal's element was in sight, the proximity of the clicked element to the instruction's values counts a little.
        """
        tasks, open_ = situation.progress.tasks, situation.progress.open
        done = (len(tasks) - len(open_)) / len(tasks) if tasks else 0.0
        item = situation.page.by_id.get(action.elements[0]) if action.elements else None
        blind = all(s.best_affinity < 0.3 for s in open_) and item is not None and item.unlabelled
        near = proximity(item, situation.goal, situation.page) if blind and item is not None else 0.0
        return max(0.3 * score, 0.2 * near, 0.9 * situation.progress.confidence * done**2)

    def _going(self, context: Context, situation: Situation) -> tuple[float, str]:
        if context.steps_left == 0:
            return 0.02, "no action is left"
        progress = situation.progress
        value = (
            0.05
            + 0.6 * progress.share * _setting_factor(situation)
            + 0.1 * word_coverage(situation.goal, situation.page, situation.history)
            - 0.08 * min(progress.stray_count, 3)
        )
        if situation.question is not None:
            value = 0.05 + 0.8 * nearness_to_end(situation)
        elif situation.application:
            value = max(value, 0.05 + 0.8 * nearness_to_end(situation))
        if context.steps_left is not None:
            value *= 1 - 0.4**context.steps_left  # the fewer actions are left, the less can still be mended
        if situation.application and nearness_to_end(situation) >= 0.3:
            return value, f"{nearness_to_end(situation):.0%} sure that the end is near"
        needed = len(progress.open) + any(s.subgoal.submits for s in progress.statuses)
        if context.steps_left is not None and context.steps_left < needed:
            return 0.3 * value, f"actions needed: {needed}, left: {context.steps_left}"
        return value, f"{progress.share:.0%} of the instruction is done or in sight"


def _open_count(situation: Situation, action: Action) -> int:
    """Return how many subgoals were open when the action ended the episode, without the one it may have completed itself."""
    item = situation.page.by_id.get(action.elements[0]) if action.elements else None
    unsent = [
        s
        for s in situation.progress.statuses
        if s.subgoal.submits and (item is None or affinity(s.subgoal, item, situation.page) < CONFIDENT)
    ]
    return max(0, len(situation.progress.open) - 1) + len(unsent)


def _setting_factor(situation: Situation) -> float:
    """Return the factor, in [0, 1], that remains of the value of completed work.

    It is less than 1 if the record that the work is about is not in sight, or if the work was done on another record.
    """
    return (0.5 + 0.5 * setting_coverage(situation.goal, situation.page, situation.history)) * 0.6 ** wrong_record_clicks(
        situation.goal, situation.history
    )


def _summary(situation: Situation) -> str:
    done = [str(s.subgoal) for s in situation.progress.statuses if s.done]
    open_ = [_open(s) for s in situation.progress.statuses if not s.done]
    return f"Done: {', '.join(done) or 'nothing'}. Open: {', '.join(open_) or 'nothing'}"


def _open(status: SubgoalStatus) -> str:
    return f"{status.subgoal} ({'in sight' if status.best_affinity >= 0.6 else 'not in sight'})"
