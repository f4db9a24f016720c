"""A desktop as OSWorld's `desktop_env` sees a machine: the requests of its controllers, by name."""

from __future__ import annotations

import json
import platform
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from exact.action import Action
from exact.environments.desktop.accessibility import Accessibility, Silent
from exact.environments.desktop.act import act_in_turn
from exact.environments.desktop.pyautogui import read_pyautogui
from exact.environments.desktop.reach import DesktopContext
from exact.environments.desktop.screen import Screen, TopLevelWindow
from exact.environments.desktop.session import DesktopSession
from exact.environments.desktop.settle import changes, settle
from exact.environments.desktop.tree import DesktopTree, Seen
from exact.environments.desktop.vm.commands import Commands, Json, StepFaults
from exact.environments.desktop.vm.document import Opening, accessibility_xml, opens_window, terminal_text, titles
from exact.errors import ActionError, EnvironmentFailure

_OPENED_SECONDS = 60.0
"""Seconds within which an opened file must show a window, unless the request states another limit."""
_REST_SECONDS, _WAIT_SECONDS, _SILENT_SECONDS, _ENDED_SECONDS = 3.0, 1.0, 40.0, 3.0
_POLL = 0.1
_WRITTEN_SECONDS = 2.0
"""Seconds without a change after which a file counts as written."""
_REFUSED = 400
"""Least status of an answer that is an error."""
T = TypeVar("T")
_WALLPAPER, _PICTURE = ("gsettings",), ("org.gnome.desktop.background", "picture-uri")
_OPENS = 'press "Alt+Control+t"'
"""The shortcut that opens a terminal."""


class VmReply(NamedTuple):
    """The answer to a request."""

    body: bytes
    status: int = 200
    kind: str = "application/json"

    @property
    def reason(self) -> str:
        """The reason that an answer in JSON or in words gives for its status."""
        if self.kind != "application/json":
            return self.body.decode("utf-8", "replace")
        said = json.loads(self.body)
        return str(said.get("message") or said.get("error") or said)


class VmRequest(NamedTuple):
    """A request's content: fields of JSON or of a form, and uploaded files."""

    fields: Json
    files: dict[str, bytes]


Route = Callable[[VmRequest], VmReply]


class Machine:
    """A desktop as `desktop_env` sees it. Its methods answer the requests; one at a time uses the display or the bus."""

    def __init__(self, session: DesktopSession) -> None:
        """Connect to the display and the bus of a session that has started. Raises EnvironmentFailure."""
        self._session = session
        self._screen, self._bus = Screen(), Accessibility(session.env["DBUS_SESSION_BUS_ADDRESS"])
        self._tree = DesktopTree(self._bus, str, self._screen.popup)
        self._lock = threading.Lock()
        self._recording: subprocess.Popen[bytes] | None = None
        self.faults = StepFaults()
        self.commands = Commands(session, self.perform, self.faults)
        post = (
            self.execute, self.execute_with_verification, self.run_python, self.run_bash_script, self.launch, self.upload,
            self.download_file, self.open_file, self.activate_window, self.close_window, self.change_wallpaper, self.file,
            self.screen_size, self.window_size, self.desktop_path, self.wallpaper, self.list_directory, self.start_recording,
            self.end_recording,
        )  # fmt: skip
        get = (self.screenshot, self.accessibility, self.terminal, self.platform, self.cursor_position)
        self.routes: dict[tuple[str, str], Route] = {("POST", f"/{each.__name__}"): self._noting(each) for each in post}
        self.routes |= {("POST", f"/setup/{each.__name__}"): self._noting(each, step=True) for each in post}
        self.routes |= {("GET", f"/{each.__name__}"): self._noting(each) for each in get}

    def close(self) -> None:
        """End the recording and the connections."""
        self._end_recording()
        self._bus.close()
        with suppress(EnvironmentFailure):  # the display is gone
            self._screen.close()

    def perform(self, program: str) -> None:
        """Carry out a program of pyautogui as input events. Raises ActionError and EnvironmentFailure."""
        try:
            self._perform(program)
        except ActionError as error:
            self.faults.broke(str(error))
            raise

    def _noting(self, route: Route, *, step: bool = False) -> Route:
        """Return a route whose failures are noted in `faults`. `step`: whether desktop_env's steps of a set-up ask for it."""

        def noted(request: VmRequest) -> VmReply:
            try:
                reply = route(request)
            except EnvironmentFailure as error:
                self.faults.broke(str(error))
                raise
            except (OSError, ValueError) as error:
                if step:
                    self.faults.refused(f"{route.__name__}: {error}")
                raise
            if step and reply.status >= _REFUSED:
                self.faults.refused(f"{route.__name__}: {reply.reason} (status {reply.status})")
            return reply

        return noted

    def _perform(self, program: str) -> None:
        with self._lock:
            for events in _up_to_openings(read_pyautogui(program, self._screen.size, self._screen.pointer())):
                before = Opening(self._screen.windows())
                seen = self._look() if any(event.name == "type" for event in events) else Seen((), {}, {}, {}, "")
                act_in_turn(DesktopContext(self._screen, self._bus, seen, self._rest, self._wait), events, self._look)
                if events[-1].key == _OPENS:
                    self._opens(before)
            self._screen.sync()

    def screenshot(self, _: VmRequest) -> VmReply:
        with self._lock:
            return VmReply(self._screen.picture(), kind="image/png")

    def accessibility(self, _: VmRequest) -> VmReply:
        with self._lock:
            return json_reply({"AT": self._patiently(lambda: accessibility_xml(self._bus))})

    def terminal(self, _: VmRequest) -> VmReply:
        with self._lock:
            return json_reply({"output": terminal_text(self._patiently(lambda: accessibility_xml(self._bus))), "status": "success"})

    def platform(self, _: VmRequest) -> VmReply:
        return text_reply(platform.system())

    def cursor_position(self, _: VmRequest) -> VmReply:
        with self._lock:
            return json_reply(list(self._screen.pointer()))

    def execute(self, request: VmRequest) -> VmReply:
        return json_reply(*self.commands.execute(request.fields))

    def execute_with_verification(self, request: VmRequest) -> VmReply:
        return json_reply(*self.commands.execute_with_verification(request.fields, lambda: [each.title for each in self._windows()]))

    def run_python(self, request: VmRequest) -> VmReply:
        return json_reply(self.commands.run_python(str(request.fields.get("code", ""))))

    def run_bash_script(self, request: VmRequest) -> VmReply:
        return json_reply(*self.commands.run_bash(request.fields))

    def launch(self, request: VmRequest) -> VmReply:
        """Start a program. For an application, answer once its window is there: a click into it often follows."""
        before = Opening(self._windows())
        said, status = self.commands.launch(request.fields)
        if status == 200 and opens_window(request.fields.get("command") or ""):
            self._appears(before)
        return text_reply(said, status)

    def settle(self, seconds: float, starts: bool = False, least: float = 0.0, files: Sequence[str] = ()) -> dict[str, bool]:
        """Wait until nothing is reported or drawn, and files have not changed for a moment.

        seconds: most seconds to wait. starts: whether an application starts, so that there must be a window. least: fewest seconds to wait.
        files: paths of the machine. Return `settled`, False if it takes longer, and `windows`, whether there is a window.
        """
        begin = changed = time.monotonic()
        stamps = self.commands.stamps(files)
        while (left := begin + seconds - time.monotonic()) > 0:
            with self._lock, suppress(Silent):
                idle = self._rest(left) and not changes(self._bus, self._screen, min(left, _WAIT_SECONDS))
                if (found := self.commands.stamps(files)) != stamps:
                    changed, stamps = time.monotonic(), found
                now, ready = time.monotonic(), not starts or self._shows()
                if idle and ready and now - begin >= least and (not files or now - changed >= _WRITTEN_SECONDS):
                    break
        with self._lock:
            return {"settled": left > 0, "windows": self._shows()}

    def upload(self, request: VmRequest) -> VmReply:
        if "file_path" not in request.fields or "file_data" not in request.files:
            return json_reply({"error": "file_path and file_data are required"}, 400)
        path = self.commands.path(str(request.fields["file_path"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(request.files["file_data"])
        return text_reply(f"File Uploaded: {len(request.files['file_data'])} bytes")

    def download_file(self, request: VmRequest) -> VmReply:
        return text_reply(f"Failed to download {request.fields.get('url')}: this machine has no network: upload the file", 500)

    def open_file(self, request: VmRequest) -> VmReply:
        """Open a file in its application, or start an application by name, and wait for its window."""
        given = str(request.fields.get("path") or "")
        if not given:
            return text_reply("Path not supplied!", 400)
        path = self.commands.path(given)
        command, names = (["xdg-open", str(path)], [path.name, path.stem]) if path.exists() else ([given], [given])
        said, status = self.commands.launch({"command": command})
        if status != 200:
            return text_reply(f"Application/file not found: {given}: {said}", 404)
        wanted = [str(request.fields["window_name"])] if request.fields.get("window_name") else names
        end = time.monotonic() + float(request.fields.get("timeout_seconds") or _OPENED_SECONDS)
        while time.monotonic() < end:
            for window in self._windows():
                if any(name in window.title for name in wanted):
                    self._activate(window)
                    return text_reply("File opened and window activated successfully")
            time.sleep(_POLL)
        return text_reply(f"Failed to find window for {wanted}", 500)

    def activate_window(self, request: VmRequest) -> VmReply:
        return self._with_window(request, self._activate, "activated")

    def close_window(self, request: VmRequest) -> VmReply:
        return self._with_window(request, self._shut, "closed")

    def change_wallpaper(self, request: VmRequest) -> VmReply:
        path = self.commands.path(str(request.fields.get("path") or ""))
        if not path.is_file():
            return text_reply(f"File not found: {path}", 404)
        done = self.commands.execute({"command": [*_WALLPAPER, "set", *_PICTURE, f"file://{path}"]})[0]
        return (
            text_reply("Wallpaper changed successfully")
            if done.get("returncode") == 0
            else text_reply(f"Failed to change wallpaper: {done}", 500)
        )

    def wallpaper(self, _: VmRequest) -> VmReply:
        done = self.commands.execute({"command": [*_WALLPAPER, "get", *_PICTURE]})[0]
        path = Path(str(done.get("output", "")).strip().strip("'").removeprefix("file://"))
        return VmReply(path.read_bytes(), kind="image/png") if path.is_file() else text_reply("Wallpaper file not found", 404)

    def file(self, request: VmRequest) -> VmReply:
        if "file_path" not in request.fields:
            return json_reply({"error": "file_path is required"}, 400)
        path = self.commands.path(str(request.fields["file_path"]))
        return (
            VmReply(path.read_bytes(), kind="application/octet-stream") if path.is_file() else json_reply({"error": "File not found"}, 404)
        )

    def screen_size(self, _: VmRequest) -> VmReply:
        width, height = self._session.width, self._session.height
        return json_reply({"width": width, "height": height})

    def window_size(self, request: VmRequest) -> VmReply:
        wanted = str(request.fields.get("app_class_name", ""))
        with self._lock:
            found = next((each for each in self._screen.windows() if wanted in self._screen.class_of(each)), None)
        return json_reply({"width": found.box[2], "height": found.box[3]} if found else None)

    def desktop_path(self, _: VmRequest) -> VmReply:
        folder = self._session.home / "Desktop"
        return json_reply({"desktop_path": str(folder)}) if folder.is_dir() else json_reply({"error": "there is no Desktop folder"}, 404)

    def list_directory(self, request: VmRequest) -> VmReply:
        if "path" not in request.fields:
            return json_reply({"error": "Missing 'path' parameter"}, 400)
        folder = self.commands.path(str(request.fields["path"]))
        if not folder.is_dir():
            return json_reply({"error": "The provided path is not a directory"}, 400)
        return json_reply({"directory_tree": self.commands.tree(folder)})

    def start_recording(self, _: VmRequest) -> VmReply:
        """Record the screen by ffmpeg, if that is installed."""
        if self._recording and self._recording.poll() is None:
            return json_reply({"status": "error", "message": "Recording is already in progress."}, 400)
        size = f"{self._session.width}x{self._session.height}"
        command = ["ffmpeg", "-y", "-f", "x11grab", "-draw_mouse", "1", "-s", size, "-i", self._session.display, "-r", "30", self._video]
        try:
            self._recording = subprocess.Popen(command, env=self._session.env, stdin=subprocess.PIPE, stdout=2)
        except OSError as error:
            return json_reply({"status": "error", "message": f"ffmpeg cannot be started: {error.strerror}"}, 500)
        return json_reply({"status": "success", "message": "Started recording successfully."})

    def end_recording(self, _: VmRequest) -> VmReply:
        if not self._recording:
            return json_reply({"status": "error", "message": "No recording in progress to stop."}, 400)
        self._end_recording()
        path = Path(self._video)
        return VmReply(path.read_bytes(), kind="video/mp4") if path.is_file() else json_reply({"error": "there is no recording"}, 404)

    @property
    def _video(self) -> str:
        return str(self._session.base / "recording.mp4")

    def _end_recording(self) -> None:
        recording, self._recording = self._recording, None
        if recording:
            with suppress(subprocess.TimeoutExpired):
                recording.communicate(b"q", timeout=15)  # ends ffmpeg, which then leaves a complete file
            recording.kill()
            recording.wait()

    def _look(self) -> Seen:
        return self._tree.look(self._bus.applications())

    def _rest(self, seconds: float = _SILENT_SECONDS) -> bool:
        """Wait until nothing changes. Return False if it still does."""
        return self._patiently(lambda: settle(self._bus, self._screen, self._bus.applications(), _REST_SECONDS), seconds)

    @staticmethod
    def _patiently(do: Callable[[], T], seconds: float = _SILENT_SECONDS) -> T:
        """Ask applications again that do not answer: one that starts may be silent for longer than one that runs. Raises Silent."""
        end = time.monotonic() + seconds
        while True:
            try:
                return do()
            except Silent:
                if time.monotonic() > end:
                    raise

    def _wait(self) -> None:
        """Let a second pass, as the program requests."""
        end = time.monotonic() + _WAIT_SECONDS
        while (left := end - time.monotonic()) > 0:
            changes(self._bus, self._screen, left)

    def _appears(self, before: Opening) -> None:
        """Wait until there is a window that was not there before, and nothing changes."""
        process = self._session.applications[-1]
        end = time.monotonic() + _OPENED_SECONDS
        while time.monotonic() < end:
            if process.poll() is not None:  # it failed, or handed over to one that runs
                end = min(end, time.monotonic() + _ENDED_SECONDS)
            if before.seen(self._windows()):
                with self._lock:
                    self._rest()
                return
            time.sleep(_POLL)

    def _opens(self, before: Opening) -> None:
        """Wait until there is a new window, and nothing changes: the next typed text is for it."""
        end = time.monotonic() + _OPENED_SECONDS
        while time.monotonic() < end:
            if before.seen(self._screen.windows()):
                self._rest()
                return
            changes(self._bus, self._screen, _POLL)

    def _shows(self) -> bool:
        """Return whether an application shows a window."""
        return not all(self._screen.is_desktop(each) for each in self._screen.windows())

    def _windows(self) -> list[TopLevelWindow]:
        with self._lock:
            return self._screen.windows()

    def _activate(self, window: TopLevelWindow) -> None:
        with self._lock:
            self._screen.activate(window)

    def _shut(self, window: TopLevelWindow) -> None:
        with self._lock:
            self._screen.shut(window)

    def _with_window(self, request: VmRequest, do: Callable[[TopLevelWindow], None], done: str) -> VmReply:
        """Do something with the first window whose title, or class, is or contains the given name."""
        name, strict = str(request.fields.get("window_name") or ""), bool(request.fields.get("strict"))
        if not name:
            return text_reply("window_name required", 400)
        for window in self._windows():
            with self._lock:
                named = [".".join(self._screen.class_of(window))] if request.fields.get("by_class") else titles(window)
            if any(each == name if strict else name.lower() in each.lower() for each in named):
                do(window)
                return text_reply(f"Window {done} successfully")
        return text_reply(f"Window {name} not found", 404)


def _up_to_openings(events: Sequence[Action]) -> Iterator[tuple[Action, ...]]:
    """Yield the events in parts, each of which ends with one that opens a window, or with the last event."""
    begin = 0
    for at, event in enumerate(events, 1):
        if event.key == _OPENS or at == len(events):
            yield tuple(events[begin:at])
            begin = at


def json_reply(value: Any, status: int = 200) -> VmReply:
    """Return an answer in JSON."""
    return VmReply(json.dumps(value).encode(), status)


def text_reply(text: str, status: int = 200) -> VmReply:
    """Return an answer in words."""
    return VmReply(text.encode(), status, "text/html; charset=utf-8")
