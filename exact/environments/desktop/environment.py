"""A desktop as a guest serves it: plain data in and out, without its own snapshots (see exact/environments/process/guest.py)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.action import Action
from exact.environments.desktop.accessibility import ANSWER_SECONDS, Accessibility, Silent
from exact.environments.desktop.account import GTK, ICONS
from exact.environments.desktop.act import act_in_turn
from exact.environments.desktop.grammar import SPACES, Space
from exact.environments.desktop.pyautogui import read_pyautogui
from exact.environments.desktop.reach import DesktopContext
from exact.environments.desktop.roles import SHOWING
from exact.environments.desktop.screen import Screen, digest, png
from exact.environments.desktop.session import STARTUP_LOG, STARTUP_SECONDS, DesktopSession
from exact.environments.desktop.settle import LATE, changes, reports, settle
from exact.environments.desktop.setup import Setup, declared, failure
from exact.environments.desktop.tree import DesktopTree, Seen
from exact.environments.desktop.walk import completed
from exact.errors import ActionError, EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from exact.environments.desktop.vm.document import Streams
    from exact.environments.desktop.vm.server import VmServer

_WAIT = 1.0
"""Maximum seconds of the action `wait`."""
_RELEASE = 0.6
"""Seconds within which a button that a key has pressed is released: GTK shows it as pressed for 0.25 s."""
_SIGN = 0.1
_PASTE_SECONDS = 0.5
"""Seconds that the application whose text was copied has to report it."""
_LARGE_SECONDS = 45.0
"""Seconds after which an application of an OSWorld machine counts as hung: large ones are busy for longer than those of our tasks."""
CALL_SECONDS = 90.0
"""Seconds after which a call counts as hung: large applications start slowly."""
_WRITTEN = 1_700_000_000
"""Time at which the files and folders of a home folder were last changed: file managers show it."""
_MEMORY = re.compile(r" - Memory usage - [\d.,]+ [KMGT]?B")
"""Suffixes that Chromium adds to a tab's name."""


class Desktop:
    """Desktop that starts when it is made. Its environment variables are this process's from then on."""

    def __init__(
        self,
        width: int = 1280,
        height: int = 800,
        screenshots: bool = True,
        actions: Space = "elements",
        settle_seconds: float = 3.0,
        vm_port: int | None = None,
        user: bool = False,
    ) -> None:
        """Start a desktop.

        `vm_port`: port of its loopback at which it serves OSWorld's interface of a machine; None for none. `user`: whether it runs in a
        sandbox as the user of `account`.
        """
        self._screenshots, self._settle_seconds = screenshots, settle_seconds
        self._vm_port, self._user = vm_port, user
        self._vm: VmServer | None = None
        self._streams: Streams | None = None
        self._space = SPACES[actions]
        self.actions = list(self._space.verbs.values())
        self.capabilities = {
            "fidelity": "replay", "isolated": vm_port is None, "deterministic": True, "screenshots": screenshots, "evaluates": True,
            "call_seconds": CALL_SECONDS,
        }  # fmt: skip
        self._size = width, height
        self._setup, self._over, self._rested = Setup(), True, True
        self._seen = Seen((), {}, {}, {}, "")
        self._kept: dict[str, Any] | None = None
        """Last observation; None if it may no longer hold."""
        self._kept_at: tuple[int, bytes] = 0, b""
        """Number of reports and digest of the screen, as they were then."""
        self._begin()

    def _begin(self) -> None:
        """Start a fresh session."""
        self._session = DesktopSession(*self._size, user=self._user)
        try:
            self._session.start()
            os.environ.update({name: self._session.env[name] for name in ("DISPLAY", "XAUTHORITY")})
            self._screen = Screen()
            self._manage()
            patience = ANSWER_SECONDS if self._vm_port is None else _LARGE_SECONDS
            self._bus = Accessibility(self._session.env["DBUS_SESSION_BUS_ADDRESS"], patience)
        except BaseException:
            self._session.stop()
            raise
        self._tree = DesktopTree(self._bus, self._mask, self._screen.popup)
        if self._vm_port is not None:
            from exact.environments.desktop.vm.document import Streams
            from exact.environments.desktop.vm.server import serve

            self._vm, self._streams = serve(self._session, self._vm_port), Streams()

    def _manage(self) -> None:
        """Wait until there is a window manager."""
        end = time.monotonic() + STARTUP_SECONDS
        while not self._screen.manager(_SIGN):
            self._session.check()
            if time.monotonic() > end:
                raise EnvironmentFailure(f"openbox did not start within {STARTUP_SECONDS:g} s: {STARTUP_LOG}")

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        """Start the task's applications in a fresh home folder. Raises UsageError and EnvironmentFailure."""
        self._over, self._setup, self._kept = True, declared(task["private"]), None
        if self._setup.sandboxed and not self._user:
            raise UsageError("this task could change this machine: it runs in a sandbox only: see `browser.sandbox`")
        if self._session.broken:
            self._stop()
            self._begin()
        self._screen.let_go()
        self._session.renew()
        self._tree.forget()
        for path, content in self._setup.files.items():
            target = self._session.home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        for each in self._session.home.rglob("*"):
            os.utime(each, (_WRITTEN, _WRITTEN), follow_symlinks=False)
        width, height = self._screen.size
        self._screen.move(width - 1, height - 1)
        for command in (*self._icons(), *self._setup.applications):
            self._start(command)
        self._over = False
        return self.observe(acted=True)

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        """Execute one action and wait until the desktop is idle. Raises ActionError and EnvironmentFailure."""
        if self._over:
            raise ActionError("the episode is over: reset first")
        self._kept = None
        chosen = self._space.action(action["name"], *action["args"])
        events = self._events(chosen)
        if any(event.name in ("stop", "fail") for event in events):
            self._over = True
            return {"observation": None, "terminated": True}
        self._session.check()
        try:
            wait = self._pass_second if chosen.name == "python" else self._wait
            act_in_turn(DesktopContext(self._screen, self._bus, self._seen, self._rest, wait), events, self._look)
            observation = self.observe(acted=True)
        except Silent as silent:
            raise self._hung(silent, chosen) from None
        info = {} if self._rested else {"unsettled": f"still changing after {self._settle_seconds:g} s"}
        return {"observation": observation, "info": info}

    def _events(self, action: Action) -> tuple[Action, ...]:
        """Return the input events of an action: those of a program, else itself. Raises ActionError."""
        return read_pyautogui(str(action.args[0]), self._size, self._screen.pointer()) if action.name == "python" else (action,)

    def observe(self, acted: bool = False) -> dict[str, Any]:
        """Return the desktop's observation once it is idle.

        `acted`: whether there was an input since the last one. Without one, if nothing was reported and the screen shows the same, the last
        observation holds, as after a restore; large trees are then not read again.
        """
        self._session.check()
        self._rested = self._rest(acted)
        if not acted and self._kept and self._kept_at == (self._bus.events, digest(self._screen.shot())):
            return self._kept
        self._look_released(acted)
        shot = self._screen.shot()
        active = [each for each in self._seen.elements if "active" in each.states]
        self._kept_at = self._bus.events, digest(shot)
        self._kept = {
            "text": self._seen.text,
            "fingerprint": self._seen.fingerprint,
            "title": active[0].name if active else "",
            "elements": [msgspec.to_builtins(each) for each in self._seen.elements],
            "screenshot": png(shot) if self._screenshots else None,
        }
        return self._kept

    def _look_released(self, acted: bool) -> None:
        """Read the state, repeatedly until a button that an input has pressed is released."""
        before, end = self._pressed(), time.monotonic() + _RELEASE
        while True:
            heard, self._seen = self._bus.events, self._look()
            left = end - time.monotonic()
            if not acted or left < 0 or not self._pressed() - before or (self._bus.events == heard and not reports(self._bus, left)):
                return
            self._rested = self._rest(acted)

    def _pressed(self) -> set[str]:
        return {each.id for each in self._seen.elements if "pressed" in each.states}

    def evaluate(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return whether all conditions hold once the desktop is idle. Changes nothing."""
        failed = self._gave_up(outcome.get("actions") or ())
        if failed or self._setup.infeasible:
            success = failed and self._setup.infeasible
            reason = "the task cannot be done" if self._setup.infeasible else "the task can be done"
            return {"value": float(success), "success": success, "raw": float(success), "reason": reason}
        self._rest()
        elements = self._look().elements
        reasons = [failure(check, self._session.home, elements, outcome.get("answer")) for check in self._setup.checks]
        wrong = [reason for reason in reasons if reason]
        success = bool(reasons) and not wrong
        reason = "; ".join(wrong) or ("all conditions hold" if reasons else "the task has no conditions")
        return {"value": float(success), "success": success, "raw": float(len(reasons) - len(wrong)), "reason": reason}

    def _gave_up(self, actions: Sequence[str]) -> bool:
        """Return whether the last action declares that the task cannot be done."""
        return bool(actions) and any(event.name == "fail" for event in self._events(self._space.parse(actions[-1])))

    def command(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Serve a host that sets a task up and judges it. Raises UsageError.

        `streams`: see `vm.document.Streams`; `settle`: `vm.machine.Machine`; `faults`: `vm.commands.StepFaults`.
        """
        self._kept = None
        if self._vm is None or self._streams is None:
            raise UsageError("this desktop serves no machine of OSWorld: give vm_port")
        if name == "streams":
            return self._streams.exchange(**arguments)
        if name == "settle":
            return self._vm.machine.settle(**arguments)
        if name == "faults":
            return {"faults": self._vm.machine.faults.take(**arguments)}
        raise UsageError(f"a desktop has no command {name}")

    def close(self) -> None:
        self._over = True
        self._stop()

    def _stop(self) -> None:
        streams, self._streams = self._streams, None
        if streams:
            streams.close()
        vm, self._vm = self._vm, None
        if vm:
            vm.close()
        self._session.stop()

    def _icons(self) -> list[tuple[str, ...]]:
        """Return the command that shows the icons of an OSWorld machine's desktop, if Debian's Python has GTK."""
        return [ICONS] if self._vm is not None and self._user and Path(GTK).is_dir() else []

    def _start(self, command: tuple[str, ...]) -> None:
        """Start one application and wait for its window. One that is busy until then may take that long to answer."""
        process, end = self._session.launch(command), time.monotonic() + self._setup.seconds
        windows, names = {window.id for window in self._screen.windows()}, set(self._bus.applications())
        while True:
            changes(self._bus, self._screen, _SIGN)
            if process.poll() is not None and process.returncode:
                raise EnvironmentFailure(f"{command[0]} did not start: it ended with status {process.returncode}: see the guest's log")
            opened = [window for window in self._screen.windows() if window.id not in windows and not self._screen.is_splash(window)]
            try:
                if opened and self._reports({window.title for window in opened}, names):
                    self._rest()
                    return
            except Silent:
                if time.monotonic() > end:
                    raise
            if time.monotonic() > end:
                what = "told nothing to assistive technology" if opened else "showed no window"
                raise EnvironmentFailure(f"{command[0]} did not start: it {what} within {self._setup.seconds:g} s")

    def _reports(self, titles: set[str], names: set[str]) -> bool:
        """Return whether an application reports a visible window of one of these titles. `names`: those that ran before, on the bus."""
        found = completed(self._bus, self._bus.nodes([name for name in self._bus.applications() if name not in names]))
        return any(node.name in titles and node.states & SHOWING for nodes in found.values() for node in nodes)

    def _look(self) -> Seen:
        return self._tree.look(self._bus.applications())._replace(copied=self._mask(self._screen.copied(_PASTE_SECONDS)))

    def _rest(self, acted: bool = False) -> bool:
        applications = self._bus.applications()
        late = max((LATE.get(each, 0.0) for each in self._bus.names(applications)), default=0.0) if acted else 0.0
        return settle(self._bus, self._screen, applications, self._settle_seconds, late)

    def _wait(self) -> None:
        changes(self._bus, self._screen, _WAIT)

    def _pass_second(self) -> None:
        """Let a second pass for a program that sleeps: the actions it started may change the screen several times."""
        end = time.monotonic() + _WAIT
        while (left := end - time.monotonic()) > 0:
            changes(self._bus, self._screen, left)

    def _hung(self, silent: Silent, action: Action) -> EnvironmentFailure:
        seen = self._seen
        titles = dict.fromkeys(seen.windows[id] for id, name in seen.owners.items() if name in silent.names)
        who = ", ".join(map(self._mask, titles)) or "an application"
        return EnvironmentFailure(f"{who} does not answer after {action}: it hangs; reset, or restore a snapshot")

    def _mask(self, text: str) -> str:
        """Replace the home folder's name, and omit the memory that a tab uses: both differ between otherwise equal desktops."""
        return _MEMORY.sub("", text.replace(str(self._session.home), "~"))
