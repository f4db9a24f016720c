"""Log-ins: once for each site and environment, by the site's own form or by a storage state file, and again when they have expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from exact.benchmarks.webarena.states import StorageState, read, write
from exact.benchmarks.webarena.variables import Addresses
from exact.environments.browser.page.settle import load, loaded
from exact.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


class Form(NamedTuple):
    """Log-in form of a site. Selectors are Playwright's."""

    path: str
    """Path of the form, below the site's address."""
    name: str
    word: str
    submit: str
    proof: str
    """Path of a page that only logged-in users see: others are redirected, or do not find `sign` on it."""
    sign: str = ""
    """Text on that page."""
    account: tuple[str, str] = ("", "")
    """Account of the site's public data set."""


FORMS: Mapping[str, Form] = {
    "shopping": Form("/customer/account/login/", "#email", "#pass", "#send2", "/wishlist/", "", ("emma.lopez@gmail.com", "Password.123")),
    "shopping_admin": Form("", "#username", "#login", ".action-login", "/dashboard", "Dashboard", ("admin", "admin1234")),
    "reddit": Form(
        "/login", "#login-username", "#login-password", "button:has-text('Log in')", "/user/{name}/account", "Delete",
        ("MarvelsGrantMan136", "test1234"),
    ),
    "gitlab": Form(
        "/users/sign_in", "[name='user[login]']", "[name='user[password]']", "button[type=submit]", "/-/profile", "",
        ("byteblaze", "hello1234"),
    ),
    "classifieds": Form(
        "/index.php?page=login", "#email", "#password", "button:has-text('Log in')", "/index.php?page=user&action=items", "My listings",
        ("blake.sullivan@gmail.com", "Password.123"),
    ),
}  # fmt: skip
"""Forms of the benchmarks' sites, with the accounts of their public data."""


class Sessions:
    """Log-ins of one kind of environments."""

    def __init__(
        self, addresses: Addresses, environ: Mapping[str, str], *, forms: Mapping[str, Form] = FORMS, folder: Path | None = None,
        lasting: bool = True,
    ) -> None:  # fmt: skip
        """Configure the log-ins.

        environ: `<SITE>_USERNAME` and `<SITE>_PASSWORD`, which take precedence over the form's account. folder: the place of the storage
        state files. lasting: whether a log-in of one environment holds in others; not if each has a separate server.
        """
        self._addresses, self._environ, self._forms, self._folder, self._lasting = addresses, environ, forms, folder, lasting
        self._states: dict[str, StorageState] = {}

    async def enter(self, context: BrowserContext, page: Page, file: str, sites: Sequence[str]) -> None:
        """Log in at some sites in a context. `file`: name of the storage state file, which may be missing.

        Each log-in is verified every time: the environment before may have logged out, or a reset may have ended all sessions. Raises
        EnvironmentFailure if a site does not answer or refuses the account, and UsageError.
        """
        known = [site for site in sites if site in self._forms]
        begun = self._lasting and await self._go_on(context, page, file, known)
        for site in known:
            if not (begun and await self._inside(page, site)):
                await self._log_in(page, site)
        if known and self._lasting:
            state = cast("StorageState", await context.storage_state())
            for site in known:
                self._states.pop(site, None)  # the newest is the last
                self._states[site] = state
            if path := self._path(file):
                write(path, state)

    async def restore(self, context: BrowserContext, page: Page, path: Path) -> None:
        """Restore a storage state file of a site whose log-in form is unknown. Raises EnvironmentFailure, UsageError."""
        await self._put(context, page, read(path) or {}, str(path))

    async def _go_on(self, context: BrowserContext, page: Page, file: str, sites: Sequence[str]) -> bool:
        """Restore the known sessions of the sites; return whether there were any.

        The newest is restored last: each may hold older sessions of the others.
        """
        path, states = self._path(file), list[StorageState]()
        if path and any(site not in self._states for site in sites) and (kept := read(path)):
            states.append(kept)
        for site, state in self._states.items():
            if site in sites and state not in states:
                states.append(state)
        for state in states:
            await self._put(context, page, state, str(path or "of before"))
        return bool(states)

    def account(self, site: str) -> tuple[str, str]:
        """Return name and password. Raises UsageError if there are none."""
        form, site = self._forms[site], site.upper()
        name, word = self._environ.get(f"{site}_USERNAME", form.account[0]), self._environ.get(f"{site}_PASSWORD", form.account[1])
        if not (name and word):
            raise UsageError(f"the site {site.lower()} wants a log-in: export {site}_USERNAME and {site}_PASSWORD")
        return name, word

    async def _log_in(self, page: Page, site: str) -> None:
        from playwright.async_api import Error

        form, (name, word), url = self._forms[site], self.account(site), self._addresses.of(site)
        await self._open(page, url + form.path, site)
        try:
            await page.locator(form.name).first.fill(name)
            await page.locator(form.word).first.fill(word)
            async with page.expect_navigation(wait_until="commit"):
                await page.locator(form.submit).first.click(no_wait_after=True)
            await loaded(page)
        except Error as error:
            why = str(error).strip().splitlines()[0]
            raise EnvironmentFailure(f"the log-in form of {site} at {page.url} is not as expected: {why}") from error
        if not await self._inside(page, site):
            raise EnvironmentFailure(
                f"{site} at {url} does not let {name} in: check {site.upper()}_USERNAME and {site.upper()}_PASSWORD, or reset the site"
            )

    async def _inside(self, page: Page, site: str) -> bool:
        form = self._forms[site]
        url = self._addresses.of(site) + form.proof.replace("{name}", self.account(site)[0])
        await self._open(page, url, site)
        if form.sign:
            return form.sign in await page.content()
        return urlsplit(page.url).path.rstrip("/") == urlsplit(url).path.rstrip("/")

    async def _open(self, page: Page, url: str, site: str) -> None:
        from playwright.async_api import Error

        try:
            await load(page, url)
        except Error as error:
            why, variable = str(error).strip().splitlines()[0].removeprefix("Page.goto: "), self._addresses.variable(site)
            raise EnvironmentFailure(f"the site {site} does not answer at {url} ({why}): is {variable} right, and the site up?") from error

    async def _put(self, context: BrowserContext, page: Page, state: StorageState, which: str) -> None:
        """Set cookies and the storage of origins. `which`: for the message. Raises EnvironmentFailure."""
        from playwright.async_api import Error

        of = "it"
        try:
            await context.add_cookies(state.get("cookies", []))  # type: ignore[arg-type]
            for kept in state.get("origins", ()):
                if items := [(each["name"], each["value"]) for each in kept.get("localStorage", ())]:
                    of = kept["origin"]
                    await load(page, of)
                    await page.evaluate("items => items.forEach(([name, value]) => localStorage.setItem(name, value))", items)
        except Error as error:
            why = str(error).strip().splitlines()[0]
            raise EnvironmentFailure(
                f"the storage state {which} does not come back: {of} is refused ({why}): delete it, and it is made again"
            ) from error

    def _path(self, file: str) -> Path | None:
        return self._folder / Path(file).name if self._folder and file else None
