"""Browser worlds of one kind, all in one browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.config import BrowserConfig
from exact.environments.browser.environment import BrowserEnvironment, Evaluator
from exact.environments.browser.launch import Browser
from exact.environments.browser.masks import Masks
from exact.environments.browser.setup import PageSetup


class BrowserWorlds:
    """Opens browser environments; any number at once, each in a context of its own."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        sealed: bool,
        evaluator: Evaluator | None = None,
    ) -> None:
        """`sealed`: whether a reset undoes all that a step may do. `evaluator` gives the verdict on the last page."""
        self._browser, self._setup, self._config = browser, setup, config
        self._sealed, self._evaluator = sealed, evaluator
        self._masks = Masks(config.masks)

    @asynccontextmanager
    async def open(self, *, speculative: bool) -> AsyncIterator[BrowserEnvironment]:
        """A fresh environment, closed on leaving."""
        environment = BrowserEnvironment(
            self._browser,
            self._setup,
            self._config,
            sealed=self._sealed,
            speculative=speculative,
            evaluator=self._evaluator,
            masks=self._masks,
        )
        try:
            yield environment
        finally:
            await environment.close()
