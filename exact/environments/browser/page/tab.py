"""One open page: its CDP session, its scripts' environments, and waiting for it to become quiet."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.cdp import move_mouse
from exact.environments.browser.page.script import script_call
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.page.traffic import Traffic
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import Page

    from exact.environments.browser.page.cdp import Cdp

_CONTEXT_NAME = "exact"
_CALM = 18.0
"""Milliseconds in which a quiet page draws a frame and changes nothing: longer than a frame, and than the tick of usual animations."""
_LEFT = ("context was destroyed", "Cannot find context", "No frame", "navigated or closed", "Frame with the given", "frame for given id")
"""In the words of CDP."""


class TargetIds(NamedTuple):
    """CDP ids of a page and of its browser context."""

    id: str
    context: str


class Tab:
    """One page of an environment. Coordinates are CSS pixels of its viewport."""

    context_name = _CONTEXT_NAME
    """Of our own environment in each document."""

    def __init__(self, page: Page, cdp: Cdp, index: int, answer_seconds: float = 15.0) -> None:
        """`answer_seconds`: how long a server may take to answer a navigation. Until then the browser can be asked nothing about the
        page, so its loading is stopped after that, as by a user."""
        self.page, self.cdp, self.index = page, cdp, index
        self.traffic = Traffic(cdp)
        self.frames: dict[str, str] = {}
        """Every frame's parent; the main frame's is empty."""
        self.unanswered = ""
        """The last address that did not answer in time; whoever reads it empties it."""
        self.file_chooser: asyncio.Future[dict[str, Any]] | None = None
        """Set while somebody waits for the page to ask for files."""
        self.target = TargetIds("", "")
        """Known once it is open."""
        self._answer_seconds = answer_seconds
        self._asking = ""
        self._timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._execution_contexts: dict[str, int] = {}
        self._origins: set[str] = set()

    async def renew(self) -> bool:
        """Leave the page and all that it kept. False if it has been at more than one origin: then not all can be reached."""
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
        """Begin to watch. `masked`: rules for what is to be blank."""
        self.cdp.on("Page.frameAttached", self._attached)
        self.cdp.on("Page.frameDetached", self._detached)
        self.cdp.on("Page.frameNavigated", self._navigated)
        self.cdp.on("Network.requestWillBeSent", self._asked)
        self.cdp.on("Network.loadingFailed", self._answered)
        self.cdp.on("Page.downloadWillBegin", self._answered)
        self.cdp.on("Page.fileChooserOpened", self._chooser)
        source = script_call("page/watch", ", ".join(setup.hidden), masked)
        answers: list[dict[str, Any]] = await asyncio.gather(
            self.cdp.send("Target.getTargetInfo"),
            self.cdp.send("Page.getFrameTree"),
            self.cdp.send("Page.enable"),
            self.cdp.send("Network.enable"),
            self.cdp.send("Network.setBypassServiceWorker", {"bypass": True}),  # should one be registered all the same
            self.cdp.send("Page.setInterceptFileChooserDialog", {"enabled": True}),
            self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": _CONTEXT_NAME, "runImmediately": True}),
        )
        found, tree = answers[0]["targetInfo"], answers[1]
        self._grow(tree["frameTree"])
        self.target = TargetIds(found["targetId"], found.get("browserContextId", ""))
        return self.target

    @property
    def main_frame(self) -> str:
        return next((frame for frame, parent in self.frames.items() if not parent), "")

    async def learn_frames(self) -> None:
        """Ask the browser for all frames that there are now."""
        self._grow((await self.cdp.send("Page.getFrameTree"))["frameTree"])

    async def owner(self, frame: str) -> tuple[str, int]:
        """The frame around a frame, and the backend id of the element that holds it there."""
        around = self.frames.get(frame, "")
        found = await self.cdp.send("DOM.getFrameOwner", {"frameId": frame})
        return around or self.main_frame, int(found["backendNodeId"])

    async def execution_context(self, frame: str) -> int:
        """The execution context of our own scripts in a frame: the page's scripts cannot see or change what happens in it."""
        if frame not in self._execution_contexts:
            made = await self.cdp.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": _CONTEXT_NAME})
            self._execution_contexts[frame] = made["executionContextId"]
        return self._execution_contexts[frame]

    async def evaluate(self, expression: str, *, page_environment: bool = False) -> Any:
        """JSON value of an expression or of the promise it gives, in our own environment or in that of the main frame's scripts.

        Raises EnvironmentFailure where it throws.
        """
        options: dict[str, Any] = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        if not page_environment:
            options["contextId"] = await self.execution_context(self.main_frame)
        return _value(await self.cdp.send("Runtime.evaluate", options), expression)

    async def evaluate_in(self, frame: str, expression: str) -> Any:
        """As `evaluate`, in our own environment of a frame."""
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True, "contextId": await self.execution_context(frame)}
        return _value(await self.cdp.send("Runtime.evaluate", options), expression)

    @property
    def origins(self) -> set[str]:
        """Of all documents that its frames have had, save those without one of their own."""
        return {each for each in self._origins if each.startswith("http")}

    async def history(self) -> list[str]:
        """Addresses to which going back leads, the next one last."""
        found = await self.cdp.send("Page.getNavigationHistory")
        return [entry["url"] for entry in found["entries"][: found["currentIndex"]] if entry["url"] != "about:blank"]

    async def call(self, node: int, frame: str, function: str, *args: Any) -> Any:
        """JSON value of a function called with the DOM node of that backend id as `this`."""
        found = await self.cdp.send("DOM.resolveNode", {"backendNodeId": node, "executionContextId": await self.execution_context(frame)})
        options = {
            "objectId": found["object"]["objectId"],
            "functionDeclaration": function,
            "arguments": [{"value": arg} for arg in args],
            "returnByValue": True,
            "awaitPromise": True,
        }
        return _value(await self.cdp.send("Runtime.callFunctionOn", options), function)

    async def screenshot(self) -> bytes:
        """PNG of the viewport."""
        shot = await self.cdp.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
        return base64.b64decode(shot["data"])

    async def quiet(self) -> None:
        """Return when nothing is in flight and no frame has changed for a moment. No cap: the caller sets one.

        An answer whose body nobody reads is not waited for.
        """
        from playwright.async_api import Error

        while True:
            await self.traffic.idle()
            begun = self.traffic.started
            try:
                unread = await asyncio.gather(*(self._calm(frame) for frame in list(self.frames)))
            except Error as error:
                if not self.is_navigation_error(error):
                    raise
                continue
            if not self.traffic.is_idle or self.traffic.started != begun:
                continue
            if not (read := self.traffic.read([url for urls in unread for url in urls])):
                return
            await self.traffic.ends(read)

    def is_navigation_error(self, error: Exception) -> bool:
        """Whether an error only says that a navigation took the document that was asked: ask again."""
        self._execution_contexts.clear()
        return not self.page.is_closed() and any(words in str(error) for words in _LEFT)

    def is_closing_error(self, error: Exception) -> bool:
        """Whether an error says that the page is closed, or about to be."""
        return self.page.is_closed() or "has been closed" in str(error)

    async def _calm(self, frame: str) -> list[str]:
        """Wait for a frame; addresses of the answers that it does not read."""
        expression = f"globalThis.exact?.quiet({_CALM})"  # a frame that was never loaded has none, and does not change
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True, "contextId": await self.execution_context(frame)}
        return _addresses(_value(await self.cdp.send("Runtime.evaluate", options), expression))

    def _chooser(self, event: dict[str, Any]) -> None:
        if self.file_chooser is not None and not self.file_chooser.done():
            self.file_chooser.set_result(event)

    def _attached(self, event: dict[str, Any]) -> None:
        self.frames[event["frameId"]] = event["parentFrameId"]

    def _detached(self, event: dict[str, Any]) -> None:
        self.frames.pop(event["frameId"], None)

    def _navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        self._execution_contexts.pop(frame["id"], None)
        self._origins.add(frame.get("securityOrigin", ""))
        if "parentId" not in frame:  # the frames inside went with the document, without a word
            self._answered(event)
            self.frames = {frame["id"]: ""}

    def _asked(self, event: dict[str, Any]) -> None:
        """A navigation of the main frame, or a hop of it, is on its way."""
        id = event["requestId"]
        if event.get("type") == "Document" and event.get("frameId") == self.main_frame and id != self._asking:
            self._answered({"requestId": self._asking})
            self._asking = id
            self._timer = asyncio.get_running_loop().call_later(self._answer_seconds, self._stop, event["request"]["url"])

    def _answered(self, event: dict[str, Any]) -> None:
        if self._timer is not None and event.get("requestId", self._asking) == self._asking:
            self._timer.cancel()
            self._timer = None

    def _stop(self, url: str) -> None:
        self.unanswered = url
        self._stopping = asyncio.ensure_future(self._stop_loading())

    async def _stop_loading(self) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # closed meanwhile
            await self.cdp.send("Page.stopLoading")

    def _grow(self, tree: dict[str, Any]) -> None:
        self.frames[tree["frame"]["id"]] = tree["frame"].get("parentId", "")
        for child in tree.get("childFrames", ()):
            self._grow(child)


def _addresses(told: object) -> list[str]:
    """Those in a JSON list; a page may say anything."""
    try:
        found = json.loads(told) if isinstance(told, str) else []
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _value(answer: dict[str, Any], source: str) -> Any:
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        text = details.get("exception", {}).get("description") or details.get("text", "")
        raise EnvironmentFailure(f"script {' '.join(source.split())[:60]!r} failed in the page: {text.splitlines()[0]}")
    return answer["result"].get("value")
