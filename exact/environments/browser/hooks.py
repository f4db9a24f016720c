"""The hooks by which a kind of environment takes part in the episodes of `BrowserEnvironment`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext

from exact.environments.browser.network.gate import Gate


class EpisodeHooks:
    """Hooks that are called while an episode is prepared and played. A hook that is not overridden does nothing.

    A kind of environment whose snapshots hold more than a page overrides those it needs: `fork.environment` exchanges the sandbox for a
    fresh one, `snapshot.environment` resets the site.
    """

    @property
    def keeps_context(self) -> bool:
        """Permission for a reset to empty the browser context instead of opening another one."""
        return True

    @property
    def undone_origins(self) -> tuple[str, ...] | None:
        """Origins at which an isolated environment's writes are undone. None: all of them."""
        return None

    def is_inside(self, url: str) -> bool:
        """Return whether requests to an address are answered in the sandbox."""
        return False

    async def before_episode(self) -> None:
        """Run before the browser context of an episode is emptied or replaced. May raise EnvironmentFailure."""

    async def before_context(self) -> None:
        """Run before a new browser context is opened. May replace the browser and raise EnvironmentFailure."""

    async def after_context(self) -> None:
        """Run when a new browser context has its first page, before a page of the task is opened. May raise EnvironmentFailure."""

    def policy_changed(self, policy: Gate) -> None:
        """Run with the request policy of an episode, before the first request that it decides."""

    def around_call(self, what: str) -> AbstractAsyncContextManager[None]:
        """Return a context in which one call of the environment runs. `what` names the call in errors.

        Raises EnvironmentFailure on entering if the environment cannot be used, and may replace one that passes through it.
        """
        return nullcontext()
