"""The server: OpenEnv's own, with our sessions behind it and routes for snapshots and forks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar

from fastapi import Body, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
from pydantic import SkipValidation

from exact.errors import ExactError, UsageError, unknown
from exact.interop.openenv.catalogue import Catalogue
from exact.interop.openenv.session import SavedState, ServedSession, Shown
from exact.origins import SameOrigin
from exact.version import __version__


class BrowserGymAction(Action):  # type: ignore[misc]
    """One action, in this package's grammar or as BrowserGym's function call."""

    action_str: str


class BrowserGymObservation(Observation):  # type: ignore[misc]
    """An agent's observation, by the names of OpenEnv's BrowserGym environment."""

    goal: str = ""
    url: str = ""
    text: str = ""
    axtree_txt: str = ""
    pruned_html: str = ""
    screenshot: Annotated[list[list[list[int]]] | str | None, SkipValidation] = None
    """Rows of pixels (red, green, blue) or, after a reset with `screenshot_format="png"`, a PNG in base64."""
    error: str = ""
    last_action_error: bool = False

    def model_dump(self, *, exclude: Any = (), **options: Any) -> dict[str, Any]:
        """Return the fields as plain data, with the pixels as they are: a copy of so many lists would hold up all sessions."""
        found: dict[str, Any] = super().model_dump(exclude={*exclude, "screenshot"}, **options)
        return found | {"screenshot": self.screenshot}


class BrowserGymState(State):  # type: ignore[misc]
    """State of an episode."""

    session: str = ""
    """Id of the session, which the routes for snapshots and forks want."""
    benchmark: str = ""
    task_name: str = ""
    task_id: str = ""
    goal: str = ""
    current_url: str = ""
    max_steps: int | None = None
    cum_reward: float = 0.0
    actions: str = ""
    """Actions of the environment, one a line."""
    fidelity: str = ""
    """State that a snapshot recovers; `replay`: none."""


_RESET = ("task_name", "fork", "screenshot_format")
"""Options of `reset` besides OpenEnv's own."""


class Served:
    """Objects that all sessions of a server share."""

    def __init__(self, catalogue: Catalogue, *, most: int, screenshot: bool) -> None:
        self.catalogue, self.most, self.screenshot = catalogue, most, screenshot
        self.sessions: dict[str, ServedSession] = {}
        self.forks: dict[str, SavedState] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ending: list[asyncio.Task[None]] = []
        """Sessions that are being closed."""

    def session(self) -> ServedSession:
        """Return a new session."""
        made = ServedSession(self.catalogue, self.forks, most=self.most, screenshot=self.screenshot)
        self.sessions[made.id] = made
        return made

    async def end(self, session: ServedSession) -> None:
        """Close a session."""
        self.sessions.pop(session.id, None)
        await session.close()

    async def close(self) -> None:
        """Close all sessions, then the environments that they shared."""
        await asyncio.gather(*(self.end(each) for each in list(self.sessions.values())), return_exceptions=True)
        await self.catalogue.close()


def application(
    catalogue: Catalogue, *, sessions: int, idle: float | None = 600.0, most: int = 0, screenshot: bool = False, name: str = "exact",
    hosts: Collection[str] = (),
) -> FastAPI:  # fmt: skip
    """Return the server as an ASGI application.

    sessions: the most at once. idle: seconds after which an idle session is closed; None: never. most: steps after which an episode is cut
    off; 0: none. screenshot: whether observations have one. hosts: names of this server, besides its addresses.
    """
    shared = Served(catalogue, most=most, screenshot=screenshot)
    limits = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=idle)
    app: FastAPI = create_app(
        type("ExactEnvironment", (ServedEnvironment,), {"shared": shared}),
        BrowserGymAction,
        BrowserGymObservation,
        env_name=name,
        concurrency_config=limits,
        state_cls=BrowserGymState,
    )
    _add_lifespan(app, shared)
    _add_routes(app, shared)
    app.add_middleware(SameOrigin, names=hosts)
    return app


class ServedEnvironment(Environment):  # type: ignore[misc]
    """OpenEnv's view of one session."""

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True
    shared: ClassVar[Served]
    """Objects of the server, set by a subclass for each server."""

    def __init__(self) -> None:
        super().__init__()
        self._session = self.shared.session()

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> BrowserGymObservation:
        for name in more:
            if name not in _RESET:
                raise unknown("option of reset", name, ("seed", "episode_id", *_RESET))
        return _observation(await self._session.reset(seed, episode=episode_id, **more))

    async def step_async(self, action: BrowserGymAction, timeout_s: float | None = None, **_: Any) -> BrowserGymObservation:
        async with asyncio.timeout(timeout_s):
            return _observation(await self._session.step(action.action_str))

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> BrowserGymObservation:
        return self._in_loop(self.reset_async(seed, episode_id, **more))

    def step(self, action: BrowserGymAction, timeout_s: float | None = None, **more: Any) -> BrowserGymObservation:
        return self._in_loop(self.step_async(action, timeout_s, **more))

    @property
    def state(self) -> BrowserGymState:
        return BrowserGymState(**self._session.state)

    def get_metadata(self) -> EnvironmentMetadata:
        tasks = self.shared.catalogue.names
        return EnvironmentMetadata(
            name="exact", description=f"{len(tasks)} tasks, such as {tasks[0]}: reset(task_name=...)", version=__version__
        )

    def list_splits(self) -> list[str]:
        return ["all"]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return [{"id": each, "index": index} for index, each in enumerate(self.shared.catalogue.names)]

    def num_tasks(self, split: str) -> int:
        return len(self.shared.catalogue.names)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return {"id": self.shared.catalogue.names[index], "index": index}

    def close(self) -> None:
        """Close the session. OpenEnv calls this in a thread, or in the loop if no thread is left."""
        shared = self.shared
        if shared.loop is None or not shared.loop.is_running():
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run_coroutine_threadsafe(shared.end(self._session), shared.loop).result()
        else:
            shared.ending = [*(each for each in shared.ending if not each.done()), here.create_task(shared.end(self._session))]

    def _in_loop(self, work: Any) -> BrowserGymObservation:
        assert self.shared.loop is not None
        found: BrowserGymObservation = asyncio.run_coroutine_threadsafe(work, self.shared.loop).result()
        return found


def _observation(shown: Shown) -> BrowserGymObservation:
    return BrowserGymObservation(**shown.fields, reward=shown.reward, done=shown.done)


def _add_lifespan(app: FastAPI, shared: Served) -> None:
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        shared.loop = asyncio.get_running_loop()
        try:
            async with inner(app) as state:
                yield state
        finally:
            await shared.close()

    app.router.lifespan_context = lifespan


def _add_routes(app: FastAPI, shared: Served) -> None:
    """Add the routes for snapshots: the id of a session is in its `state`. A fork is `reset(fork=snapshot)` in a new session."""

    def session(id: str) -> ServedSession:
        if id not in shared.sessions:
            raise HTTPException(404, f"there is no session {id!r}: the `state` of a connection has its id")
        return shared.sessions[id]

    @app.exception_handler(ExactError)  # type: ignore[untyped-decorator]
    async def told(request: Request, error: ExactError) -> JSONResponse:
        rest = (
            "; plain HTTP keeps no session between two requests: play episodes over the WebSocket at /ws"
            if request.url.path == "/step"
            else ""
        )
        return JSONResponse({"detail": f"{error}{rest}"}, 409 if isinstance(error, UsageError) else 503)

    @app.post("/snapshot", tags=["Snapshots"])  # type: ignore[untyped-decorator]
    async def snapshot(session_id: str = Body(alias="session", embed=True)) -> dict[str, Any]:
        return await session(session_id).snapshot()

    @app.post("/restore", tags=["Snapshots"])  # type: ignore[untyped-decorator]
    async def restore(session_id: str = Body(alias="session"), snapshot_id: str = Body(alias="snapshot")) -> dict[str, Any]:
        shown = await session(session_id).restore(snapshot_id)
        return {"observation": shown.fields, "reward": shown.reward, "done": shown.done}

    @app.post("/fork", tags=["Snapshots"])  # type: ignore[untyped-decorator]
    async def fork(session_id: str = Body(alias="session", embed=True)) -> dict[str, Any]:
        found = await session(session_id).snapshot()
        if not found["forks"]:
            raise HTTPException(409, "this environment cannot be forked: run it in a sandbox (browser.sandbox), or restore snapshots")
        return found | {"reset": {"fork": found["snapshot"]}}
