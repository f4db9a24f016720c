"""Several goals in one live environment: one run folder, one cap on the cost, and the user's own undo."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from exact.agents.agent import Agent, build_agent
from exact.benchmarks.open import open_environments
from exact.config import Config, load_recorded
from exact.context import EarlierGoal
from exact.deprecated import with_simulation
from exact.environments.base import EnvironmentFactory, ForkableFactory, Snapshot
from exact.environments.own import AnyEnvironment, opened_factory
from exact.environments.tools.open import AnyTool, opened_tools
from exact.environments.tools.tool import Tool
from exact.errors import EnvironmentFailure, UncertainCommit, UsageError
from exact.library.answers import as_kind, schema_of
from exact.library.goal import Effort
from exact.library.run import Run, Runner
from exact.library.solve import AnyAgent, Approve, Assignment, Build, Solution, asks, checking, configured
from exact.library.tasks import AnyTask, is_of_suite
from exact.machine import scratch
from exact.observation import same_state
from exact.reflection.base import Memory
from exact.runs.attempt.live import UNCERTAIN
from exact.runs.course import Course, KeptEnvironment, KeptEnvironments, KeptForks, SessionPerson
from exact.runs.journal import events as ev
from exact.runs.journal.session import (
    GoalGiven,
    HandedOver,
    OpenedAgain,
    PointTaken,
    Returned,
)
from exact.runs.journal.store import RunFolder
from exact.runs.lock import sole
from exact.runs.runner import OpenEnvironments, create
from exact.runs.secrets import require_secrets
from exact.task import Task
from exact.text import counted

if TYPE_CHECKING:
    from playwright.async_api import Page

    from exact.environments.browser.environment import BrowserEnvironment
    from exact.environments.browser.reading import PageView

T = TypeVar("T")
_START = Task(id="session", instruction="")
"""Start of a session in environments of the user's."""
_UNCERTAIN = "look at the site: if it was not done, give the goal again with repeat_uncertain=True; if it was, give the next goal"
_NO_RESTORE = (
    "the site would keep what was written since: declare its services, so that they run in a sandbox that forks (see `exact doctor`)"
)


@dataclass(frozen=True)
class Point:
    """A state of a session, to which `Session.restore` returns."""

    number: int
    """Number of the point in its session, from 0."""
    _snapshot: Snapshot | None = field(repr=False)
    """None: the process that took it has ended."""


class Session:
    """A live environment in which goals are worked at one after the other. `exact.session` opens it; calls do not overlap."""

    def __init__(self, folder: RunFolder, config: Config, build: Build | None, runner: GoalRunner, kept: KeptEnvironments) -> None:
        """Begin a session, or go on with the one in a folder."""
        self._folder, self._build, self._runner, self._kept = folder, build, runner, kept
        self._course = Course(folder, config)
        self._busy = self._lost = ""
        self._attempt: Callable[[Task], Any] | None = None

    @property
    def path(self) -> Path:
        """The run folder. It is deleted with the session if none was named."""
        return self._folder.path

    @property
    def behind(self) -> bool:
        """Whether a resumed session has goals in its journal that this process has not given again yet."""
        return self._course.behind

    @property
    def lost(self) -> str:
        """What could not be had again when the environment was opened anew after a crash, in a sentence; empty for nothing."""
        return self._lost

    @overload
    async def solve(self, goal: str, *, answer: type[T], repeat_uncertain: bool = False) -> Solution[T]: ...
    @overload
    async def solve(self, goal: str, *, answer: Mapping[str, Any], repeat_uncertain: bool = False) -> Solution[dict[str, Any]]: ...
    @overload
    async def solve(self, goal: str, *, answer: None = None, repeat_uncertain: bool = False) -> Solution[None]: ...
    async def solve(
        self, goal: str, *, answer: type[Any] | Mapping[str, Any] | None = None, repeat_uncertain: bool = False
    ) -> Solution[Any]:
        """Work at a goal from the present state on, and return its outcome. The agent is told of the goals before it.

        A goal that an earlier process ended is returned from the journal; one that it began is gone on with. A goal that failed, or was
        cancelled, is gone on with if it is given again.

        Args:
            goal: The goal in words.
            answer: Type or JSON schema of the object that the answer is put into, as for `exact.solve`.
            repeat_uncertain: Whether to repeat an action that a crash cut short, once you have seen that it was not done.

        Raises BudgetExceeded if earlier goals have used up the session's cap, UsageError if the journal has another goal in this place, and
        the errors of `exact.solve`.
        """
        if not goal.strip():
            raise UsageError("the goal is empty: say what is to be done or found")
        with self._alone("solve"):
            number = self._course.number(GoalGiven(instruction=goal, answer="" if answer is None else schema_of(answer)))
            task = self._folder.manifest.tasks[number]
            line = self._course.result(number)
            if line is None or (line.status == "failed" and number + 1 == len(self._course.state.goals)):
                build = self._build
                if answer is not None:
                    build = checking(build or partial(build_agent, run=self.path.name), answer)
                self._runner.build_agent, self._runner.repeat_uncertain = build, repeat_uncertain
                self._runner.history = lambda: (self._course.earlier(number), self._course.spent(number))
                assert self._attempt is not None
                line = await self._attempt(task)
                self._folder.add_result(line)
                self._runner.ended(task, line)
                if error := self._runner.errors.pop(task.id, None):
                    raise UncertainCommit(str(error).replace(UNCERTAIN, _UNCERTAIN)) if isinstance(error, UncertainCommit) else error
            run = Run(self.path)
            return Solution(line, run.tree(task.id), run if self._runner.reports else None, as_kind(answer, line.data))

    async def snapshot(self) -> Point:
        """Take a snapshot of the present state, of browser and site together. Raises UsageError if the environment does not fork."""
        with self._alone("snapshot"):
            number = len(self._course.state.points)
            if (known := self._course.past(PointTaken)) is not None:
                return Point(known.id, None)
            live = await self._present("take a point")
            if live.capabilities.fidelity != "full":
                raise UsageError(f"this environment takes no point to return to, since {_NO_RESTORE}")
            taken = await live.snapshot()
            if taken.fidelity != "full":
                raise UsageError(f"no point can be taken now, since {taken.severed or 'a connection'} would be cut: try again later")
            self._course.note(PointTaken(id=number))
            return Point(number, taken)

    async def restore(self, point: Point) -> None:
        """Return to a point: browser, site and the goals that count as done are as they were. What left the sandbox is not undone.

        Raises UsageError if the point is gone, or if you have acted in the page since and the environment does not undo that.
        """
        with self._alone("restore"):
            if self._course.past(Returned) is not None:
                return
            if point.number not in self._course.state.points:
                raise UsageError(f"{point!r} is of another session: give one that this session's snapshot() returned")
            if point._snapshot is None or (isinstance(self._kept, KeptForks) and not self._kept.has(point._snapshot)):
                why = (
                    "was taken in a process that has ended"
                    if point._snapshot is None
                    else "was dropped, since snapshots took too much room"
                )
                raise UsageError(f"point {point.number} {why}: take a new one with snapshot()")
            live = await self._present("return to a point")
            if not live.capabilities.isolated and self._course.state.handed_over > self._course.state.points[point.number].handed_over:
                raise UsageError(
                    f"point {point.number} was taken before page_for_acting(), and what you did there is not undone here: take a new one"
                )
            observation = await live.restore(point._snapshot)
            if not same_state(observation.fingerprint, point._snapshot.fingerprint):
                live.broken = True
                raise EnvironmentFailure(f"point {point.number} led to another state than it was taken of: take a new one")
            self._course.note(Returned(point=point.number))

    @property
    def page(self) -> PageView:
        """The present page, to read: locators, texts and pictures, without what observations hide."""
        from exact.environments.browser.reading import PageView

        return PageView(self._reading)

    @asynccontextmanager
    async def page_for_acting(self, *, again: bool = False) -> AsyncIterator[Page]:
        """Lend Playwright's page to act in by hand. The journal notes it, and the next goal begins where you left the page.

            async with session.page_for_acting() as page:
                await page.get_by_label("Name").fill("Ann")

        The page is valid inside the block. Its requests go through the gate: none reaches another origin, and `approve` is asked before one
        that writes. After a crash nothing of it is done again by itself: a resumed session refuses the call at the place of an earlier one,
        unless `again` says that you have looked and it is to be done.

        Raises UsageError if the environment has no page.
        """
        with self._alone("page_for_acting"):
            if self._course.past(HandedOver) is not None and not again:
                raise UsageError(
                    "you acted by hand here before the session was resumed, and may have done all or a part of it: look at the page, then "
                    "skip it or give again=True"
                )
            live = await self._present("act in the page")
            browser = self._browser(live)
            self._course.note(HandedOver())
            live.moved = True
            async with browser.lent() as page:
                await page.context.request.dispose(reason="requests beside the page would pass the gate by: use the page")
                yield page

    # --- the environment

    async def _present(self, what: str) -> KeptEnvironment:
        """Return the live environment, observed anew. Raises UsageError while the journal is ahead."""
        if self.behind:
            raise UsageError(
                f"this session stands behind goal {len(self._course.state.goals)}, which its journal has: give the goals again before you "
                f"{what}, or skip this while session.behind is true"
            )
        live = await self._kept.live()
        await live.observe()
        return live

    def _browser(self, live: KeptEnvironment) -> BrowserEnvironment:
        from exact.environments.browser.environment import BrowserEnvironment

        if not isinstance(live.inner, BrowserEnvironment):
            raise UsageError(f"{type(live.inner).__name__} has no page: only sessions in a browser have one")
        return live.inner

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[BrowserEnvironment]:
        with self._alone("page"):
            if self.behind:
                await self._present("read the page")
            yield self._browser(await self._kept.live())

    @contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """Refuse a call while another one is under way. Raises UsageError."""
        if self._busy:
            raise UsageError(f"{what}: {self._busy} is under way in this session: await it first, or open another session")
        if self._attempt is None:
            raise UsageError(f"{what}: the session is closed: call it inside `async with exact.session(...)`")
        self._busy = what
        try:
            yield
        finally:
            self._busy = ""

    def opened_again(self, url: str, lost: str) -> None:
        """Note that the environment was opened anew, and what was lost."""
        self._lost = lost
        self._course.note(OpenedAgain(url=url, lost=lost))
        if lost:
            logging.getLogger("exact").warning("%s: %s", self.path, lost)

    def __repr__(self) -> str:
        return f"<Session {self.path}: {counted(len(self._course.state.goals), 'goal')}>"


@dataclass(kw_only=True)
class GoalRunner(Runner):
    """A run whose tasks are the goals of a session, in one environment."""

    kept: KeptEnvironments
    equipment: tuple[Tool, ...] = ()
    """Opened tools of all goals."""
    history: Callable[[], tuple[tuple[EarlierGoal, ...], dict[str, float]]] = lambda: ((), {})
    """Returns what a goal is told of the earlier ones, and what they have spent."""

    @asynccontextmanager
    async def _opened_environments(self, task: Task) -> AsyncIterator[tuple[EnvironmentFactory, tuple[Tool, ...]]]:
        yield self.kept, self.equipment

    def _opened(self, task: Task, memory: Memory | None) -> ev.Opened:
        earlier, spent = self.history()
        return msgspec.structs.replace(super()._opened(task, memory), earlier=earlier, spent=spent if earlier else {})


@asynccontextmanager
async def session(
    start: AnyTask | None = None,
    *,
    url: str = "",
    model: str = "",
    profile: str = "",
    effort: Effort | None = None,
    money: float | None = None,
    agent: AnyAgent = None,
    config: Config | None = None,
    environments: AnyEnvironment | None = None,
    approve: Approve | None = None,
    tools: Sequence[AnyTool] = (),
    out: Path | str | None = None,
    seed: int | None = None,
    resume: Path | str | None = None,
) -> AsyncIterator[Session]:
    """Open one live environment for several goals, for an `async with` block.

        async with exact.session(url="https://museum.example", model="gpt-4o", out="visit") as session:
            hours = await session.solve("When is it open on Sunday?")
            await session.solve("Book two tickets for that day")

    Args:
        start: A Task, or the id of one of your own application, on whose site the session begins: with its services, log-in and hooks, and
            without its goal and evaluator. None: on the page of `url`.
        url: Web address of the page on which the session begins. Pages of other origins are opened only if `config` allows them.
        model: Model, as for `exact.solve`.
        profile: Folder of a profile of your own Chromium or Chrome, whose log-ins the session has. Empty: none.
        effort: As for `exact.solve`.
        money: Cap in US dollars on the model calls of all goals. Caps of the configuration on money, calls and tokens hold for all goals
            together, the others for each.
        agent: As for `exact.solve`.
        config: As for `exact.solve`.
        environments: As for `exact.solve`. Their environments have the coroutine `go_on`.
        approve: Function that is asked before a request that writes is sent: see `exact.library.solve.Approve`.
        tools: Actions beside those of the environment, as for `exact.solve`.
        out: Run folder to write. None: nothing is kept.
        seed: Seed in place of that of the configuration.
        resume: Folder of a session to go on with, by its own settings: of the other arguments, only agent, environments, approve and tools
            are given again.

    Raises UsageError if an argument cannot be used.
    """
    async with AsyncExitStack() as stack:
        build: Build | None
        if resume is None:
            if (start is None) == (not url) and (url or environments is None):
                raise UsageError("a session begins at one place: give url, or a Task as start")
            work = Assignment(
                task="session" if url else start or _START, url=url, model=model, effort=effort, money=money, agent=agent, config=config,
                tools=tools, seed=seed,
            )  # fmt: skip
            task, chosen, build = work.checked(environments)
            begin = msgspec.structs.replace(task, instruction="", answer="")
            chosen = await work.settled(begin, _fitted(chosen, profile), build, environments, approve)
            path = Path(out) if out is not None else stack.enter_context(scratch("run")) / "run"
            if (path / "run.json").exists():
                raise UsageError(f"out {path} holds a run already: go on with a session by resume={str(path)!r}, or give another folder")
            folder = create(path, (begin,), chosen, benchmark=False, session=True)
        else:
            of_folder = (start, url, model, profile, effort, money, config, out, seed)
            if any(value not in (None, "") for value in of_folder):
                raise UsageError(f"{resume} has the settings of its session: give agent, environments, approve and tools alone")
            folder, begin, chosen = _reopened(Path(resume))
            build = configured(agent)[1] if isinstance(agent, Agent) else None
        stack.enter_context(sole(folder.path))
        benchmark = environments is None and is_of_suite(begin)
        opens: OpenEnvironments = partial(open_environments, config=chosen, benchmark=benchmark)
        opening = opens(begin) if environments is None else opened_factory(environments)
        factory = with_simulation(await stack.enter_async_context(opening))
        kind = KeptForks if isinstance(factory, ForkableFactory) else KeptEnvironments
        kept = kind(
            factory, begin, lambda: opened._course.place(), SessionPerson(asks(approve)), lambda at, lost: opened.opened_again(at, lost)
        )
        stack.push_async_callback(kept.close)
        runner = GoalRunner(
            folder=folder, config=chosen, open_environments=opens, kept=kept, ask=asks(approve), tools=tools,
            equipment=await stack.enter_async_context(opened_tools(chosen.tools, tools)), reports=out is not None or resume is not None,
        )  # fmt: skip
        opened = Session(folder, chosen, build, runner, kept)
        opened._attempt = await stack.enter_async_context(runner.session())
        try:
            yield opened
        finally:
            opened._attempt = None


def _fitted(config: Config, profile: str) -> Config:
    """Return the configuration of a session: a fork never becomes its live environment, which stays open. Raises UsageError."""
    search = msgspec.structs.replace(config.search, commit_by="replay")
    try:
        browser = msgspec.structs.replace(config.browser, profile=profile) if profile else config.browser
    except ValueError as error:
        raise UsageError(f"profile {profile!r}: {error}") from error
    return msgspec.structs.replace(config, search=search, browser=browser)


def _reopened(path: Path) -> tuple[RunFolder, Task, Config]:
    """Return the folder of a session, its start and its configuration. Raises UsageError."""
    folder = RunFolder.open(path)
    if (start := folder.manifest.session) is None:
        raise UsageError(f"{path} is a run and not a session: `exact resume {path}` goes on with it")
    config = load_recorded(folder.path)
    require_secrets((start,), config)
    return folder, start, config
