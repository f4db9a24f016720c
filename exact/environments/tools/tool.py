"""Tools that a user declares: a function, whose typed arguments and docstring become a verb, a form, a grammar and a JSON schema.

A call is bounded in time, and its result is a text that is bounded in size.

A function that is not async runs in a thread of its own. A thread cannot be ended, so one that hangs is left behind: it holds up neither
the attempt nor the end of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import re
import threading
import typing
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, overload

import msgspec

from exact.action import Parameter, Verb, canonical_object
from exact.environments.tools.schema import grammar_of, in_words, one_line, shape_of
from exact.errors import ActionError, ToolError, UsageError
from exact.parts import calling, described, name_of

Effect = Literal["read", "write"]
"""read: a call changes nothing, so a search may make it. write: it may change something, so it is made at a commit alone."""
SECONDS = 30.0
"""Seconds that a call may take, unless the tool says otherwise."""
CHARACTERS = 6000
"""Characters of a result that are kept."""
_BEYOND = 2000
"""Characters behind those in which secrets are looked for, so that none is cut in two."""
LONGEST_ERROR = 600
"""Characters of what a tool says when it refuses or fails."""
LONGEST_HELP = 400
"""Characters of what prompts say about a tool."""
_SETTINGS = "__exact_tool__"
"""Attribute of a function that holds what the decorator was given."""
_NAME = re.compile(r"[A-Za-z_]\w{0,63}")
_ARGUMENT = re.compile(r"^(?P<name>\w+)(?:\s*\([^)]*\))?:\s*(?P<text>\S.*)$")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool's declaration says beside its signature."""

    effect: Effect = "write"
    confirm: bool = False
    """Whether a person is asked before each call."""
    seconds: float = SECONDS
    """Seconds that a call may take."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function, or a tool of a server, that an agent may call."""

    name: str
    """Verb of its actions."""
    help: str
    """What it does, in one line."""
    schema: Mapping[str, Any]
    """JSON schema of its arguments, an object."""
    call: Callable[[str], Awaitable[object]]
    """Calls it with its arguments as canonical JSON, and returns its result."""
    canonical: Callable[[str], str]
    """Returns arguments as canonical JSON without those that have their default. Raises ActionError if they do not fit."""
    settings: ToolSettings
    hint: str = ""
    """What a server says of its effect; a suggestion to the user, and nothing that is relied on."""

    @property
    def __name__(self) -> str:
        """Name by which errors of a call name it."""
        return self.name

    @property
    def verb(self) -> Verb:
        """The verb of its actions."""
        return Verb(
            name=self.name, form=(Parameter.OBJECT,), help=self.help, shape=shape_of(self.schema), grammar=grammar_of(self.schema),
            normalise=self._normalised,
        )  # fmt: skip

    @property
    def reads(self) -> bool:
        """Whether a call changes nothing."""
        return self.settings.effect == "read"

    def _normalised(self, args: tuple[str | float, ...]) -> tuple[str | float, ...]:
        try:
            return (self.canonical(str(args[0])),)
        except ActionError as error:
            raise ActionError(f"{self.name}: {error}: it takes a JSON object in which {in_words(self.schema)}") from error


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, effect: Effect = ..., confirm: bool = ..., seconds: float = ...) -> Callable[[F], F]: ...
def tool(function: F | None = None, *, effect: Effect = "write", confirm: bool = False, seconds: float = SECONDS) -> F | Callable[[F], F]:
    """Declare a function as a tool. It stays the function that it is.

        @exact.tool(effect="read")
        async def find_customer(name: str, limit: int = 3) -> list[dict[str, str]]: ...

    Args:
        function: The function, async or not. Its arguments are typed; its docstring says what it does, and `Args:` what each one means.
        effect: read: it changes nothing, so a search may call it, once for equal arguments in a state. write: it is called at a commit.
        confirm: Whether a person is asked before each call: see `approve` of `solve`. For tools that write.
        seconds: Seconds that a call may take, above 0.

    Raises UsageError.
    """
    if effect not in typing.get_args(Effect):
        raise UsageError(f"effect {effect!r} of a tool: write read or write")
    if confirm and effect == "read":
        raise UsageError("a tool that reads is called while searching, where nobody is asked: leave out confirm, or write effect='write'")
    if not seconds > 0:
        raise UsageError(f"seconds of a tool is {seconds:g}: write a number above 0")

    def declare(given: F) -> F:
        setattr(given, _SETTINGS, ToolSettings(effect=effect, confirm=confirm, seconds=seconds))
        return given

    return declare if function is None else declare(function)


def is_declared(found: object) -> bool:
    """Return whether an object is a function that `tool` has declared."""
    return isinstance(getattr(found, _SETTINGS, None), ToolSettings)


def function_tool(function: Callable[..., Any]) -> Tool:
    """Return the tool that a function stands for; one that is not declared writes. Raises UsageError if it cannot be one."""
    name = name_of(function)
    if not callable(function) or not _NAME.fullmatch(name):
        raise UsageError(f"the tool {name!r} is no function with a name: give a function that is made by `def`")
    kind = _arguments_type(name, function)
    schema, text = _schema(name, kind), inspect.getdoc(function) or ""
    for argument, said in _argument_help(text).items():
        if argument in schema["properties"]:
            schema["properties"][argument].setdefault("description", said)
    found = getattr(function, _SETTINGS, None)
    return Tool(
        name=name, help=help_of(text, schema), schema=schema, call=partial(_call, function, kind), canonical=partial(_canonical, kind),
        settings=found if isinstance(found, ToolSettings) else ToolSettings(),
    )  # fmt: skip


def help_of(text: str, schema: Mapping[str, Any]) -> str:
    """Return a line about a tool: the first paragraph of its description, and what is said about its arguments."""
    members = schema.get("properties")
    about = [
        f"{name}: {one_line(str(each['description']), 80)}"
        for name, each in (members.items() if isinstance(members, Mapping) else ())
        if isinstance(each, Mapping) and each.get("description")
    ]
    said = one_line(text.strip().partition("\n\n")[0], LONGEST_HELP // 2)
    return one_line(f"{said} ({'; '.join(about)})" if about else said, LONGEST_HELP)


def _arguments_type(name: str, function: Callable[..., Any]) -> type[msgspec.Struct]:
    """Return the type of a function's arguments. Raises UsageError for an argument that an agent cannot give."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(f"the types of the tool {name} cannot be read: {described(error)}") from error
    fields = list[Any]()
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            raise UsageError(f"the tool {name} takes {each}, which an agent cannot name: give its arguments names and types")
        if each.name not in hints:
            raise UsageError(f"the tool {name} has no type for {each.name}: write {each.name}: str")
        fields.append((each.name, hints[each.name]) if each.default is each.empty else (each.name, hints[each.name], each.default))
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, omit_defaults=True)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the arguments of the tool {name} cannot be used: {described(error)}") from error


def _schema(name: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise UsageError(f"the tool {name} has a type that JSON cannot say: {described(error)}") from error
    schema: dict[str, Any] = dict(parts.pop("Arguments"))
    schema.pop("title", None)
    schema["properties"] = {each: dict(said) for each, said in schema.get("properties", {}).items()}
    return {**schema, "$defs": parts} if parts else schema


def _argument_help(text: str) -> dict[str, str]:
    """Return what a docstring says of each argument, in its section `Args:`."""
    found, section = dict[str, str](), text.partition("\nArgs:\n")[2]
    for line in section.splitlines():
        if line and not line[0].isspace():
            break
        if said := _ARGUMENT.match(line.strip()):
            found[said["name"]] = said["text"]
    return found


def _canonical(kind: type[msgspec.Struct], text: str) -> str:
    try:
        return canonical_object(json.loads(msgspec.json.encode(msgspec.json.decode(text, type=kind))))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ActionError(one_line(str(error), 300)) from error


async def _call(function: Callable[..., Any], kind: type[msgspec.Struct], text: str) -> object:
    """Call a function with its arguments: an async one here, another one in a thread of its own."""
    given = msgspec.json.decode(text, type=kind)
    work = partial(function, **{each: getattr(given, each) for each in kind.__struct_fields__})
    if inspect.iscoroutinefunction(function):
        return await work()
    found = await _in_thread(work)
    return await found if inspect.isawaitable(found) else found


async def _in_thread(work: Callable[[], T]) -> T:
    """Return the result of a function that runs in a thread of its own, which the process does not wait for."""
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def settle(found: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(found)
        else:
            future.set_exception(error)

    def run() -> None:
        found, error = None, None
        try:
            found = work()
        except BaseException as raised:  # noqa: BLE001 (it is raised again where it is awaited; of a thread it ends no process)
            plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            error = raised if plain else RuntimeError(f"it raised {type(raised).__name__}")
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, found, error)

    context: Any = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="exact tool", daemon=True).start()
    result: T = await future
    return result


class ToolTimeout(ToolError):
    """A tool that gave no answer in its time. It may still be at work."""


async def called(tool: Tool, arguments: str, mask: Callable[[str], str]) -> str:
    """Call a tool and return its result as a text.

    Args:
        tool: The tool.
        arguments: Its arguments as canonical JSON.
        mask: Function that replaces known secrets in a text.

    Raises ToolTimeout if it takes too long, ActionError if it says that nothing was done, ToolError for anything else that it raises.
    """
    task = asyncio.ensure_future(_called(tool, arguments))
    try:
        done, _ = await asyncio.wait({task}, timeout=tool.settings.seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_forget)
        raise ToolTimeout(f"{tool.name} gave no answer within {tool.settings.seconds:g} s")
    try:
        return bounded(task.result(), mask)
    except ActionError as error:
        kind = ToolError if isinstance(error, ToolError) else ActionError
        raise kind(one_line(mask(str(error)[:_BEYOND]), LONGEST_ERROR)) from error


async def _called(tool: Tool, arguments: str) -> object:
    with calling("tool", tool, ToolError, admits=(ActionError,)):
        return await tool.call(arguments)


def _forget(task: asyncio.Task[object]) -> None:
    """Take the result of a call that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def bounded(result: object, mask: Callable[[str], str]) -> str:
    """Return a result as a text of at most CHARACTERS characters, with the number of those left out. Secrets are masked."""
    text = _text(result)
    kept = mask(text[: CHARACTERS + _BEYOND])[:CHARACTERS]
    left = len(text) - CHARACTERS
    return f"{kept}\n(... {left:,} characters left out)" if left > 0 else kept


def _text(result: object) -> str:
    """Return a result in words: a text as it is, other data as JSON."""
    if isinstance(result, str):
        return result
    if result is None:
        return "done, without a result"
    if isinstance(result, bytes | bytearray | memoryview):
        return f"{len(result):,} bytes"
    try:
        return msgspec.json.encode(result, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return f"an object of type {type(result).__name__}"
