"""The process that proposes actions for `exact.interop.browsergym`: a line with an observation in, a line with an action out."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.agents.agent import build_agent
from exact.agents.base import Policy, propose
from exact.config import load
from exact.context import Context, Taken
from exact.environments.adapters.guests.browsergym_mapping import VERBS, code
from exact.errors import ExactError
from exact.machine import scratch
from exact.models.open import Models
from exact.observation import Observation
from exact.plugins import trust
from exact.task import Task


def _verb(fields: dict[str, Any]) -> Verb:
    parameters = {parameter.value: parameter for parameter in Parameter}
    form = tuple(parameters.get(part, part) for part in fields.get("form", ()))
    return Verb(name=fields["name"], form=form, help=fields["help"], final=fields.get("final", False))


ACTIONS = ActionSpace([_verb(each) for each in VERBS])
"""The grammar of an agent's actions in BrowserGym."""


class PeerEpisode:
    """One episode: its observations and actions, and the next action."""

    def __init__(self, policy: Policy, k: int) -> None:
        """Begin. `k`: most actions that the policy proposes for a state."""
        self._policy, self._k = policy, k
        self._history: list[Taken] = []
        self._last: tuple[Observation, Action, str] | None = None

    async def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the likeliest action in BrowserGym's form, with its reason. Raises ModelError."""
        seen = msgspec.convert(message["observation"], Observation)
        if message["picture"]:
            seen = msgspec.structs.replace(seen, screenshot=base64.b64decode(message["picture"]))
        error, tried = " ".join(message["error"].split())[:300], tuple[Taken, ...]()
        if self._last is not None:
            before, action, why = self._last
            taken = Taken(observation=before, action=action, rationale=why, error=error)
            self._history, tried = [*self._history, taken], (taken,) if error else ()
        task = Task(id="browsergym", instruction=seen.instruction)
        context = Context(task=task, instruction=seen.instruction, observation=seen, history=tuple(self._history), tried=tried)
        proposals = await propose(self._policy, context, ACTIONS, self._k)
        refused = {each.action.key for each in tried}
        best = next((each for each in proposals if each.action.key not in refused), None)
        if best is None:
            return {"action": "noop(1000)", "think": "the policy proposes nothing here", "stats": {"proposals": len(proposals)}}
        self._last = seen, best.action, best.rationale
        acted = code(best.action.name, list(best.action.args), message["height"])
        return {"action": acted, "think": best.rationale, "stats": {"proposals": len(proposals), "prior": best.prior}}


async def serve(name: str, settings: Sequence[str]) -> None:
    """Answer lines of standard input until it ends."""
    config = load(name, tuple(settings))
    trust(config.own_parts)
    with scratch("browsergym") as folder:
        models = Models(config.models, folder=folder)
        try:
            episode = PeerEpisode(build_agent(config, models.chat).policy, config.search.k)
            while line := await asyncio.to_thread(sys.stdin.readline):
                try:
                    answer = await episode.answer(json.loads(line))
                except ExactError as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
        finally:
            await models.close()


def main() -> int:
    """Serve one agent and return the exit code."""
    try:
        asyncio.run(serve(sys.argv[1], sys.argv[2:]))
    except ExactError as error:
        sys.stderr.write(f"exact: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
