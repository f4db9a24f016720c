"""Models that know the way and think for 0.1 to 20 seconds, and Wagtail with a log of the requests that reach it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

from _guided import SiteWay

from exact.action import ActionSpace
from exact.benchmarks.sites.suite import SERVER, WAGTAIL, SiteSuite
from exact.context import Context, Evaluation, Proposal
from exact.environments.sandbox.service import Service
from exact.models.scripted import LateAnswer, Question

LEAST, MOST = 0.1, 20.0
"""Seconds of a thought, drawn evenly."""
WAGTAIL_TASKS = (13, 16, 18, 20, 21, 22, 23, 24, 26, 27)
"""Tasks that write."""


def seconds(*drawn_by: object) -> float:
    """Return how long a thought takes, by what it is about."""
    return random.Random(repr(drawn_by)).uniform(LEAST, MOST)


def thought(question: Question, times: int) -> LateAnswer:
    """Delay an answer of a scripted server, as its faults do."""
    return LateAnswer(seconds(question.key, question.seed, times))


class ThinkingWay(SiteWay):
    """The reference path of a task, by somebody who thinks."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        await asyncio.sleep(seconds("propose", context.seed, context.node))
        return await super().propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        await asyncio.sleep(seconds("evaluate", context.seed, context.node))
        return await super().evaluate(context)


class SureWay(SiteWay):
    """The reference path by somebody who takes it at once."""

    prior = 0.9


class SureThinkingWay(ThinkingWay):
    """The reference path by somebody who thinks, and takes it."""

    prior = 0.9


class LoggedWagtail(SiteSuite):
    """Wagtail, whose server writes down each request."""

    def __init__(self, log: Path) -> None:
        """Configure the suite. log: where the requests go, as lines of JSON."""
        super().__init__(WAGTAIL)
        self._log = log

    async def _service(self, port: int, token: str) -> Service:
        service = await super()._service(port, token)
        at = service.command.index(str(SERVER))
        logging = Path(__file__).with_name("_logged_site.py")
        return Service(
            command=(*service.command[:at], str(logging), str(self._log), *service.command[at:]),
            ready_url=service.ready_url, seconds=service.seconds, reads=service.reads,
        )  # fmt: skip


def requests(log: Path) -> Sequence[dict[str, str]]:
    """Return the requests of a log."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
