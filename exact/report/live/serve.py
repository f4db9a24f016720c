"""The live view: reports of runs as they grow, served to browsers, and commands back to the searches.

A browser gets a whole page first, then changes over one connection of server-sent events. Journals are read as files: a search does not
know its viewers, and gets commands only from lines in a separate file (exact/runs/journal/commands.py).

Access control of the live view: known hosts, requests from its own pages, and a token if it has one.

A page that a user visits elsewhere can make a browser send requests to this machine. So a request must name a known host (else a foreign
name could resolve to this machine), and must come from a page of the live view itself.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from exact.errors import ExactError
from exact.origins import host_of, is_own_host, is_own_origin
from exact.report.live.follow import QUIET, Follower, ListFeed, in_sum
from exact.report.page import list_page, page, waiting
from exact.runs.folder_check import check_folder
from exact.runs.journal.commands import Name, send
from exact.runs.journal.store import RunFolder

EVERY = 0.15
"""Seconds between two looks at a journal that has viewers."""
LONGEST_ADDRESS = 2_000
"""Maximum length of the path and the query of an address together."""
LARGEST = 2_000
"""Maximum size of a command, in bytes."""
READ_PAST = 10_000_000
"""Maximum number of bytes that are read past of an oversized body, so that the client receives the answer."""


MAY_COMMAND = "exact.may_command"
"""Key of a request's scope: whether it came with the token."""
_WANTS_TOKEN = "this view wants its token: open the address that `exact view` printed"

Metrics = Callable[[Path], tuple[str, str]]
"""Function that returns the metrics of a run, or of a folder of runs, and their media type."""


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Command as a browser sends it."""

    name: Name
    node: int = -1
    question: str = ""
    text: str = ""


class Feed:
    """Feed of one attempt to all its viewers."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.lock = asyncio.Lock()
        self._looked = 0.0

    async def look(self) -> None:
        """Read the new events, unless that was just done."""
        async with self.lock:
            if time.monotonic() - self._looked >= EVERY * 0.9:
                await asyncio.to_thread(self.follower.look)
                self._looked = time.monotonic()

    async def patches(self, epoch: str, version: int) -> AsyncIterator[str]:
        """Yield server-sent events: the changes since a version, then further changes. A page of another epoch is asked to reload."""
        if epoch != self.follower.epoch:
            yield "event: again\ndata: {}\n\n"
            return
        said = time.monotonic()
        while True:
            await self.look()
            if self.follower.version > version:
                async with self.lock:
                    patch = await asyncio.to_thread(self.follower.patch, version)
                version, said = patch["version"], time.monotonic()
                yield f"id: {epoch}.{version}\nevent: patch\ndata: {json.dumps(patch)}\n\n"
            elif time.monotonic() - said > QUIET:
                said = time.monotonic()
                yield ": alive\n\n"
            await asyncio.sleep(EVERY)


class View:
    """Pages of a run, of a benchmark's runs, or of a folder of runs."""

    def __init__(self, path: Path, *, orders: bool = True, metrics: Metrics | None = None) -> None:
        self.path, self.orders, self._metrics = path, orders, metrics
        self._feeds: dict[tuple[str, int], Feed] = {}
        self._list = ListFeed(self.runs)
        self._checked: set[Path] = set()

    def runs(self) -> dict[str, Path]:
        """Return the present runs by their names in addresses, newest first."""
        if (self.path / "run.json").exists():
            return {self.path.resolve().name: self.path}
        runs = "agents/*/run.json" if (self.path / "bench.json").exists() else "*/run.json"
        found = sorted(self.path.glob(runs), key=_written, reverse=True)
        return {file.parent.name: file.parent for file in found}

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        task = "/{run}/{task:int}/"
        return [
            Route("/", self.all),
            Route("/events", self.rows),
            *([Route("/metrics", self.metrics)] if self._metrics is not None else []),
            Route("/{run}/", self.one),
            Route("/{run}/events", self.rows),
            Route(task, self.page),
            Route(task + "events", self.events),
            Route(task + "picture/{name}", self.picture),
            Route(task + "command", self.command, methods=["POST"]),
        ]

    async def metrics(self, request: Request) -> Response:
        assert self._metrics is not None
        text, media_type = await asyncio.to_thread(self._metrics, self.path)
        return Response(text, media_type=media_type, headers={"cache-control": "no-store"})

    async def all(self, request: Request) -> Response:
        runs = self.runs()
        if len(runs) == 1:
            return RedirectResponse(f"/{next(iter(runs))}/")
        return await self._listed(request, str(self.path), "")

    async def one(self, request: Request) -> Response:
        folder = self._folder(request)
        if folder is None:
            return _missing("run")
        if len(folder.manifest.tasks) == 1:
            return RedirectResponse(f"{request.url.path}0/")
        return await self._listed(request, request.path_params["run"], request.path_params["run"])

    async def _listed(self, request: Request, title: str, run: str) -> Response:
        """Return the live list of a run; empty: of all runs."""
        orders, why = self._may(request)
        await self._list.look()
        rows, told = self._list.of(run), self._list.listing.told
        shown = [row.steered if orders else row.html for row in rows.values()]
        runs = {name: words for name, words in told.items() if run in ("", name)}
        return HTMLResponse(await asyncio.to_thread(list_page, title, in_sum(rows.values()), shown, runs, orders=orders, why=why))

    async def rows(self, request: Request) -> Response:
        """Send the list's rows as they change. The first event has all of them."""
        run = request.path_params.get("run", "")
        if run and self._folder(request) is None:
            return _missing("run")
        patches = self._list.patches(run, orders=self._may(request)[0])
        return StreamingResponse(patches, media_type="text/event-stream", headers={"cache-control": "no-store"})

    def _beside(self, folder: RunFolder) -> str:
        """Return the address of the list that has other attempts beside one of this run; empty if there are none."""
        return "/" if len(self.runs()) > 1 else "../" if len(folder.manifest.tasks) > 1 else ""

    def _may(self, request: Request) -> tuple[bool, str]:
        """Return whether a request's sender may command, and the reason if it may not, unless nobody may."""
        return self.orders and request.scope[MAY_COMMAND], _WANTS_TOKEN if self.orders else ""

    async def page(self, request: Request) -> Response:
        feed, folder, number = self._feed(request), self._folder(request), request.path_params["task"]
        if folder is None or number >= len(folder.manifest.tasks):
            return _missing("task")
        if feed is None:
            title = folder.manifest.tasks[number].id
            return HTMLResponse(waiting(title, "It was not started yet. This page looks again every two seconds."))
        await feed.look()
        async with feed.lock:
            orders, why = self._may(request)
            epoch, version = feed.follower.epoch, feed.follower.version
            now = {
                "epoch": epoch,
                "version": version,
                "orders": orders,
                "why": why,
                "beside": self._beside(folder),
                **feed.follower.gauges(),
            }
            text = await asyncio.to_thread(page, feed.follower.report(), live=now | feed.follower.gauges())
        return HTMLResponse(text)

    async def events(self, request: Request) -> Response:
        feed = self._feed(request)
        if feed is None:
            return _missing("task")
        last = request.headers.get("last-event-id", "")[:LONGEST_ADDRESS] or request.query_params.get("since", "")
        epoch, _, version = last.partition(".")
        since = int(version) if version.isdecimal() else 0
        return StreamingResponse(feed.patches(epoch, since), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def picture(self, request: Request) -> Response:
        feed = self._feed(request)
        found = await asyncio.to_thread(feed.follower.picture, request.path_params["name"]) if feed is not None else None
        if found is None:
            return _missing("picture")
        return Response(found[0], media_type=found[1], headers={"cache-control": "private, max-age=86400, immutable"})

    async def command(self, request: Request) -> Response:
        feed = self._feed(request)
        if feed is None or not self.orders:
            return _missing("task that takes commands")
        try:
            body = await _body(request)
        except ClientDisconnect:
            return PlainTextResponse("the command broke off", 400)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return PlainTextResponse("a command is JSON", 415)
        if len(body) > LARGEST:
            return PlainTextResponse(f"a command has at most {LARGEST:,} bytes", 413)
        try:
            order = msgspec.json.decode(body, type=Order)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return PlainTextResponse(f"no command: {error}", 400)
        if feed.follower.gauges()["standing"] == "ended":
            return PlainTextResponse("the attempt has ended", 409)
        who = request.client.host if request.client else ""
        answer = {"question": order.question, "text": order.text}
        by = f"a viewer at {who}"
        command = await asyncio.to_thread(send, feed.follower.journal, order.name, node=order.node, by=by, **answer)
        return JSONResponse({"id": command.id}, 202)

    def _folder(self, request: Request) -> RunFolder | None:
        path = self.runs().get(request.path_params["run"])
        if path is None:
            return None
        if path not in self._checked:
            check_folder(path)
            self._checked.add(path)
        return RunFolder(path)

    def _feed(self, request: Request) -> Feed | None:
        """Return the feed of a task that was started; None for other tasks."""
        name, number = request.path_params["run"], request.path_params["task"]
        if (name, number) not in self._feeds:
            folder = self._folder(request)
            if folder is None or number >= len(folder.manifest.tasks):
                return None
            task = folder.manifest.tasks[number]
            if not (folder.task_folder(task) / "journal.jsonl").exists():
                return None
            self._feeds[name, number] = Feed(Follower(folder, task))
        return self._feeds[name, number]


async def _body(request: Request) -> bytes:
    """Return a small request body; if it exceeds LARGEST, only a beginning that exceeds it too.

    The rest is read and dropped, up to a bound: a client that is still sending would lose the answer with the connection.
    """
    found, size = b"", 0
    async for chunk in request.stream():
        size += len(chunk)
        found += chunk if len(found) <= LARGEST else b""
        if size > READ_PAST:
            break
    return found


def _written(file: Path) -> float:
    """Return when a file was written; 0 if it is gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _missing(what: str) -> Response:
    return PlainTextResponse(f"there is no such {what} here", 404)


class Guarded:
    """Access control as ASGI middleware; see exact/report/live/serve.py."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], token: str, look_freely: bool) -> None:
        self._app, self._hosts, self._token, self._look_freely = app, {host.lower() for host in hosts}, token, look_freely

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
            await PlainTextResponse(f"an address has at most {LONGEST_ADDRESS:,} characters", 414)(scope, receive, send)
            return
        request = Request(scope)
        page_like = scope["path"].endswith("/")
        if why := refusal(scope["method"], request.headers, self._hosts, page=page_like):
            await PlainTextResponse(why, 403)(scope, receive, send)
            return
        given = request.query_params.get("token")
        if self._token and given is not None and page_like and is_let_in(self._token, given):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="lax")
            await answer(scope, receive, send)
            return
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        scope[MAY_COMMAND] = is_let_in(self._token, request.cookies.get(COOKIE) or bearer)
        if not (scope[MAY_COMMAND] or (self._look_freely and scope["method"] in ("GET", "HEAD"))):
            await PlainTextResponse(_WANTS_TOKEN, 401)(scope, receive, send)
            return
        await self._app(scope, receive, _sealing(send))


def _sealing(send: Send) -> Send:
    """Return `send` with headers that forbid framing, media type sniffing and referrers."""
    extra = [
        (b"x-frame-options", b"DENY"), (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"), (b"cross-origin-opener-policy", b"same-origin"),
    ]  # fmt: skip

    async def with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return with_headers


async def _told(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 500)


def application(
    path: Path, *, hosts: Collection[str] = (), token: str = "", look_freely: bool = False, orders: bool = True,
    metrics: Metrics | None = None,
) -> ASGIApp:  # fmt: skip
    """Return the live view of a run, or of a folder of runs, as an ASGI application.

    hosts: names of the view besides loopback. token: the token that a browser must send; empty: every client on this machine may look and
    command. look_freely: whether clients without the token may look. orders: whether the view takes commands. metrics: function behind the
    address `/metrics`; None: there is none.
    """
    handlers: dict[Any, Callable[..., Any]] = {ExactError: _told}
    return Guarded(
        Starlette(routes=View(path, orders=orders, metrics=metrics).routes(), exception_handlers=handlers), hosts=hosts, token=token,
        look_freely=look_freely,
    )  # fmt: skip


COOKIE = "exact_view"


def refusal(method: str, headers: Mapping[str, str], hosts: Collection[str], *, page: bool) -> str:
    """Return the reason if a request is refused; empty if it is accepted. Header names are in lower case.

    hosts: names of the view besides loopback. page: whether the request is for a page, to which a link on another site may lead.
    """
    host = headers.get("host", "")
    if not is_own_host(host, hosts, local=True):
        name = host_of(host)
        return f"this view is not known as {name or 'nothing'!r}: start it with --allow-host {name}"
    origin = headers.get("origin")
    if origin is not None and not is_own_origin(origin, host):
        return "a page of another site may not ask for this"
    if method not in ("GET", "HEAD") and origin is None:
        return "a command must come from a page of this view"
    site = headers.get("sec-fetch-site", "none")
    leads_here = page and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if site in ("cross-site", "same-site") and not leads_here:
        return "a page of another site may not ask for this"
    return ""


def is_let_in(token: str, given: str | None) -> bool:
    """Return whether a given token is the right one. Every request passes if no token is set."""
    return not token or hmac.compare_digest(token.encode(), (given or "").encode())
