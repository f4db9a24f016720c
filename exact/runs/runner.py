"""A run: one agent attempts many tasks, one after the other, and its results are written to results.jsonl."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from exact.agents.roles import check_own_parts, roles
from exact.config import CacheConfig, Config, check_continues, dump, load_recorded
from exact.deprecated import renamed_arguments, with_simulation
from exact.environments.base import EnvironmentFactory
from exact.environments.guarded import guarded_factory
from exact.environments.process.process import log_stderr_to
from exact.environments.tools.open import AnyTool, opened_tools
from exact.environments.tools.tool import Tool
from exact.errors import EnvironmentFailure, ExactError, InfrastructureError, PartError, UncertainCommit, UsageError
from exact.models.base import ChatModel
from exact.parts import calling
from exact.plugins import import_later, trust
from exact.prompts.library import use_folder
from exact.reflection.base import Memory
from exact.runs.attempt.memory import MemoryRounds, check_memory, open_run_memory, version_of
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal, read_journal
from exact.runs.journal.spending import JournalledModel
from exact.runs.journal.state import AttemptState, final_answer, fold
from exact.runs.journal.store import Blobs, Manifest, ResultLine, RunFolder, log_error, write_whole
from exact.runs.journal.versions import versions
from exact.runs.lock import site_lease, sole
from exact.runs.secrets import conceal, known_secrets
from exact.runs.telemetry import exporting, listeners
from exact.runs.tools import check_run_tools, with_tools
from exact.runs.way import Ways, copied
from exact.search.inspect.export import to_json
from exact.search.registry import algorithm
from exact.search.tree import Tree
from exact.task import Task
from exact.text import use_fence_key

if TYPE_CHECKING:
    from exact.agents.agent import Agent
    from exact.models.open import Models, RateLimiters
    from exact.runs.attempt.attempt import Attempt
    from exact.runs.attempt.person import Ask

OpenEnvironments = Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]]
"""A function that opens the environments of a task."""
Listening = Sequence[Callable[[ev.AnyEvent], None]]
"""Functions that are called with each event that is written to a journal."""
_PARTS = ("exact.agents.agent", "exact.runs.attempt.attempt")
_LEARNED, _INDEX = "exact.agents.learned.agent", "exact.reflection.memory.index"
"""Modules of an attempt, which are imported while a browser starts, and those of a learned policy and of a memory."""
Watch = Callable[[Task, AttemptState, ev.AnyEvent], None]
"""A function that is called with each event of an attempt, before it is applied to the state."""


@renamed_arguments(open_worlds="open_environments")
@dataclass(kw_only=True)
class Runner:
    """One run: a folder, a configuration, and a function that opens environments."""

    folder: RunFolder
    config: Config
    open_environments: OpenEnvironments
    build_agent: Callable[[Config, Callable[[str], ChatModel]], Agent] | None = None
    """Function that builds the agent; None for the agent that the configuration names."""
    watch: Watch | None = None
    finished: Callable[[Task, ResultLine], None] | None = None
    repeat_uncertain: bool = False
    environments_tries: int = 2
    """Number of times that a task is attempted where its environments fail: each time in new ones, from where its journal ends."""
    ask: Ask | None = None
    """Function that asks the person who watches: see `browser.confirm` and `browser.ask_user`. None: only the live view answers."""
    tools: Sequence[AnyTool] = ()
    """Tools beside those that the configuration names; functions among these are used as they are given here."""
    models: Models | None = None
    """Opened models in place of those that the configuration names. The caller closes them."""
    limiters: RateLimiters | None = None
    """Rate limiters of endpoints, shared by runners that ask models at the same time; None for the runner's own."""
    log: Path | None = None
    """Folder of errors.log, which has the tracebacks of errors in code of the user's; None for the run's own."""
    errors: dict[str, ExactError] = field(init=False, default_factory=dict)
    """Errors of parts, and commits that a crash cut short, by the task whose attempt they ended."""

    def __post_init__(self) -> None:
        reflection = self.config.reflection
        if reflection.exclude_same_task is None:
            reflection = msgspec.structs.replace(reflection, exclude_same_task=self.folder.manifest.benchmark)
            self.config = msgspec.structs.replace(self.config, reflection=reflection)
        self.folder.protect(known_secrets(self.folder.manifest.tasks, self.config))

    async def run(self) -> list[ResultLine]:
        """Attempt every task without a result, and failed ones again. Return all results in the order of the tasks.

        Whatever an environment or a part of the agent does ends its own attempt alone. Raises UsageError, JournalError.
        """
        with sole(self.folder.path):
            return await self._run()

    async def _run(self) -> list[ResultLine]:
        done = {line.task: line for line in self.folder.results() if line.status != "failed"}
        async with self.session() as attempt:
            for task in self.folder.manifest.tasks:
                if task.id not in done:
                    done[task.id] = await attempt(task)
                    self.folder.add_result(done[task.id])
                    self.ended(task, done[task.id])
        return [done[task.id] for task in self.folder.manifest.tasks]

    def ended(self, task: Task, line: ResultLine) -> None:
        """Tell `finished` that a task has ended."""
        if self.finished:
            self.finished(task, line)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Callable[[Task], Awaitable[ResultLine]]]:
        """Open what tasks share, and yield a function that attempts one of them, several at the same time if wanted.

        Nothing is added to the results.
        """
        async with self._shared() as (models, memory):
            rounds = MemoryRounds(self.folder.path, self.config.reflection.round)
            index = {task.id: i for i, task in enumerate(self.folder.manifest.tasks)}
            scrub = self.folder.scrubber.text

            async def attempt(task: Task) -> ResultLine:
                def begin() -> None:
                    if memory is not None:
                        rounds.begin(memory, index.get(task.id, len(index)))

                with use_folder(self.config.prompts), log_stderr_to(self.folder.path / "guest.log", scrub):
                    return await self._task(task, models, memory, begin)

            yield attempt

    async def search(self, task: Task) -> Tree:
        """Search once from the start of a task, commit nothing, and return the tree. The journal holds the search.

        Raises UsageError, InfrastructureError, PartError.
        """
        check_continues(self.config)
        async with self._shared() as (models, memory), site_lease(task), self._opened_environments(task) as (environments, tools):
            with (
                calling("search"),
                listeners(self.config, task.id) as listening,
                self._opened_attempt(task, environments, models, memory, listening, tools, again=False) as attempt,
            ):
                await attempt.search()
                return attempt.state.search.tree

    @asynccontextmanager
    async def _shared(self) -> AsyncIterator[tuple[dict[str, ChatModel], Memory | None]]:
        """Open the models and the memory that tasks share."""
        with use_folder(self.config.prompts):
            async with exporting(), AsyncExitStack() as stack:
                opened = self._models(stack)
                models = open_models(self.config, opened)
                yield models, await stack.enter_async_context(open_run_memory(self.config, self.folder.path, opened))

    async def _task(self, task: Task, models: dict[str, ChatModel], memory: Memory | None, begin: Callable[[], None]) -> ResultLine:
        """Attempt one task, in new environments where they fail.

        This is the boundary of an attempt: a failure of the infrastructure or of a part becomes a result line of status `failed`. Raises
        UsageError if the run has settings that no search follows any more.
        """
        check_continues(self.config)
        with listeners(self.config, task.id) as listening:
            for tries_left in reversed(range(self.environments_tries)):
                again = tries_left + 1 < self.environments_tries
                try:
                    with calling("attempt"):
                        begin()
                        async with site_lease(task), self._opened_environments(task) as (environments, tools):
                            return await self._attempt(task, environments, models, memory, listening, tools, again=again)
                except EnvironmentFailure as error:
                    if not tries_left:
                        return self._failed(task, error, listening)
                except InfrastructureError as error:
                    return self._failed(task, error, listening)
                except (PartError, UncertainCommit) as error:
                    self.errors[task.id] = error
                    log_error(self.log or self.folder.path, f"{self.config.name} {task.id}", error, self.folder.scrubber)
                    if isinstance(error, PartError):
                        error.task = task.id
                    return self._failed(task, error, listening)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _opened_environments(self, task: Task) -> AsyncIterator[tuple[EnvironmentFactory, tuple[Tool, ...]]]:
        """Open the environments and the tools of an attempt."""
        learned, remembers = self.config.policy.kind == "learned", self.config.reflection.kind != "none"
        import_later(*_PARTS, *[_LEARNED] * learned, *[_INDEX] * remembers)
        async with opened_tools(self.config.tools, self.tools) as tools, self.open_environments(task) as environments:
            yield with_simulation(environments), tools

    async def _attempt(
        self, task: Task, environments: EnvironmentFactory, models: dict[str, ChatModel], memory: Memory | None, listening: Listening,
        tools: Sequence[Tool], *, again: bool,
    ) -> ResultLine:  # fmt: skip
        """Attempt a task from where its journal ends. `again`: its environments have just failed."""
        with self._opened_attempt(task, environments, models, memory, listening, tools, again=again) as attempt:
            await attempt.run()
            tree = self.folder.scrubber.data(to_json(attempt.state.search.tree))
            write_whole(self.folder.task_folder(task) / "tree.json", tree)
            line = line_of(task, self.config, attempt.state, oracle=attempt.agent.oracle, trained_with_reward=attempt.agent.uses_reward)
            return line if attempt.guide is None else attempt.guide.told(line)

    @contextmanager
    def _opened_attempt(
        self, task: Task, environments: EnvironmentFactory, models: dict[str, ChatModel], memory: Memory | None, listening: Listening,
        tools: Sequence[Tool], *, again: bool,
    ) -> Iterator[Attempt]:  # fmt: skip
        """Open the journal of a task, and yield the attempt that it folds to."""
        from exact.agents.agent import build_agent
        from exact.runs.attempt.attempt import Attempt

        with self._journal(self.folder.task_folder(task) / "journal.jsonl", listening) as journal:
            state = fold(self.config, read_journal(journal.path))
            journal.since(journal.clock() - state.spending.elapsed)
            if self.watch:
                watch = self.watch
                journal.listen(lambda event: watch(task, state, event))

            def record(event: ev.AnyEvent) -> None:
                state.apply(journal.write(event))

            if state.broken is not None:
                raise state.broken
            if state.live.opened is None:
                record(self._opened(task, memory))
            else:
                failed = state.finished is not None and state.finished.status == "failed"
                record(ev.Resumed(versions=versions(), repaired=again or failed))
            wrapped = {
                role: JournalledModel(model, state.spending, self.folder.blobs, record, lambda: journal.now)
                for role, model in models.items()
            }
            made = self.build_agent or partial(build_agent, run=self.folder.path.name)
            agent = made(self.config, wrapped.__getitem__)
            if agent.uses_reward:
                refuse_reward(self.folder.manifest.tasks, benchmark=self.folder.manifest.benchmark)
            assert state.live.opened is not None

            def note(reason: str) -> None:
                record(ev.Failed(what="environment", node=state.search.tree.root.id, reason=reason))

            with use_fence_key(state.live.opened.fences):
                equipped = with_tools(guarded_factory(environments, note), tools, self.config, state, self.folder.scrubber)
                opened: EnvironmentFactory = agent.informed_factory(equipped)
                if self.config.search.algorithm == "explorer":
                    from exact.environments.backtracking import BacktrackingFactory

                    opened = BacktrackingFactory(opened)
                yield Attempt(
                    task=task, config=self.config, agent=agent, environments=opened, state=state,
                    journal=journal, blobs=self.folder.blobs, memory=memory, repeat_uncertain=self.repeat_uncertain, ask=self.ask,
                    way=self.folder.manifest.ways.get(task.id),
                )  # fmt: skip

    def _failed(self, task: Task, error: ExactError, listening: Listening) -> ResultLine:
        """Return the line of an attempt that an error ended. Its journal is finished as failed, and can be resumed."""
        folder = self.folder.task_folder(task)
        with self._journal(folder / "journal.jsonl", listening) as journal:
            state = fold(self.config, read_journal(journal.path), failing=True)
            journal.since(journal.clock() - state.spending.elapsed)
            state.apply(journal.write(ev.Finished(status="failed", reason=str(error), missing=error.missing, resumable=error.resumable)))
            return line_of(task, self.config, state)

    def _opened(self, task: Task, memory: Memory | None) -> ev.Opened:
        digest = hashlib.sha256(dump(conceal((), self.config, {})[1]).encode()).hexdigest()
        return ev.Opened(
            schema=ev.SCHEMA, task=task, seed=self.config.seed, config=digest, versions=versions(),
            memory="" if memory is None else version_of(memory), fences=secrets.token_hex(16),
        )  # fmt: skip

    def _models(self, stack: AsyncExitStack) -> Models:
        from exact.models.open import Models

        if self.models is not None:
            return self.models
        opened = Models(self.config.models, folder=self.folder.path, limiters=self.limiters)
        stack.push_async_callback(opened.close)
        return opened

    @contextmanager
    def _journal(self, path: Path, listening: Listening) -> Iterator[Journal]:
        journal = Journal(path, scrubber=self.folder.scrubber)
        for listener in listening:
            journal.listen(listener)
        try:
            yield journal
        finally:
            journal.close()


def open_models(config: Config, models: Models) -> dict[str, ChatModel]:
    """Open a chat model for each role that needs one. Raises UsageError where a price that a money cap needs is unknown."""
    found, search = dict[str, ChatModel](), config.search
    for role in roles(config):
        model = models.chat(role)
        for where, caps in (("limits", config.limits), ("search.limits", search.limits), ("search.iteration", search.iteration)):
            if caps.money is not None and model.price is None:
                raise UsageError(
                    f"{where}.money is {caps.money:g}, but the price of {model.name} is unknown: "
                    f"add models.{role}.price.input and .output, or set {where}.money to null"
                )
        found[role] = model
    return found


def check_models(config: Config, *, keys: bool = True, tools: Sequence[AnyTool] = ()) -> None:
    """Check that a configuration's models open and that its parts and packages are there, without a call or a file.

    `keys`: whether keys must be in this machine's environment. `tools`: functions among its tools. Raises UsageError.
    """
    from exact.models.open import Models

    check_own_parts(config)
    check_run_tools(config, tools)
    check_memory(config)
    open_models(config, Models(msgspec.structs.replace(config.models, cache=CacheConfig()), keys=keys))


def create(
    path: Path, tasks: tuple[Task, ...], config: Config, *, benchmark: bool = True, ways: Ways = MappingProxyType({}), session: bool = False
) -> RunFolder:
    """Create a run folder for some tasks, whose literal secrets are not stored. `session`: the one task is the start of a session.

    Raises UsageError where the configured search is invalid or the path holds a run, JournalError where a way does not read.
    """
    check_continues(config)
    trust(config.own_parts)
    algorithm(config.search)
    if uses_reward := config.value.kind == "reward":
        refuse_reward(tasks, benchmark=benchmark)
    tasks, config = conceal(tasks, config)
    manifest = Manifest(
        tasks=() if session else tasks, session=tasks[0] if session else None, agent=config.name, benchmark=benchmark,
        oracle=config.value.kind == "oracle", trained_with_reward=uses_reward, versions=versions(),
        ways={id: copied(way, source, Blobs(path / "blobs")) for id, (way, source) in ways.items()},
    )  # fmt: skip
    return RunFolder.create(path, manifest, dump(config))


def refuse_reward(tasks: Sequence[Task], *, benchmark: bool) -> None:
    """Raise UsageError where the tasks are a benchmark's, whose rewards no agent may read."""
    if benchmark:
        named = tasks[0].id if tasks else "a benchmark"
        raise UsageError(
            f"value.kind reward reads the score of {named}, which no agent may see on a benchmark: choose another value.kind, or `oracle` "
            "to measure the headroom"
        )


def reopen(path: Path) -> tuple[RunFolder, Config]:
    """Open a run to resume it. Return its folder and its configuration."""
    folder = RunFolder.open(path)
    if folder.manifest.session is not None:
        raise UsageError(f"{path} is a session, which its program goes on with: exact.session(resume={str(path)!r})")
    config = load_recorded(folder.path)
    folder.protect(known_secrets(folder.manifest.tasks, config))
    return folder, config


def line_of(task: Task, config: Config, state: AttemptState, *, oracle: bool = False, trained_with_reward: bool = False) -> ResultLine:
    """Return the result line of an attempt's state."""
    spent = state.spending.task.spent
    finished = state.finished or ev.Finished(status="stopped", reason="interrupted")
    judged = state.live.judged.evaluation.value if state.live.judged else None
    extracted = state.live.extracted
    return ResultLine(
        task=task.id, seed=task.seed, agent=config.name, policy=config.policy.kind, value_function=config.value.kind,
        status=finished.status,
        score=state.live.scored.score.value if state.live.scored and finished.status == "scored" else None,
        value=judged,
        answer=state.live.ended.answer if state.live.ended else final_answer(state),
        data=json.loads(extracted.data) if extracted is not None and extracted.data else None,
        partial=extracted is not None and extracted.partial,
        reason=finished.reason,
        score_reason=state.live.scored.score.reason if state.live.scored and finished.status == "scored" else "",
        missing="answer" if finished.status == "scored" and state.live.scored and state.live.scored.score.unanswered else finished.missing,
        actions=int(spent.get("actions", 0)),
        transitions=int(spent.get("transitions", 0)),
        evaluations=int(spent.get("evaluations", 0)),
        calls=int(spent.get("calls", 0)),
        tokens=int(spent.get("tokens", 0)),
        cost=spent.get("money", 0.0) if state.spending.cost_known else None,
        unaccounted=state.spending.unaccounted,
        drifted=state.spending.drifted,
        restores=state.spending.restores,
        promoted=sum(step.promoted for step in state.live.committed),
        raw=state.live.scored.score.raw if state.live.scored and finished.status == "scored" else None,
        failures=state.spending.failures,
        seconds=round(state.spending.elapsed, 3),
        oracle=oracle,
        informed=state.spending.informed if oracle else None,
        trained_with_reward=trained_with_reward,
        same_task=config.reflection.kind != "none" and not config.reflection.exclude_same_task,
        began=state.live.started,
        touched=state.people.touched,
        resumable=finished.resumable,
    )  # fmt: skip
