"""One open page: its CDP session, its execution contexts, and waiting for it to become quiet."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.accessible import AccessibleTree
from exact.environments.browser.page.background import BackgroundRequests
from exact.environments.browser.page.cdp import move_mouse, script_call
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.page.traffic import Traffic
from exact.errors import EnvironmentFailure
from exact.slowness import Timer

if TYPE_CHECKING:
    from playwright.async_api import Page

    from exact.environments.browser.page.cdp import Cdp

_MOST_GONE = 4096
"""Removed frames that are remembered of one page."""
MOST_ADDRESSES = 1000
"""Addresses that are read from one document."""
_CONTEXT_NAME = "exact"
"""Name of our own execution context in each document."""
_NAVIGATION_ERRORS = (
    "context was destroyed",
    "Cannot find context",
    "No frame",
    "navigated or closed",
    "Frame with the given",
    "frame for given id",
    "Not attached to an active page",
    "Frame was detached",
    "Promise was collected",
    "Could not find object with given id",
)
"""Parts of CDP's errors about a document that was replaced."""


class TargetIds(NamedTuple):
    """CDP ids of a page and of its browser context."""

    id: str
    context: str


class Navigation(NamedTuple):
    """The outcome of a navigation: the page has another document, unless there is an error."""

    error: str
    """Chromium's name of the error without `net::ERR_`; empty if there is none."""
    status: int
    """HTTP status of the answer; 0 if there was none."""
    is_download: bool


class Tab:
    """One page of an environment. Coordinates are CSS pixels of the viewport."""

    context_name = _CONTEXT_NAME
    """Name of our own execution context in each document."""

    def __init__(
        self,
        page: Page,
        cdp: Cdp,
        index: int,
        holds: Callable[[str], bool] = lambda frame: False,
        goes_to: Callable[[str], None] = lambda url: None,
        answer_seconds: float = 15.0,
        background: BackgroundRequests | None = None,
    ) -> None:
        """Create a tab for a page.

        `index`: its number among the episode's pages, from 0. `holds` returns whether the navigation of a frame, by its CDP id, waits for a
        person, or for the rest of a document with a separate time: no server is late then. `goes_to` is called with each address to which
        the agent itself goes. `answer_seconds`: seconds that a server may take to answer a navigation. The browser answers nothing about
        the page until then, so loading is stopped after that time, as by a user. `background`: the requests that were learned and are not
        waited for.
        """
        self.page, self.cdp, self.index = page, cdp, index
        self.traffic = Traffic(cdp, background)
        self.accessible = AccessibleTree(self)
        self.url = ""
        """Address of the page, as the browser tells it. Playwright's `page.url` may still be that of the document before: see `heard`."""
        self.frames: dict[str, str] = {}
        """The parent of each frame by the frame's CDP id; empty for the main frame."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Frames that were removed. Requests of theirs may still be waiting."""
        self.size = (0, 0)
        """Elements of the page and, roughly, characters of its texts, names and fields, when it was quiet last."""
        self.marks: dict[str, Any] = {}
        """The mark of each frame's document when it was quiet last, which any change of it changes: `mark` in watch.js."""
        self._unreadable = -1
        """Number of the document whose state the browser could not hand over; -1 for none."""
        self.unanswered = ""
        """The last address that did not answer in time. The reader empties it."""
        self.file_chooser: asyncio.Future[dict[str, Any]] | None = None
        """Receives the event when the page asks for files; None while nothing waits for it."""
        self.target = TargetIds("", "")
        """CDP ids of the page; known once the tab is open."""
        self._holds, self._goes_to = holds, goes_to
        self._held = False
        """Whether the navigation was held when its time was last checked."""
        self._answer_seconds = answer_seconds
        self._navigation = ""
        self._timer: Timer | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._told: set[asyncio.Task[None]] = set()
        """Commands whose answers nothing waits for."""
        self._execution_contexts: dict[str, int] = {}
        self._origins: set[str] = set()

    async def renew(self) -> bool:
        """Leave the page and delete its storage. Return False if it has been at several origins, whose storage is out of reach."""
        here = self.origins
        if len(here) != 1:
            return False
        await self.evaluate("window.name = ''; sessionStorage.clear(); localStorage.clear()")
        await move_mouse(self.cdp, -1, -1)
        await self.page.goto("about:blank")
        await asyncio.gather(
            self.cdp.send("Storage.clearDataForOrigin", {"origin": here.pop(), "storageTypes": "all"}),
            self.cdp.send("Network.clearBrowserCookies"),
            self.cdp.send("Page.resetNavigationHistory"),
        )
        self._origins = set()
        return True

    async def open(self, setup: PageSetup, masked: str = "") -> TargetIds:
        """Watch the page from now on. `masked`: style rules for masked elements. Return the page's CDP ids."""
        self.cdp.on("Page.frameAttached", self._frame_attached)
        self.cdp.on("Page.frameDetached", self._frame_detached)
        self.cdp.on("Page.frameNavigated", self._frame_navigated)
        self.cdp.on("Page.navigatedWithinDocument", self._navigated_within)
        self.cdp.on("Network.requestWillBeSent", self._request_sent)
        self.cdp.on("Network.loadingFailed", self._navigation_answered)
        self.cdp.on("Page.downloadWillBegin", self._navigation_answered)
        self.cdp.on("Page.fileChooserOpened", self._file_chooser_opened)
        source = script_call("page/watch", ", ".join(setup.hidden), masked)
        answers: list[dict[str, Any]] = await asyncio.gather(
            self.cdp.send("Target.getTargetInfo"),
            self.cdp.send("Page.getFrameTree"),
            self.cdp.send("Page.enable"),
            self.cdp.send("Network.enable"),
            self.cdp.send("Network.setBypassServiceWorker", {"bypass": True}),  # in case one is registered nevertheless
            self.cdp.send("Page.setInterceptFileChooserDialog", {"enabled": True}),
            self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": _CONTEXT_NAME, "runImmediately": True}),
        )
        found, tree = answers[0]["targetInfo"], answers[1]
        self._add_frames(tree["frameTree"])
        self.url = _address(tree["frameTree"]["frame"])
        self.traffic.main_frame = self.main_frame
        self.target = TargetIds(found["targetId"], found.get("browserContextId", ""))
        return self.target

    @property
    def main_frame(self) -> str:
        """CDP id of the main frame; empty before the tab is open."""
        return next((frame for frame, parent in self.frames.items() if not parent), "")

    async def learn_frames(self) -> None:
        """Ask the browser for all frames of the page."""
        self._add_frames((await self.cdp.send("Page.getFrameTree"))["frameTree"])

    async def owner(self, frame: str) -> tuple[str, int]:
        """Return the parent of a frame, and the backend id of the frame's element in it."""
        around = self.frames.get(frame, "")
        found = await self.cdp.send("DOM.getFrameOwner", {"frameId": frame})
        return around or self.main_frame, int(found["backendNodeId"])

    async def execution_context(self, frame: str) -> int:
        """Return the id of our own execution context in a frame, which the page's scripts can neither see nor change."""
        if frame not in self._execution_contexts:
            made = await self.cdp.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": _CONTEXT_NAME})
            self._execution_contexts[frame] = made["executionContextId"]
        return self._execution_contexts[frame]

    async def evaluate(self, expression: str, *, in_page: bool = False) -> Any:
        """Return the JSON value of an expression in the main frame, or of the promise that it returns.

        It runs in our own execution context, or in that of the page's scripts. Raises EnvironmentFailure if it throws.
        """
        options: dict[str, Any] = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        if not in_page:
            options["contextId"] = await self.execution_context(self.main_frame)
        return _value(await self.cdp.send("Runtime.evaluate", options), expression)

    async def evaluate_in(self, frame: str, expression: str) -> Any:
        """Return the JSON value of an expression in our own execution context of a frame, as `evaluate` does."""
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True, "contextId": await self.execution_context(frame)}
        return _value(await self.cdp.send("Runtime.evaluate", options), expression)

    @property
    def origins(self) -> set[str]:
        """The http and https origins of all documents that the frames have had."""
        return {each for each in self._origins if each.startswith("http")}

    async def addresses(self) -> list[str]:
        """Return the addresses that stand in the documents of all frames."""
        from playwright.async_api import Error

        found = list[str]()
        for frame in list(self.frames):
            with suppress(Error, EnvironmentFailure):  # the frame is gone, or cannot be asked
                found += await self.evaluate_in(frame, script_call("page/addresses", MOST_ADDRESSES))
        return found

    async def history(self) -> list[str]:
        """Return the addresses that going back leads to, the nearest one last."""
        found = await self.cdp.send("Page.getNavigationHistory")
        return [entry["url"] for entry in found["entries"][: found["currentIndex"]] if entry["url"] != "about:blank"]

    async def call(self, node: int, frame: str, function: str, *args: Any) -> Any:
        """Call a function with a DOM node, by its backend id, as `this`. Return its JSON value, or that of its promise."""
        found = await self.cdp.send("DOM.resolveNode", {"backendNodeId": node, "executionContextId": await self.execution_context(frame)})
        options = {
            "objectId": found["object"].get("objectId", ""),  # CDP refuses an empty one
            "functionDeclaration": function,
            "arguments": [{"value": arg} for arg in args],
            "returnByValue": True,
            "awaitPromise": True,
        }
        return _value(await self.cdp.send("Runtime.callFunctionOn", options), function)

    async def note_marks(self) -> None:
        """Take the marks of the documents of all frames."""
        frames = list(self.frames)
        self.marks = dict(zip(frames, await asyncio.gather(*(self._asked(frame, "mark()") for frame in frames)), strict=True))

    async def has_changed_since(self, marks: Mapping[str, Any]) -> bool:
        """Return whether anything has changed by itself since marks were noted, but for parts that change again and again."""
        asked = {frame: mark for frame, mark in marks.items() if mark and frame in self.frames}
        answers = await asyncio.gather(*(self._asked(frame, f"since({json.dumps(mark)})") for frame, mark in asked.items()))
        return dict(zip(asked, answers, strict=True)).get(self.main_frame) is not False or any(answers)

    async def _asked(self, frame: str, question: str) -> Any:
        """Return an answer of watch.js in a frame; None if the frame is gone, or cannot be asked."""
        from playwright.async_api import Error

        with suppress(Error, EnvironmentFailure):
            return await self.evaluate_in(frame, f"globalThis.exact?.{question}")
        return None

    async def backends(self, frame: str, expression: str) -> list[int]:
        """Return the backend ids of a list of nodes, which an expression in our own execution context of a frame gives."""
        options = {"expression": expression, "contextId": await self.execution_context(frame)}
        listed = (await self.cdp.send("Runtime.evaluate", options))["result"]
        found = await self.cdp.send("Runtime.getProperties", {"objectId": listed.get("objectId", ""), "ownProperties": True})
        nodes = [each.get("value", {}).get("objectId", "") for each in found["result"] if each["name"].isdigit()]
        described = await asyncio.gather(*(self.cdp.send("DOM.describeNode", {"objectId": each}) for each in nodes))
        return [int(each["node"]["backendNodeId"]) for each in described]

    @property
    def is_unreadable(self) -> bool:
        """Whether the browser could not hand over the present document as a whole."""
        return self._unreadable == self.traffic.documents

    def mark_unreadable(self) -> None:
        """Note that the browser could not hand over the present document as a whole: it is too large."""
        self._unreadable = self.traffic.documents

    async def screenshot(self) -> bytes:
        """Return a PNG of the viewport."""
        shot = await self.cdp.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
        return base64.b64decode(shot["data"])

    async def navigate(self, url: str) -> Navigation:
        """Go to an address. Return once the document is there, or will not come. Its load is not waited for.

        Raises Playwright's Error for an invalid address.
        """
        self.traffic.status = 0
        self._goes_to(url)
        answer = await self.cdp.send("Page.navigate", {"url": url})
        return Navigation(answer.get("errorText", "").removeprefix("net::ERR_"), self.traffic.status, answer.get("isDownload", False))

    async def stop_loading(self) -> None:
        """Stop loading, as by a user. Requests of the page fail, and its load event fires."""
        from playwright.async_api import Error

        with suppress(Error):  # closed meanwhile
            await self.cdp.send("Page.stopLoading")

    def crash(self) -> None:
        """End the renderer, on a thread of it that no script blocks. The answer is not waited for."""
        self._tell("Page.crash")

    def leave(self) -> None:
        """Hear no more of the page, whose context is about to close. The answer is not waited for.

        Chromium 156 ends as a whole if two sessions wait for the dialog of a frame without a document, and its context closes.
        """
        self._tell("Page.disable")

    def _tell(self, command: str) -> None:
        task = asyncio.ensure_future(self._send(command))
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def _send(self, command: str) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the page is gone
            await self.cdp.send(command)

    def is_navigation_error(self, error: Exception) -> bool:
        """Return whether an error only means that a navigation replaced the document. Then call again."""
        self._execution_contexts.clear()
        return not self.page.is_closed() and any(words in str(error) for words in _NAVIGATION_ERRORS)

    def is_closing_error(self, error: Exception) -> bool:
        """Return whether an error means that the page is closed or closing."""
        return self.page.is_closed() or "has been closed" in str(error)

    def _file_chooser_opened(self, event: dict[str, Any]) -> None:
        if self.file_chooser is not None and not self.file_chooser.done():
            self.file_chooser.set_result(event)

    def _frame_attached(self, event: dict[str, Any]) -> None:
        self.frames[event["frameId"]] = event["parentFrameId"]

    def _frame_detached(self, event: dict[str, Any]) -> None:
        if event["frameId"] in self.frames:
            del self.frames[event["frameId"]]
            self._forget(event["frameId"])

    def _forget(self, frame: str) -> None:
        self._gone[frame] = None
        if len(self._gone) > _MOST_GONE:
            self._gone.popitem(last=False)

    def has(self, frame: str) -> bool:
        """Return whether the page has, or had a while ago, the frame with an id."""
        return frame in self.frames or frame in self._gone

    def _frame_navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        self._execution_contexts.pop(frame["id"], None)
        self._origins.add(frame.get("securityOrigin", ""))
        if "parentId" not in frame:  # the frames inside are gone too, and the browser sends no events for them
            self.url = _address(frame)
            self._navigation_answered(event)
            for each in self.frames.keys() - {frame["id"]}:
                self._forget(each)
            self.frames = {frame["id"]: ""}

    def _navigated_within(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self.main_frame:
            self.url = event["url"]

    def _request_sent(self, event: dict[str, Any]) -> None:
        """Start the timeout of a navigation of the main frame, once for all its redirects."""
        id = event["requestId"]
        if event.get("type") == "Document" and event.get("frameId") == self.main_frame and id != self._navigation:
            self._navigation_answered({"requestId": self._navigation})
            self._navigation = id
            self._await_answer(event["request"]["url"])

    def _await_answer(self, url: str) -> None:
        self._timer = Timer(self._answer_seconds, partial(self._navigation_timed_out, url))

    def _navigation_answered(self, event: dict[str, Any]) -> None:
        if self._timer is not None and event.get("requestId", self._navigation) == self._navigation:
            self._timer.cancel()
            self._timer = None

    def _navigation_timed_out(self, url: str) -> None:
        held, self._held = self._held, self._holds(self.main_frame)
        if held or self._held:  # the server has its whole time once the request is sent
            self._await_answer(url)
            return
        self.unanswered = url
        self._stopping = asyncio.ensure_future(self.stop_loading())

    def _add_frames(self, tree: dict[str, Any]) -> None:
        self.frames[tree["frame"]["id"]] = tree["frame"].get("parentId", "")
        for child in tree.get("childFrames", ()):
            self._add_frames(child)


def _address(frame: Mapping[str, Any]) -> str:
    return f"{frame['url']}{frame.get('urlFragment', '')}"


def _value(answer: dict[str, Any], source: str) -> Any:
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        text = details.get("exception", {}).get("description") or details.get("text", "")
        raise EnvironmentFailure(f"script {' '.join(source.split())[:60]!r} failed in the page: {text.splitlines()[0]}")
    return answer["result"].get("value")
