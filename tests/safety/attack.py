"""An attack: a small page and what an agent does there. It is carried out in an environment, and the servers say what came."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest

from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.fork.factory import forking
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sites.site import Outside
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Task
from tests.environments.browser.pages import find

from .hostile import Answer, Attacker

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=1.0, answer_seconds=3.0)
KINDS = ("process", "sandbox")
T = TypeVar("T")

AT_ONCE = 6
"""Attacks that run at the same time in one browser."""
PATIENCE = 2.5
"""Seconds in which a page says that its attack is over. Many cannot say so: they have left, or are blocked."""


@dataclass(frozen=True)
class Attack:
    """A page and its part. `page` is HTML after a button `Go`, which calls `go()` where the page has that function.

    TRAP, TRAP_PORT, OWN, OTHER and NAME in page, headers, files and acts stand for host and port of the servers and the attack's name.
    """

    name: str
    page: str
    headers: tuple[tuple[str, str], ...] = ()
    files: dict[str, Answer] = field(default_factory=dict)
    """Answers at `/NAME/file` of the own site."""
    acts: tuple[str, ...] = ()
    """Actions, with the element's name in brackets. Without any, opening the page is the attack."""
    hole: str = ""
    """Why it is expected to succeed today, in the plain process. Empty: it is stopped."""
    sandbox_hole: str = ""
    """The same in a sandbox."""
    works: bool = True
    """Whether it succeeds in a browser that nobody guards, as far as was seen (`python -m tests.safety.unguarded`)."""


def plain(name: str, page: str, **more: Any) -> Attack:
    """Return an attack by opening a page."""
    return Attack(name, page, **more)


def pressed(name: str, script: str, **more: Any) -> Attack:
    """Return an attack by a script that runs when the agent clicks Go."""
    return Attack(name, f"<script>async function go() {{ {script} }}</script>", acts=("click [Go]",), **more)


def loaded(name: str, script: str, **more: Any) -> Attack:
    """Return an attack by a script that runs when the page is opened."""
    return Attack(name, f"<script>(async () => {{ {script} }})()</script>", **more)


@dataclass
class Result:
    """What came of an attack: what reached the trap, which writes reached own and other site, and how the environment failed."""

    arrived: list[str]
    own: list[str]
    other: list[str]
    opened: bool
    """Whether the page of the attack was requested."""
    failure: str = ""
    seconds: float = 0.0


def prepare(attack: Attack, attacker: Attacker) -> tuple[str, Any]:
    """Put an attack's page and files on the own site. Return the page's address and the trap."""
    trap = attacker.traps.set()

    def filled(text: str) -> str:
        return attacker.fill(text, attack.name, trap)

    end = f"fetch('/done/{attack.name}').catch(() => 0)"
    head = (
        f"<!doctype html><meta charset=utf-8><title>{attack.name}</title><script>const done = () => setTimeout(() => {end}, 350)</script>"
    )
    button = "<button onclick=\"Promise.resolve(globalThis.go && go()).catch(e => console.log('' + e)).finally(done)\">Go</button>"
    tail = "" if attack.acts else "<script>addEventListener('load', done); setTimeout(done, 700)</script>"
    kinds = tuple((name, filled(value)) for name, value in attack.headers)
    attacker.own.answers[f"/{attack.name}/"] = Answer((head + button + filled(attack.page) + tail).encode(), "text/html", 200, kinds)
    for path, answer in attack.files.items():
        attacker.own.answers[f"/{attack.name}/{path}"] = Answer(
            answer.body if answer.body[:1] >= b"\x80" else filled(answer.body.decode("latin1")).encode("latin1"),
            answer.kind, answer.status, tuple((name, filled(value)) for name, value in answer.headers),
            filled(answer.raw.decode("latin1")).encode("latin1"), answer.endless,
        )  # fmt: skip
    return f"{attacker.start}/{attack.name}/", trap


async def carry_out(attack: Attack, attacker: Attacker, factory: EnvironmentFactory, *, simulation: bool) -> Result:
    """Open an attack's page in an environment of its own, act, wait until the page is done, close it, and return what came."""
    start, trap = prepare(attack, attacker)
    task = Task(id=f"hostile/{attack.name}", instruction="Look around.", start=start, origins=(attacker.beside,))
    began, failure = time.monotonic(), ""
    try:
        async with factory.open(simulation=simulation) as environment:
            seen = await environment.reset(task)
            for act in attack.acts:
                verb, _, name = act.partition(" ")
                if name.startswith("["):
                    element, _, rest = name[1:].partition("]")
                    name = f"[{find(seen, element).id}]{rest}"
                text = attacker.fill(f"{verb} {name}".strip(), attack.name, trap)
                try:
                    seen = (await environment.step(environment.actions.parse(text))).observation or seen
                except ActionError as error:
                    failure = str(error)
            await _over(attack, attacker)
    except EnvironmentFailure as error:
        failure = str(error)
    return Result(
        list(trap.arrived), attacker.own.writes(attack.name), attacker.other.writes(attack.name),
        f"GET /{attack.name}/" in attacker.own.log, failure, time.monotonic() - began,
    )  # fmt: skip


async def _over(attack: Attack, attacker: Attacker) -> None:
    """Return when the page has said that its attack is over, or cannot say it any more."""
    for _ in range(int(PATIENCE / 0.05)):
        if f"GET /done/{attack.name}" in attacker.own.log:
            return
        await asyncio.sleep(0.05)


async def carry_out_all(
    attacks: tuple[Attack, ...], attacker: Attacker, factory: EnvironmentFactory, *, simulation: bool, at_once: int = AT_ONCE
) -> dict[str, Result]:
    """Carry out attacks, some at the same time, and return the results by name."""
    free = asyncio.Semaphore(at_once)

    async def one(attack: Attack) -> tuple[str, Result]:
        async with free:
            return attack.name, await carry_out(attack, attacker, factory, simulation=simulation)

    return dict(await asyncio.gather(*map(one, attacks)))


@asynccontextmanager
async def environments(kind: str, config: BrowserConfig = CONFIG, evaluator: Any = None) -> AsyncIterator[EnvironmentFactory]:
    """Open a factory of one kind for a site outside: in a browser of this machine, or in a sandbox that forks."""
    async with AsyncExitStack() as stack:
        if kind == "process":
            browser = await stack.enter_async_context(launch(config))
            yield BrowserFactory(browser, PageSetup(), config, isolated=False, evaluator=evaluator, outside=Outside())
        else:
            require_sandbox()
            yield await stack.enter_async_context(forking(config, PageSetup(), outside=Outside(), evaluator=evaluator))


def require_sandbox() -> None:
    """Skip the test where environments do not fork."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


def sampled(attacks: tuple[Attack, ...], every: int) -> tuple[Attack, ...]:
    """Return one attack out of `every`, evenly over the list, or all of them where the environment variable EXACT_ALL_ATTACKS is set."""
    return attacks if os.environ.get("EXACT_ALL_ATTACKS") else attacks[every // 2 :: every]


def marked(attacks: tuple[Attack, ...], kinds: tuple[str, ...] = KINDS) -> list[Any]:
    """Return each attack in each kind of environment, those with a known hole as expected failures."""

    def one(kind: str, attack: Attack) -> Any:
        hole = attack.hole if kind == "process" else attack.sandbox_hole
        marks = [pytest.mark.xfail(strict=True, reason=hole)] if hole else []
        return pytest.param(kind, attack, id=f"{kind}-{attack.name}", marks=marks)

    return [one(kind, attack) for kind in kinds for attack in attacks]


class Campaign(Generic[T]):
    """What attacks led to. At the first question, all attacks that the run asks for are carried out in that kind of environment."""

    def __init__(self, request: pytest.FixtureRequest, carry_out: Callable[[str, set[str]], Awaitable[dict[str, T]]]) -> None:
        """Take the fixture's request, which knows the tests of the run, and a function of the kind and the attacks' names."""
        self._request, self._carry_out = request, carry_out
        self._found: dict[str, dict[str, T]] = {}

    async def result(self, kind: str, attack: Attack) -> T:
        """Return what an attack led to. Skips the test where there is no such kind of environment."""
        if kind == "sandbox":
            require_sandbox()
        if kind not in self._found:
            self._found[kind] = await self._carry_out(kind, self._asked(kind))
        return self._found[kind][attack.name]

    def _asked(self, kind: str) -> set[str]:
        items = [each for each in self._request.session.items if isinstance(each, pytest.Function) and each.path == self._request.path]
        params = [each.callspec.params for each in items if hasattr(each, "callspec")]
        return {each["attack"].name for each in params if each.get("kind") == kind and "attack" in each}


def campaign_of(request: pytest.FixtureRequest, attacks: tuple[Attack, ...], site: Attacker, *, simulation: bool) -> Campaign[Result]:
    """Return the campaign of attacks on environments of one kind, live ones or those of a search."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Result]:
        async with environments(kind) as factory:
            return await carry_out_all(tuple(each for each in attacks if each.name in names), site, factory, simulation=simulation)

    return Campaign(request, all_of)
