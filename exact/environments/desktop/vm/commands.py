"""Commands and files of a machine of OSWorld, in the session of a desktop.

Programs by which `desktop_env` asks a machine for a path: one `print` of constants, home, variables and joined paths. None is run.
"""

from __future__ import annotations

import ast
import os.path
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from exact.environments.desktop.session import DesktopSession
from exact.errors import ActionError

_SECONDS = 120.0
"""Seconds that a command may take."""
_PROGRAM = "import pyautogui"
_NOT_FOUND = 127
"""Status of a shell that did not find a program."""
_POLL = 0.1
_FAULTS = 8
"""Maximum number of faults of each kind that are kept, because a user's script never reads them."""

Json = dict[str, Any]


class StepFaults:
    """Failures of the steps that a host asked for, until it reads them: `desktop_env` itself continues after such answers.

    In an evaluation an agent may have made a step impossible, such as to activate a window that the agent closed, so only a failure of the
    desktop counts there. In a set-up each refused step counts, and each program that was launched and has failed.
    """

    def __init__(self) -> None:
        self._broken, self._refused = deque[str](maxlen=_FAULTS), deque[str](maxlen=_FAULTS)
        self._launched: list[tuple[str, subprocess.Popen[bytes]]] = []

    def broke(self, reason: str) -> None:
        """Note a failure of the desktop itself."""
        self._broken.append(reason)

    def refused(self, reason: str) -> None:
        """Note a step that was answered by an error."""
        self._refused.append(reason)

    def launched(self, command: str, process: subprocess.Popen[bytes]) -> None:
        """Note a program that was launched. It has failed if it ends by a signal or with an error."""
        self._launched.append((command, process))

    def take(self, *, setup: bool) -> list[str]:
        """Return the failures since the last call, at most a few of each kind. `setup`: see the class."""
        found = [*self._broken, *((*self._refused, *self._ended()) if setup else ())]
        self._broken.clear()
        self._refused.clear()
        return found

    def _ended(self) -> Iterator[str]:
        for command, process in self._launched:
            status = process.poll() or 0
            if status < 0:
                yield f"launch: {command} died of {signal.Signals(-status).name}"
            elif status:
                yield f"launch: {command} ended with status {status}"


class Commands:
    """Runs commands in a session. Programs of pyautogui are carried out as input events, and are not run."""

    def __init__(self, session: DesktopSession, perform: Callable[[str], None], faults: StepFaults) -> None:
        """`perform`: carries out a program of pyautogui. Raises ActionError if it holds anything else."""
        self._session, self._perform, self._faults = session, perform, faults

    def execute(self, given: Json) -> tuple[Json, int]:
        """Run a command to its end. Return the answer and its HTTP status."""
        command, shell = self._command(given)
        try:
            if (program := _program(command, shell)) is not None:
                if (told := answer(program, self._session.env)) is not None:
                    return _answer(told), 200
                self._perform(program)
                return _answer(""), 200
            done = self._run(command, shell, float(given.get("timeout") or _SECONDS), given.get("working_dir"))
            if done["returncode"] == _NOT_FOUND:
                self._faults.refused(f"execute: {command if isinstance(command, str) else shlex.join(command)}: {done['error'].strip()}")
            return done, 200
        except ActionError as error:
            return {"status": "error", "message": str(error), "output": "", "error": str(error), "returncode": 1}, 500
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return {"status": "error", "message": str(error)}, 500

    def execute_with_verification(self, given: Json, titles: Callable[[], Sequence[str]]) -> tuple[Json, int]:
        """Run a command, then wait until a window or another command shows that it worked. `titles`: the present windows."""
        done, status = self.execute(given)
        wanted = given.get("verification") or {}
        if status != 200 or not wanted:
            return done, status
        began, limit = time.monotonic(), float(given.get("max_wait_time", 10))
        while True:
            if self._holds(wanted, titles):
                return {**done, "verification": "passed", "wait_time": time.monotonic() - began}, 200
            if time.monotonic() - began > limit:
                return {**done, "status": "verification_failed", "verification": "failed", "wait_time": limit}, 500
            time.sleep(_POLL)

    def launch(self, given: Json) -> tuple[str, int]:
        """Start an application and return at once."""
        command, _ = self._command(given)
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        name = command if isinstance(command, str) else shlex.join(command)
        try:
            self._faults.launched(name, self._session.spawn(words))
        except OSError as error:
            return f"{words[0]} cannot be started: {error.strerror}", 500
        return f"{name} launched successfully", 200

    def run_python(self, code: str) -> Json:
        """Run Python code in a process of the session."""
        return self._run(["python3", "-c", code], False, _SECONDS, None)

    def run_bash(self, given: Json) -> tuple[Json, int]:
        """Run a script of bash."""
        try:
            done = self._run(["bash", "-c", str(given.get("script", ""))], False, float(given.get("timeout", 30)), given.get("working_dir"))
        except (OSError, subprocess.SubprocessError) as error:
            return {"status": "error", "output": "", "error": str(error), "returncode": -1}, 500
        return {**done, "status": "success" if done["returncode"] == 0 else "error"}, 200

    def path(self, text: str) -> Path:
        """Return a path of the machine: `~` and variables are those of the session."""
        text = Template(text).safe_substitute(self._session.env)
        return Path(str(self._session.home) + text[1:]) if text == "~" or text.startswith("~/") else Path(text)

    def stamps(self, paths: Sequence[str]) -> list[tuple[int, int] | None]:
        """Return the time of the last change and the size of each path; None for one that cannot be read."""
        return [_stamp(self.path(each)) for each in paths]

    def tree(self, folder: Path) -> Json:
        """Return the names below a folder."""
        try:
            inside = sorted(folder.iterdir())
        except OSError as error:
            return {"error": str(error)}
        children = [self.tree(each) if each.is_dir() else {"type": "file", "name": each.name} for each in inside]
        return {"type": "directory", "name": folder.name, "children": children}

    def _holds(self, wanted: Mapping[str, str], titles: Callable[[], Sequence[str]]) -> bool:
        if (title := wanted.get("window_exists")) and not any(title.lower() in each.lower() for each in titles()):
            return False
        try:
            return "command_success" not in wanted or self._run(wanted["command_success"], True, 5.0, None)["returncode"] == 0
        except (OSError, subprocess.SubprocessError):
            return False

    def _command(self, given: Json) -> tuple[str | list[str], bool]:
        shell = bool(given.get("shell", False))
        command = given.get("command", "" if shell else [])
        if isinstance(command, str):
            return (command, True) if shell else ([self._home(word) for word in shlex.split(command)], False)
        words = [self._home(str(word)) for word in command]
        return (words[0] if len(words) == 1 else shlex.join(words), True) if shell and words else (words, False)

    def _home(self, word: str) -> str:
        return f"{self._session.home}{word[1:]}" if word.startswith("~/") else word

    def _run(self, command: str | Sequence[str], shell: bool, seconds: float, folder: str | None) -> Json:
        done = subprocess.run(
            command, shell=shell, capture_output=True, text=True, errors="replace", timeout=seconds, env=self._session.env,
            cwd=self.path(folder) if folder else self._session.home, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return {"status": "success", "output": done.stdout, "error": done.stderr, "returncode": done.returncode}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _program(command: str | Sequence[str], shell: bool) -> str | None:
    """Return the program of pyautogui that a command is; None for any other."""
    words = command if not isinstance(command, str) else []
    if shell or len(words) != 3 or Path(words[0]).name not in ("python", "python3") or words[1] != "-c":
        return None
    return words[2] if words[2].lstrip().startswith(_PROGRAM) else None


def _answer(output: str) -> Json:
    return {"status": "success", "output": output, "error": "", "returncode": 0}


_SYSTEM = "Linux"


def answer(program: str, variables: Mapping[str, str]) -> str | None:
    r"""Return the output of a program; None if it is not such a question. `variables`: environment of the session, HOME among them.

    >>> answer("import os; print(os.path.join(os.getenv('HOME'), '.config'))", {"HOME": "/home/user"})
    '/home/user/.config\\n'
    """
    try:
        statements = ast.parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    questions = [each for each in statements if not isinstance(each, (ast.Import, ast.Assign))]
    match questions:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[said], keywords=[]))]:
            try:
                return f"{_value(said, variables)}\n"
            except ActionError:
                return None
        case _:
            return None


def _value(given: ast.expr, variables: Mapping[str, str]) -> str:
    match given:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=func, args=args, keywords=[]):
            values = [_value(each, variables) for each in args]
        case _:
            raise ActionError("no constant and no call")
    match ast.unparse(func), values:
        case "os.path.expanduser", [path]:
            return variables["HOME"] + path[1:] if path == "~" or path.startswith("~/") else path
        case "os.getenv" | "os.environ.get", [name] if name in variables:
            return variables[name]
        case "os.path.join", [first, *rest]:
            return os.path.join(first, *rest)  # noqa: PTH118 - the requested path, character by character
        case "platform.system", []:
            return _SYSTEM
        case _:
            raise ActionError("another function")
