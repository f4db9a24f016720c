"""A browser environment that can return to a page: without its scripts' state, and without the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from exact.environments.base import Capabilities, Snapshot
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.launch.launch import Browser
from exact.environments.browser.memo import Memo
from exact.environments.browser.page.clock import START
from exact.environments.browser.page.setup import PageSetup
from exact.environments.browser.shared import Common
from exact.environments.browser.snapshot.state import PageSnapshot, PageSnapshots, load, point, put, take
from exact.environments.sites.accounts import Leased
from exact.environments.sites.site import Site
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

if TYPE_CHECKING:
    from exact.config import BrowserConfig


class PageEnvironment(BrowserEnvironment):
    """One environment in a browser context of its own. Made by BrowserFactory."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        isolated: bool,
        simulation: bool,
        evaluator: Evaluator | None,
        common: Common | None = None,
        pages: PageSnapshots | None = None,
        login: Leased | None = None,
        site: Site | None = None,
    ) -> None:
        """`site`: it is brought to its start by each reset of this environment."""
        super().__init__(browser, setup, config, isolated=isolated, simulation=simulation, evaluator=evaluator, common=common, login=login)
        self._pages, self._site = pages or PageSnapshots(), site

    async def _anew(self, task: Task, now: int = START) -> None:
        if self._site:
            with self._patience.unlimited():
                await self._site.reset.call("reset", base=self._site.base)
        await super()._anew(task, now)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            fidelity="page" if self._config.page_snapshots else "replay",
            isolated=self._isolated,
            screenshots=self._config.screenshots,
            evaluates=self._evaluator is not None,
        )

    @property
    def observation(self) -> Observation:
        """The last one. Raises EnvironmentFailure before the first."""
        if self._seen is None:
            raise EnvironmentFailure("nothing was observed yet: reset first")
        return self._seen

    @property
    def obstacle(self) -> str:
        """What stands in the way of a snapshot now: it is taken only of a page on which nothing is under way. Empty if nothing does."""
        if not self._config.page_snapshots:
            return "pages are not kept: set browser.page_snapshots"
        if found := self._obstacle:
            return found
        if len(self._window.tabs) > 1:
            return "another tab is open"
        if not self._tab.traffic.is_idle:
            return "a request is under way"
        return ""

    async def snapshot(self) -> Snapshot:
        """The present page; see page_snapshot. Raises EnvironmentFailure where there is an obstacle, and then nothing is lost."""
        if self.obstacle:
            raise EnvironmentFailure(f"no snapshot now: {self.obstacle}")
        assert self._context is not None and self._task is not None and self._seen is not None
        tab, seen, now = self._tab, self._seen, self._clock.now if self._clock else 0
        async with self._environment("snapshot"):
            state = await take(tab, self._context)
            behind = (*self._behind, *await tab.history())
        memo = Memo(
            self._task, seen.fingerprint, self._observer.instruction, self._observer.ids.copy(), self._window.opened, (), now,
            self._downloads.kept, account=self._who,
        )  # fmt: skip
        id = self._pages.keep(PageSnapshot(memo, seen.volatile, seen.elements, behind, state))
        return Snapshot(id=id, fidelity="page", fingerprint=seen.fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Bring a page to a snapshot, whichever environment of these environments took it. Raises EnvironmentFailure if it is gone.

        Compare the fingerprints: what the snapshot does not hold may be missing. Elements have the ids they had, as far as the page is
        built alike.
        """
        kept = self._pages.get(snapshot.id)
        memo = kept.memo
        if self._login:
            self._login.change(memo.account)
        self._observer.mask_for(memo.task)
        self._terminated = True
        async with self._environment("restore"):
            begins = bool(self._setup.begin) and _same_page(kept.state.url, memo.task.start)
            await self._anew(memo.task, memo.now - (1 + begins) * self._config.clock)  # so long it runs until the page stands
            self._observer.instruction, self._behind = memo.instruction, kept.behind
            self._begin_episode(memo.task, memo.downloads)
            assert self._context is not None
            loaded = load(self._tab, self._context, kept.state)
            await self._dialogs.race(loaded)
            await self._dialogs.race(self._settle())
            if self._dialogs.is_asked:
                raise EnvironmentFailure("restore: the page opens a dialog as it loads: return by another route")
            if begins:
                await self._begin(memo.task)
                await self._settle()
            observation, terminated = await self._approach(kept)
        self._ward.take()
        if terminated:
            raise EnvironmentFailure(f"{memo.task.id} is over after the restore: return by another route")
        self._terminated = False
        return observation

    async def _approach(self, kept: PageSnapshot) -> tuple[Observation, bool]:
        """Fields as they were; and where the page then looks otherwise, as if a user had filled them. Elements get their ids back."""
        changed = await put(self._tab, kept.state)
        _, observation, terminated = await self._look(run=False)
        if observation.fingerprint != kept.memo.fingerprint and not terminated:
            await put(self._tab, kept.state, changed)
            await point(self._tab, kept.state)
            _, observation, terminated = await self._look(run=False)
        if terminated:
            return observation, terminated
        self._observer.ids = kept.memo.ids.moved(self._observer.ids, kept.elements, observation.elements)
        return (await self._look(run=False))[1:]


def _same_page(one: str, other: str) -> bool:
    return urldefrag(one).url == urldefrag(other).url
