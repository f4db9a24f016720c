"""The user's own sites in task files of WebArena's form: the meaning of `storage_state` and `require_reset` there.

The published sites have log-in forms and resets that are known. Of any other site the storage state is a file that exists, such as one that
`exact login` saves, and a reset is the hook that the user names.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from exact.benchmarks.webarena.format import TaskFile
from exact.benchmarks.webarena.resets import Resets
from exact.benchmarks.webarena.states import StorageState, read
from exact.errors import UsageError

PUBLISHED = ("shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map", "homepage", "classifieds")
"""Sites of the published benchmarks."""


def own_state(file: TaskFile, folders: Sequence[Path | None], published: Sequence[str] = PUBLISHED) -> Path | None:
    """Return the storage state of a task that begins logged in at the user's own site; None for any other task.

    `folders`: searched for its path, or its name. `published`: sites that are not the user's own. Raises UsageError if the file is missing
    or holds no valid log-in.
    """
    if not file.storage_state or all(site in published for site in file.logged_in):
        return None
    given = Path(file.storage_state).expanduser()
    places = [place for folder in folders if folder is not None for place in (folder / given, folder / given.name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UsageError(f"`storage_state`: there is no {places[0] if places else given}: make it with `exact login SITE --out FILE`")
    state = read(found)
    if state is None or _is_over(state):
        raise UsageError(f"`storage_state`: {found} holds no log-in that is still valid: renew it with `exact login SITE --out {found}`")
    return found


def check_resets(file: TaskFile, resets: Resets, published: Sequence[str] = PUBLISHED) -> None:
    """Raise UsageError if a task wants a reset of a user's site that has no hook. `published`: as in `own_state`."""
    if not file.require_reset:
        return
    for site in file.sites:
        if site not in published and resets.hook(site) is None:
            raise UsageError(
                f"`require_reset`: nothing resets {site}: export {resets.variable(site)}, an address or a command, or write `false`"
            )


def _is_over(state: StorageState) -> bool:
    """Return whether a state holds neither storage nor a cookie that has not expired."""
    now = time.time()
    cookies = [cookie for cookie in state.get("cookies", ()) if not 0 <= cookie.get("expires", -1) < now]
    return not cookies and not any(each.get("localStorage") for each in state.get("origins", ()))
