"""Environments behind an OpenEnv server: `exact serve`, or any other whose action is one text.

async with openenv_factory("http://127.0.0.1:8000") as environments, environments.open(simulation=True) as environment:
    observation = await environment.reset(task)

If the server has this package's routes and its environment takes snapshots, a restore is true; elsewhere a state is reached by a reset and
verified replay. The client is that of the package `openenv` (extra `openenv`). Rewards are those of the server; the score of an episode is
the sum of its rewards.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import io
import json
import re
import urllib.error
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, Fidelity, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Element, Observation
from exact.origins import fetch
from exact.task import Outcome, Score, Task
from exact.untrusted import picture_of
from exact.version import set_up

T = TypeVar("T")
_LINE = re.compile(r'^\s*\[(?P<id>[\w:.-]+)\] (?P<role>\w+)(?: (?P<quote>["\'])(?P<name>(?:\\.|(?!(?P=quote)).)*)(?P=quote))?', re.M)
_FORMS = {each.value: each for each in Parameter}
_PIP = "pip install 'exact-agent[openenv]'"
_MOST_BYTES = 64 << 20
"""Bytes of the largest answer of a server."""
_STALE = 60.0
"""Seconds after which a request counts as hung."""

ACT = ActionSpace([Verb(name="act", form=(Parameter.TEXT,), help="send the text of an action, as the server reads it")])
"""Actions of a server whose grammar is not known."""


async def asked(request: Awaitable[T]) -> T:
    """Return the answer to a request of OpenEnv's client. Raises EnvironmentFailure for any lost connection or refused request.

    This is the boundary to that client, whose WebSocket library and parser have their own errors: all of them are failures of a foreign
    server.
    """
    try:
        return await request
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, RuntimeError):  # the server's own words
            raise EnvironmentFailure(f"the OpenEnv server refuses: {told}") from error
        raise EnvironmentFailure(f"the OpenEnv server does not answer: {told}: is `exact serve` running?") from error


class OpenEnvServer(NamedTuple):
    """Known facts about a server."""

    url: str
    field: str
    """The one required field of its actions."""
    snapshots: bool
    """Whether it has this package's routes for snapshots."""


class OpenEnvEnvironment:
    """One session. Its actions are those that an `exact serve` states, or `act "text"`."""

    def __init__(self, client: Any, server: OpenEnvServer, capabilities: Capabilities, actions: ActionSpace) -> None:
        self._client, self._server = client, server
        self._capabilities, self._actions = capabilities, actions
        self._session, self._reward, self._total, self._done = "", 0.0, 0.0, True
        self._seen: Observation | None = None
        self._totals: dict[str, float] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Properties of this environment."""
        return self._capabilities

    @property
    def actions(self) -> ActionSpace:
        """Grammar of this environment's actions."""
        return self._actions

    @property
    def observation(self) -> Observation:
        """Last observation."""
        assert self._seen is not None
        return self._seen

    async def reset(self, task: Task) -> Observation:
        """Begin an episode of the task that `task.metadata["task_name"]` names; without it, of the server's default."""
        name = task.metadata.get("task_name")
        return await self._begin(seed=task.seed, **({"task_name": name} if name else {}))

    async def step(self, action: Action) -> Transition:
        """Carry out one action. Raises ActionError if the observation has an `error` and the episode continues, EnvironmentFailure."""
        if self._done or self._seen is None:
            raise ActionError("the episode is over: nothing can be done in it")
        text = str(action.args[0]) if action.name == "act" and "act" in self._actions.verbs else action.key
        found = await self._asked(self._client.step({self._server.field: text}))
        error = found.observation.get("error")
        if found.observation.get("last_action_error") and error and not found.done:  # a refused step may be the last that is allowed
            raise ActionError(str(error))
        self._reward, self._done = float(found.reward or 0.0), bool(found.done)
        self._total += self._reward
        self._seen = observed(found.observation)
        return Transition(observation=None if self._done else self._seen, terminated=self._done)

    def reward(self) -> float:
        """Return the reward of the last step."""
        return self._reward

    async def snapshot(self) -> Snapshot:
        """Take a snapshot on the server. Raises EnvironmentFailure."""
        if self._capabilities.fidelity == "replay":
            raise EnvironmentFailure("this server takes no snapshots: return to a state by a reset and the same actions")
        found = await self._posted("/snapshot", session=self._session)
        self._totals[found["snapshot"]] = self._total
        return Snapshot(id=found["snapshot"], fidelity=found["fidelity"], fingerprint=found["fingerprint"])

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot of this session. Raises EnvironmentFailure."""
        found = await self._posted("/restore", session=self._session, snapshot=snapshot.id)
        self._reward, self._total, self._done = 0.0, self._totals.get(snapshot.id, 0.0), bool(found["done"])
        self._seen = observed(found["observation"])
        return self._seen

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the sum of the episode's rewards, cut to [0, 1]."""
        return Score(value=min(1.0, max(0.0, self._total)), success=self._total >= 1.0, raw=self._total)

    async def close(self) -> None:
        """Close the session."""
        with suppress(EnvironmentFailure):  # the server is gone, and the session with it
            await asked(self._client.close())

    async def fork(self, snapshot: Snapshot) -> None:
        """Begin at another session's snapshot. Raises EnvironmentFailure."""
        await self._begin(fork=snapshot.id)

    async def _begin(self, **options: Any) -> Observation:
        if self._server.snapshots:
            options["screenshot_format"] = "png"
        found = await self._asked(self._client.reset(**options))
        self._reward, self._total, self._done = 0.0, 0.0, bool(found.done)
        self._seen = observed(found.observation)
        self._session = str((found.observation.get("metadata") or {}).get("session", ""))
        return self._seen

    async def _asked(self, request: Awaitable[T]) -> T:
        """Return the answer to a request. Raises EnvironmentFailure."""
        try:
            return await asked(request)
        except EnvironmentFailure as failure:
            raise EnvironmentFailure(f"{self._server.url}: {failure}") from failure

    async def _posted(self, path: str, **body: str) -> Any:
        try:
            return await asyncio.to_thread(_post, self._server.url + path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EnvironmentFailure(f"{self._server.url}{path}: {_said(error)}") from error


class OpenEnvFactory:
    """Sessions of one server."""

    def __init__(self, server: OpenEnvServer, capabilities: Capabilities, actions: ActionSpace) -> None:
        self._server, self._capabilities, self._actions = server, capabilities, actions

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[OpenEnvEnvironment]:
        """Open a session for the time of an `async with` block. Raises EnvironmentFailure."""
        async with _connected(self._server) as client:
            yield OpenEnvEnvironment(client, self._server, self._capabilities, self._actions)


class ForkableOpenEnvFactory(OpenEnvFactory):
    """Sessions of a server whose snapshots fork."""

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[OpenEnvEnvironment]:
        """Open another session at a snapshot. Raises EnvironmentFailure if it is gone."""
        async with self.open(simulation=simulation) as environment:
            await environment.fork(snapshot)
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Return True: a snapshot lives as long as the session that took it, which only the server knows."""
        return True

    def drop(self, snapshot: Snapshot) -> None:
        """Leave the snapshot to the server, which drops it with its session."""


@asynccontextmanager
async def openenv_factory(url: str, *, isolated: bool = True) -> AsyncIterator[OpenEnvFactory]:
    """Open a server's sessions. One session is opened and closed first, to learn what its environment can do.

    isolated: whether a reset undoes every side effect there. Raises UsageError if no OpenEnv server is at the address, or if its actions
    are more than one text; EnvironmentFailure if it opens no session.
    """
    server = await asyncio.to_thread(_server, url.rstrip("/"))
    async with _connected(server) as client:
        first = OpenEnvEnvironment(client, server, Capabilities(fidelity="replay", isolated=isolated), ACT)
        await first._begin()
        state: Mapping[str, Any] = await first._asked(client.state())
        fidelity: Fidelity = state.get("fidelity") or "replay" if server.snapshots else "replay"
        forks = False
        if fidelity != "replay":
            forks = bool((await first._posted("/snapshot", session=first._session))["forks"])
    capabilities = Capabilities(fidelity=fidelity, isolated=isolated, screenshots=first.observation.screenshot is not None)
    actions = described_actions(str(state.get("actions") or "")) or ACT
    yield (ForkableOpenEnvFactory if forks else OpenEnvFactory)(server, capabilities, actions)


@asynccontextmanager
async def _connected(server: OpenEnvServer) -> AsyncIterator[Any]:
    try:
        from openenv.core.generic_client import GenericEnvClient
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: {set_up('--openenv', _PIP)}") from error
    client = GenericEnvClient(base_url=server.url, message_timeout_s=_STALE)
    try:
        await asked(client.connect())
    except EnvironmentFailure as failure:
        raise EnvironmentFailure(f"{server.url} opens no session: {failure}") from failure
    try:
        yield client
    finally:
        with suppress(EnvironmentFailure):  # the server is gone, and the session with it
            await asked(client.close())


def _server(url: str) -> OpenEnvServer:
    """Return the content of a server's schema. Raises UsageError."""
    try:
        schema, routes = _get(f"{url}/schema"), _get(f"{url}/openapi.json")
        action = schema["action"]
        required = list(action.get("required") or [])
        paths = routes.get("paths", {})
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"no OpenEnv server at {url} ({_said(error)}): start one, such as `exact serve miniwob/click-test`") from error
    if len(required) != 1 or action["properties"][required[0]].get("type") != "string":
        raise UsageError(
            f"the actions of {url} have the fields {', '.join(required) or 'none'}: only those of one text can be searched over"
        )
    return OpenEnvServer(url, required[0], {"/snapshot", "/restore"} <= set(paths))


def _get(url: str) -> Any:
    return _parsed(fetch(url, seconds=_STALE, most=_MOST_BYTES))


def _post(url: str, body: Mapping[str, str]) -> Any:
    data = json.dumps(body).encode()
    return _parsed(fetch(url, data, headers={"content-type": "application/json"}, seconds=_STALE, most=_MOST_BYTES))


def _parsed(data: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _said(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        try:
            with error:
                return str(_parsed(error.read(_MOST_BYTES))["detail"])
        except (ValueError, KeyError, TypeError, OSError):
            return f"HTTP {error.code}"
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def described_actions(text: str) -> ActionSpace | None:
    """Return the action space whose description is given, one verb a line; None if the text describes none."""
    verbs = list[Verb]()
    for line in text.splitlines():
        usage, _, help = line.partition("  ")
        name, *form = re.findall(r'\[id\]|"text"|\S+', usage) or [""]
        if not name.isidentifier():
            return None
        verbs.append(Verb(name=name, form=tuple(_FORMS.get(each, each) for each in form), help=help.strip(), final=name == "stop"))
    return ActionSpace(verbs) if verbs else None


def observed(fields: Mapping[str, Any]) -> Observation:
    """Return an observation of a server: its text or accessibility tree, else all of its fields as JSON."""
    text = fields.get("text") or fields.get("axtree_txt") or _as_json(fields)
    metadata = fields.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    url = str(fields.get("url") or "")
    fingerprint = str(known.get("fingerprint") or hashlib.sha256(f"{url}\n{text}".encode()).hexdigest()[:32])
    return Observation(
        text=str(text), fingerprint=fingerprint, url=url, instruction=str(fields.get("goal") or ""), elements=_elements(str(text)),
        html=str(fields.get("pruned_html") or ""), screenshot=_picture(fields.get("screenshot")),
    )  # fmt: skip


def _elements(text: str) -> tuple[Element, ...]:
    found = (Element(id=m["id"], role=m["role"], name=(m["name"] or "").replace('\\"', '"')) for m in _LINE.finditer(text))
    return tuple(found)


def _as_json(fields: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in fields.items() if name not in ("metadata", "screenshot")}, indent=1, sort_keys=True)


def _picture(given: object) -> bytes | None:
    """Return a picture, given in base64 or as rows of pixels, as a PNG; None for another form."""
    try:
        if isinstance(given, str) and given:
            return base64.b64decode(given, validate=True)
        if isinstance(given, list):
            picture_of(given).save(file := io.BytesIO(), "PNG")
            return file.getvalue()
    except (OSError, ValueError):
        pass
    return None
