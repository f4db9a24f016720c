"""Replays of the committed actions of an attempt in a fresh environment, for a benchmark's scores and for rescoring a run."""

from __future__ import annotations

from exact.config import Config
from exact.environments.base import EnvironmentFactory, evaluate_outcome
from exact.errors import ActionError, UsageError
from exact.evaluation.folder import Replay
from exact.observation import Observation, same_state
from exact.runs.attempt.live import observations_before_steps, rebind, rebuilding
from exact.runs.attempt.observations import waypoints
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import Blobs, RunFolder
from exact.runs.tools import with_recorded_tools
from exact.task import Outcome, Task


def finished_state(run: RunFolder, config: Config, task: Task) -> AttemptState | None:
    """Return the state of an ended attempt; None if it has not ended. Raises JournalError."""
    path = run.task_folder(task) / "journal.jsonl"
    state = fold(config, read_journal(path)) if path.exists() else None
    return state if state is not None and state.live.ended is not None and state.live.started else None


async def replay(environments: EnvironmentFactory, task: Task, state: AttemptState, blobs: Blobs) -> Replay:
    """Reset a fresh environment, execute every committed action, and evaluate. No model is called and nothing is searched.

    Raises EnvironmentFailure if the environment fails, UsageError if the actions wrote to an environment that is not isolated,
    JournalError.
    """
    assert state.live.ended is not None, "an attempt is replayed after it has ended"
    steps = state.live.carried_out
    async with with_recorded_tools(environments, state).open(simulation=False) as environment:
        if state.live.would_write_again and not environment.capabilities.isolated:
            raise UsageError(
                f"{task.id} wrote to a site that is not isolated: its actions are not sent twice; reset the site and run the task again"
            )
        match, reason = "same", ""
        start = await environment.reset(task)
        observation: Observation | None = start
        if not same_state(start.fingerprint, waypoints(state.search.tree.root)[0].fingerprint):
            match, reason = "drifted", "at the start"
        for number, (step, then) in enumerate(zip(steps, observations_before_steps(state, blobs), strict=True), 1):
            try:
                with rebuilding(environment):
                    transition = await environment.step(rebind(environment.actions, step.action, then, observation))
            except ActionError as error:
                match, reason = "refused", f"action {number}: {error}"
                break
            observation = transition.observation
            same = same_state(observation.fingerprint if observation else "", step.fingerprint)
            if match == "same" and not (same and transition.terminated == step.terminated):
                match, reason = "drifted", f"after action {number}"
            if transition.terminated:
                break
        if not environment.capabilities.evaluates:
            return Replay(task=task.id, score=None, match=match, reason=reason or "no evaluator")
        score = await evaluate_outcome(environment, task, Outcome(actions=state.live.actions, answer=state.live.ended.answer))
        return Replay(
            task=task.id, score=score.value, raw=score.raw, match=match, reason=reason or score.reason,
            missing="answer" if score.unanswered else "",
        )  # fmt: skip
