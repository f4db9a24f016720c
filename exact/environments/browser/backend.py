"""The contract between an episode and the place in which its browser runs: on this machine, or in a sandbox that forks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from exact.config import BrowserConfig
from exact.environments.base import Fidelity, Snapshot
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.snapshot.state import Memo
from exact.observation import Observation

if TYPE_CHECKING:
    from exact.environments.browser.tabs import Tabs


class Backend(Protocol):
    """The browser of one environment, and its snapshots. It knows no episode: an episode calls it."""

    @property
    def browser(self) -> Browser:
        """The present browser. `renew` and `restore` may replace it."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id of the sandbox that the browser has to itself; None if environments share the browser."""
        ...

    @property
    def isolated(self) -> bool:
        """Guarantee that a reset undoes everything that a step may do."""
        ...

    @property
    def undone_origins(self) -> tuple[str, ...] | None:
        """Origins at which an isolated environment's writes are undone. None: all of them."""
        ...

    @property
    def keeps_context(self) -> bool:
        """Permission for a reset to empty the browser context instead of opening another one."""
        ...

    def is_inside(self, url: str) -> bool:
        """Return whether an address is answered by a server whose changes are undone."""
        ...

    def fidelity(self, config: BrowserConfig) -> Fidelity:
        """Return the state that a restore recovers, under the configuration of the present task."""
        ...

    def obstacle(self, tabs: Tabs) -> str:
        """Return the reason why no snapshot can be taken of the tabs now; empty if there is none."""
        ...

    def call(self, what: str) -> AbstractAsyncContextManager[None]:
        """Return a context in which one call of the environment runs. `what` names the call in errors.

        Raises EnvironmentFailure on entering if the browser cannot be used, and may replace one that passes through it.
        """
        ...

    async def renew(self) -> None:
        """Provide a browser in which a new context can be opened, with servers at their start. Raises EnvironmentFailure."""
        ...

    async def take(self, tabs: Tabs, seen: Observation, memo: Memo) -> Snapshot:
        """Take a snapshot of the tabs, which were observed as `seen`, while nothing is under way in them. Raises EnvironmentFailure."""
        ...

    def memo(self, snapshot: Snapshot) -> Memo:
        """Return the facts about a snapshot that any environment of this kind took. Raises EnvironmentFailure if it is gone."""
        ...

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace the browser, whose context was left, by one in a snapshot's state, outside of `call`. Raises EnvironmentFailure."""
        ...

    async def resume(self, memo: Memo) -> None:
        """Bring servers outside into a snapshot's state, within `call`. Raises EnvironmentFailure."""
        ...

    async def close(self) -> None:
        """Release the browser, whose context was left."""
        ...
