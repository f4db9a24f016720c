"""Uploads of the files that a task declares."""

from __future__ import annotations

import asyncio
import base64
import difflib
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from exact.environments.browser.act.action_context import ActionContext, PartialAction
from exact.environments.browser.act.aiming import ask_element, locate
from exact.environments.browser.page.cdp import script
from exact.errors import ActionError, UsageError
from exact.task import Task

_CHOOSER_SECONDS = 1.0
"""Seconds within which a page asks for files after a click."""

Json = dict[str, Any]


def declared_files(task: Task) -> dict[str, Path]:
    """Return the task's files by name. Raises UsageError if a file is missing, or two have the same name."""
    found: dict[str, Path] = {}
    for each in task.files:
        path = Path(each)
        if not path.is_file():
            raise UsageError(f"task {task.id} declares the file {each}, which is not there")
        if path.name in found:
            raise UsageError(f"task {task.id} declares two files {path.name}: rename one")
        found[path.name] = path
    return found


async def upload_files(context: ActionContext, id: str, names: str, click: Callable[[], Awaitable[None]]) -> None:
    """Give files to a file field, or to the file chooser that a click on the element opens.

    `names`: names of files, separated by commas. `click` clicks the element. Raises ActionError before the element is clicked, and
    PartialAction after.
    """
    tab = context.tab
    locate(context, id)  # an unknown element is reported before an unknown file
    chosen = [await asyncio.to_thread(_read_upload, context.files[name], name) for name in _file_names(names, context.files)]
    if (await ask_element(context, id, script("act/upload"), chosen)).get("field"):
        return
    opened: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
    tab.file_chooser = opened
    try:
        await click()
        async with asyncio.timeout(_CHOOSER_SECONDS):
            event = await opened
    except TimeoutError as error:
        raise PartialAction(f"[{id}] is no file field, and a click on it asks for no file") from error
    finally:
        tab.file_chooser = None
    if (field := event.get("backendNodeId")) is None:  # showOpenFilePicker, showSaveFilePicker, showDirectoryPicker
        raise PartialAction(f"[{id}] opens a file picker of the browser itself, which takes files from a person only: it was cancelled")
    answer = await tab.call(field, event["frameId"], script("act/upload"), chosen)
    if "refused" in answer:
        raise PartialAction(f"[{id}] {answer['refused']}")


def _file_names(names: str, files: Mapping[str, Path]) -> list[str]:
    if not files:
        raise ActionError("this task has no files to upload")
    wanted = [names] if names in files else [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in files:
            near = difflib.get_close_matches(name, files, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(map(repr, files))}"
            raise ActionError(f"the task has no file {name!r}: {hint}")
    return wanted


def _read_upload(path: Path, name: str) -> Json:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ActionError(f"the file {name!r} cannot be read: {error.strerror}") from error
    return {"name": name, "type": mimetypes.guess_type(name)[0] or "", "data": base64.b64encode(data).decode()}
