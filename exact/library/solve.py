"""One call that attempts a task, as `exact run` does.

Agents as arguments of the library: by the name of a shipped configuration, by file, by configuration, or as objects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

import msgspec

from exact.agents.agent import Agent, build_agent
from exact.benchmarks.open import check_environments, open_environments
from exact.config import Config, load
from exact.environments.base import EnvironmentFactory, PersonQuestion
from exact.environments.own import AnyEnvironment, check_environment, opened_factory
from exact.environments.tools.open import AnyTool, with_tool_names
from exact.errors import UsageError
from exact.library.answers import as_kind, fault_of, schema_of
from exact.library.goal import Effort, agent_for, as_served
from exact.library.rerun import AnyRun, approved_ways
from exact.library.run import Run, Runner
from exact.library.search import run_sync
from exact.library.tasks import AnyTask, is_of_suite, page_task, task_of
from exact.machine import scratch
from exact.models.base import ChatModel
from exact.parts import shown
from exact.runs.attempt.person import Ask
from exact.runs.journal.store import ResultLine
from exact.runs.runner import OpenEnvironments, Watch, check_models, create, refuse_reward
from exact.runs.tools import check_run_tools
from exact.search.tree import Tree
from exact.task import Task
from exact.text import counted

if TYPE_CHECKING:  # a Solution without a type holds anything; Python 3.13 is the first that knows of defaults
    from typing_extensions import TypeVar as DefaultedTypeVar

    T = DefaultedTypeVar("T", default=Any)
else:
    T = TypeVar("T")


@dataclass(frozen=True)
class Solution(Generic[T]):
    """Outcome of one task. `T` is the type of the object that `answer` asks for."""

    result: ResultLine
    """Score, answer, costs and reason of the end."""
    tree: Tree
    """The search, all committed actions included."""
    run: Run | None
    """The run folder; None if none was asked for."""
    data: T | None = None
    """The answer as an object; None if none was asked for, or none fits. `result.partial` marks what an unfinished attempt has found."""

    @property
    def score(self) -> float | None:
        """Score in [0, 1]; None if the task has no evaluator."""
        return self.result.score

    @property
    def answer(self) -> str | None:
        """Text of the final answer; None if the agent gave none."""
        return self.result.answer

    @property
    def actions(self) -> tuple[str, ...]:
        """Texts of the committed actions, in order."""
        return tuple(edge.action.key for edge in self.tree.root.path())

    def __repr__(self) -> str:
        score = "not scored" if self.score is None else f"score {self.score:g}"
        said = "" if self.answer is None else f", answer {self.answer!r}"
        why = f": {self.result.reason}" if self.result.status in ("failed", "stopped", "needs_user") or self.answer is None else ""
        return f"<Solution of {self.result.task}: {self.result.status}, {score}, {counted(len(self.actions), 'action')}{said}{why}>"

    def _repr_html_(self) -> str:
        """Return the solution as HTML that notebooks show."""
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>{self.tree._repr_html_()}"


class SolveArguments(TypedDict, total=False):
    """Further arguments of `solve`."""

    url: str
    model: str
    effort: Effort | None
    money: float | None
    agent: AnyAgent
    config: Config | None
    environments: AnyEnvironment | None
    approve: Approve | None
    tools: Sequence[AnyTool]
    out: Path | str | None
    seed: int | None
    replay: AnyRun | None
    variables: Mapping[str, str] | None


@overload
async def solve(task: AnyTask, *, answer: type[T], **arguments: Unpack[SolveArguments]) -> Solution[T]: ...
@overload
async def solve(task: AnyTask, *, answer: Mapping[str, Any], **arguments: Unpack[SolveArguments]) -> Solution[dict[str, Any]]: ...
@overload
async def solve(task: AnyTask, *, answer: None = None, **arguments: Unpack[SolveArguments]) -> Solution[None]: ...
async def solve(
    task: AnyTask,
    *,
    answer: type[Any] | Mapping[str, Any] | None = None,
    url: str = "",
    model: str = "",
    effort: Effort | None = None,
    money: float | None = None,
    agent: AnyAgent = None,
    config: Config | None = None,
    environments: AnyEnvironment | None = None,
    approve: Approve | None = None,
    tools: Sequence[AnyTool] = (),
    out: Path | str | None = None,
    seed: int | None = None,
    replay: AnyRun | None = None,
    variables: Mapping[str, str] | None = None,
) -> Solution[Any]:
    """Attempt one task and return its outcome.

        solution = await exact.solve("Find the opening hours", url="https://museum.example", model="gpt-4o")
        print(solution.answer)

    Args:
        task: A Task, the id of a benchmark's task, or with `url` a goal in words.
        answer: Type of the object that the answer is put into: a pydantic model, a dataclass, a msgspec Struct or a TypedDict; or a JSON
            schema. The model is asked again with the fault of an object that does not fit. The object is `solution.data`.
        url: Web address of the page on which work at the goal begins. Pages of other origins are opened only if `config` allows them.
        model: Name of a model at OpenAI, `provider/name` with a provider of `exact list providers`, or the address of a server of Chat
            Completions, such as `http://localhost:8080/v1`. Empty: the agent that `agent` names.
        effort: low: the model's first answer is taken, without a search. medium: search where the model is not sure, or may write. high:
            search at each step. None: low for a `model`, since search is not shown to bring more, and high for the built-in agent.
        money: Cap in US dollars on the model calls. None: that of the configuration; with `model` 1 without search and 5 with it, if the
            price is known.
        agent: An Agent with your own policy and value function, a Config, the path of its file, or the name of a shipped configuration,
            such as `rmcts_gpt-4o`. None: the built-in agent, which needs no model.
        config: Configuration of the search and the browser around an Agent object.
        environments: Environments of the attempt: an EnvironmentFactory, a context manager that opens one, or a function or class that
            makes an environment. None: those of the task's suite, or of its start page.
        approve: Function that is asked before a request that writes is sent in the live environment: see `Approve`. None: nobody is asked,
            unless the configuration says so.
        tools: Actions beside those of the environment: functions, which `exact.tool` declares, their names as `file.py:function`, and MCP
            servers as `exact.ToolConfig`. One that reads may be called while searching; another one is called when its action is committed.
        out: Run folder to write, with journal and report. None: nothing is kept.
        seed: Seed in place of that of the configuration.
        replay: An earlier run, or its folder. Its committed actions are carried out again without a model, and where a page differs the
            search begins there. `approve` is asked once, before the start, if they wrote outside.
        variables: Texts to type in place of those of the earlier run, by the names of their fields.

    A failure of the infrastructure is a result of status `failed`, without a score. Raises UsageError if an argument cannot be used or
    `out` holds a run, JournalError if it cannot be written, PartError if a part of the agent or the evaluator raises or violates its
    contract, and UncertainCommit if an environment broke during a commit that cannot be undone.
    """
    goal = Assignment(
        task=task, answer=answer, url=url, model=model, effort=effort, money=money, agent=agent, config=config, tools=tools, seed=seed,
        replay=replay, variables=variables,
    )  # fmt: skip
    return await goal.attempt(environments, approve, out)


Approve = Callable[[str, PersonQuestion], Awaitable[bool]]
"""Called with the text of the action and the request that it sends: method, url and fields, with secrets masked. True allows the request.

A request that is not allowed within `browser.person_seconds` is not sent."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The arguments of one attempt that say what is done, and by whom."""

    task: AnyTask
    answer: type[Any] | Mapping[str, Any] | None = None
    url: str = ""
    model: str = ""
    effort: Effort | None = None
    money: float | None = None
    agent: AnyAgent = None
    config: Config | None = None
    tools: Sequence[AnyTool] = ()
    seed: int | None = None
    replay: AnyRun | None = None
    variables: Mapping[str, str] | None = None

    async def attempt(
        self, environments: AnyEnvironment | None, approve: Approve | None, out: Path | str | None, watch: Watch | None = None
    ) -> Solution[Any]:
        """Attempt the task, in the given environments or those of the task. `watch` is called with each event."""
        attempted, chosen, build = self.checked(environments)
        attempted, ways = await approved_ways(self.replay, attempted, self.variables or {}, approve)
        chosen = await self.settled(attempted, chosen, build, environments, approve)
        benchmark = environments is None and is_of_suite(attempted)
        opens: OpenEnvironments = partial(open_environments, config=chosen, benchmark=benchmark)
        async with AsyncExitStack() as stack:
            if environments is not None:
                opens = partial(_given, await stack.enter_async_context(opened_factory(environments)))
            path = Path(out) if out is not None else stack.enter_context(scratch("run")) / "run"
            if (path / "run.json").exists():
                raise UsageError(f"out {path} holds a run already: read it by exact.open_run({str(path)!r}), or give another folder")
            if self.answer is not None:
                build = checking(build or partial(build_agent, run=path.name), self.answer)
            folder = create(path, (attempted,), chosen, benchmark=benchmark, ways=ways)
            runner = Runner(
                folder=folder, config=chosen, open_environments=opens, build_agent=build, reports=out is not None, watch=watch,
                ask=asks(approve), tools=self.tools,
            )  # fmt: skip
            [line] = await runner.run()
            if error := runner.errors.get(attempted.id):
                raise error
            found = Run(folder.path)
            data = as_kind(self.answer, line.data)
            return Solution(line, found.tree(attempted.id), found if out is not None else None, data)

    async def settled(
        self, task: Task, chosen: Config, build: Build | None, environments: AnyEnvironment | None, approve: Approve | None
    ) -> Config:
        """Return the configuration that work begins with. Raises UsageError for what cannot be used, before anything is written."""
        chosen = with_seed(await as_served(chosen) if self.model else chosen, self.seed)
        if approve is not None and chosen.browser.confirm == "never" and self.replay is None:  # the way's writes have one yes
            chosen = msgspec.structs.replace(chosen, browser=msgspec.structs.replace(chosen.browser, confirm="writes"))
        if build is None:
            check_models(chosen, tools=self.tools)
        else:
            check_run_tools(chosen, self.tools)
        if chosen.value.kind == "reward":
            refuse_reward((task,), benchmark=is_of_suite(task))
        if environments is None:
            check_environments((task,), chosen, benchmark=is_of_suite(task))
        return chosen

    def checked(self, environments: AnyEnvironment | None) -> tuple[Task, Config, Build | None]:
        """Return the task, and the agent as `_agent` does. Raises UsageError for what cannot be used, as far as nothing must be opened."""
        chosen, build = self._agent()
        chosen = with_tool_names(chosen, self.tools)
        if environments is not None:
            check_environment(environments)
        return self.named, chosen, build

    @property
    def named(self) -> Task:
        """The task. Raises UsageError."""
        task = self._task()
        return task if self.answer is None else msgspec.structs.replace(task, answer=schema_of(self.answer))

    def _task(self) -> Task:
        if not self.url:
            return task_of(self.task)
        if not isinstance(self.task, str):
            raise UsageError(f"url is for a goal in words, and task is of type {type(self.task).__name__}: give a text, or leave out url")
        return page_task(self.url, self.task)

    @property
    def cap(self) -> float | None:
        """Cap in US dollars of the attempt; None without one. Raises UsageError."""
        return self._agent()[0].limits.money

    def capped(self, money: float) -> Assignment:
        """Return the goal with another cap in US dollars."""
        return replace(self, money=money)

    def _agent(self) -> tuple[Config, Build | None]:
        """Return the configuration of the agent, and the function that builds it; None if the configuration says everything."""
        if self.agent is None and self.config is None:
            return agent_for(self.model, self.effort, money=self.money), None
        for name in ("model", "effort"):
            if getattr(self, name):
                raise UsageError(f"{name} excludes agent and config, which say how the goal is worked at: choose one")
        chosen, build = configured(self.agent, self.config)
        if self.money is not None:
            chosen = msgspec.structs.replace(chosen, limits=msgspec.structs.replace(chosen.limits, money=self.money))
        return chosen, build


def checking(build: Build, kind: type[Any] | Mapping[str, Any]) -> Build:
    """Return a function that builds the same agent, whose answers as objects of a type are checked too."""
    return partial(_checking, build, partial(fault_of, kind))


def asks(approve: Approve | None) -> Ask | None:
    """Return the function by which a run asks a person; None if nobody is asked."""
    return None if approve is None else partial(_ask, approve)


def _checking(build: Build, check: Callable[[dict[str, Any]], str], config: Config, models: Callable[[str], ChatModel]) -> Agent:
    """Return the agent that `build` makes, whose answers as objects are checked too."""
    agent = build(config, models)
    return agent if agent.answerer is None else replace(agent, answerer=agent.answerer.checking(check))


async def _ask(approve: Approve, question: PersonQuestion) -> bool:
    return await approve(question.text, question)


@overload
def solve_sync(task: AnyTask, *, answer: type[T], **arguments: Unpack[SolveArguments]) -> Solution[T]: ...
@overload
def solve_sync(task: AnyTask, *, answer: Mapping[str, Any], **arguments: Unpack[SolveArguments]) -> Solution[dict[str, Any]]: ...
@overload
def solve_sync(task: AnyTask, *, answer: None = None, **arguments: Unpack[SolveArguments]) -> Solution[None]: ...
def solve_sync(task: AnyTask, **arguments: Any) -> Solution[Any]:
    """Attempt one task as `solve` does, with its arguments, from code that is not asynchronous.

    Raises UsageError in a running event loop.
    """
    return run_sync(solve, task, **arguments)


def _given(environments: EnvironmentFactory, task: object) -> AbstractAsyncContextManager[EnvironmentFactory]:
    return nullcontext(environments)


AnyAgent = Agent | Config | Path | str | None
"""An Agent with your own parts, a configuration, the path of its file, or the name of a shipped one. None: the built-in agent."""

Build = Callable[[Config, Callable[[str], ChatModel]], Agent]


def configured(agent: AnyAgent, config: Config | None = None) -> tuple[Config, Build | None]:
    """Return the configuration of an agent, and the function that builds it; None if the configuration says everything.

    `config` configures the search around an Agent. Raises UsageError.
    """
    match agent:
        case Agent():
            return _named(agent, config or Config(name="own")), lambda *_: agent
        case _ if config is not None:
            raise UsageError("config is for an agent that is an Agent object: give its settings in the configuration that names the agent")
        case None:
            return load("rmcts_builtin"), None
        case Config():
            return agent, None
        case str() | Path():
            return load(agent), None
        case _:
            raise UsageError(f"agent is {shown(agent)}: give an Agent, a Config, a file, or the name of a configuration")


def with_seed(config: Config, seed: int | None) -> Config:
    """Return the configuration with another seed, if one is given."""
    return config if seed is None else msgspec.structs.replace(config, seed=seed)


def _named(agent: Agent, config: Config) -> Config:
    """Return a configuration whose policy and value function have the names of an agent's own, for results and reports."""
    policy = msgspec.structs.replace(config.policy, kind=_name_of(agent.policy))
    value = "reward" if agent.uses_reward else _name_of(agent.value)
    return msgspec.structs.replace(config, policy=policy, value=msgspec.structs.replace(config.value, kind=value))


def _name_of(part: object) -> str:
    return f"{type(part).__module__}:{type(part).__qualname__}"
