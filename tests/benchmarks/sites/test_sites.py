"""Reference and wrong action sequences score as they should, in process and inside gVisor; what a branch writes, no sibling sees."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import msgspec
import pytest

from exact.benchmarks.sites.suite import SiteSuite, interpreter, seed, trac, wagtail
from exact.config import BrowserConfig
from exact.environments.base import Fork
from exact.environments.browser.fork.factory import ForkingFactory
from exact.errors import EnvironmentFailure
from exact.task import Outcome
from tests.benchmarks.sites.walk import REFERENCE, action, scores

BESIDE = BrowserConfig(screenshots=False, sandbox="never", settle_seconds=30.0, answer_seconds=60.0)
"""Patient: the machine may be busy, and a page that is half there has not what a sequence names."""
INSIDE = msgspec.structs.replace(BESIDE, sandbox="required")
SAMPLE = {"trac": ("trac/21",), "wagtail": ("wagtail/17",)}
"""Walked inside gVisor here; all are by `bench/sites.py --references`."""


@pytest.mark.parametrize("made", [trac, wagtail])
async def test_reference_sequences_score_1_and_wrong_ones_0(made: type[SiteSuite], applications: None, executable: str) -> None:
    """Every fourth sequence is tested here, in half a minute; `bench/sites.py --references` tests all."""
    site = made()  # type: ignore[call-arg]
    async with site.environments(BESIDE) as environments:
        assert await scores(environments, site, site.ids()[::4]) == {}


@pytest.mark.parametrize("made", [trac, wagtail])
async def test_a_sample_scores_the_same_inside_gvisor(made: type[SiteSuite], applications: None, runsc: None, executable: str) -> None:
    site = made()  # type: ignore[call-arg]
    async with site.environments(INSIDE) as environments:
        assert isinstance(environments, ForkingFactory)
        assert await scores(environments, site, SAMPLE[site.name]) == {}


async def took(branch: Fork, *steps: list[object]) -> str:
    """Return the page's text at the end."""
    seen = branch.observation
    for step in steps:
        transition = await branch.step(action(branch, seen, step))
        assert transition.observation is not None
        seen = transition.observation
    return seen.text


async def test_siblings_keep_what_one_fork_destroys(applications: None, runsc: None, executable: str) -> None:
    site, page = trac(), ["goto", "/wiki/OldIdeas"]
    delete = REFERENCE["trac/21"]["right"][:-1]
    async with site.environments(INSIDE) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, ForkingFactory)
        await environment.reset(site.task("trac/21"))
        snapshot = await environment.snapshot()
        async with environments.fork(snapshot, simulation=True) as one, environments.fork(snapshot, simulation=True) as other:
            assert "does not exist" in await took(one, *delete, page)
            assert "Nobody needs these any more" in await took(other, page)
            sandbox = ["goto", "/wiki/SandBox"], ["click", "button", "Delete page", 0], ["click", "button", "Delete page", 0]
            assert "does not exist" in await took(other, *map(list, sandbox), ["goto", "/wiki/SandBox"])
            assert (await one.evaluate(Outcome(actions=()))).success
            assert not (await other.evaluate(Outcome(actions=()))).success
        restored = await environment.restore(snapshot)
        assert restored.fingerprint == snapshot.fingerprint
        assert not (await environment.evaluate(Outcome(actions=()))).success, "nothing is gone where nothing was done"


DRAWN = {
    "trac": {"session_attribute.value"},
    "wagtail": {
        "auth_user.password",
        "django_migrations.applied",
        "wagtailcore_pagelogentry.timestamp",
        "wagtailredirects_redirect.created_at",
    },
}
"""Columns that each making draws or dates anew: salted passwords, and when a row was written. So are UUIDs, wherever they stand."""
UUID = re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}\b")


def content(path: Path, drawn: set[str]) -> dict[str, list[dict[str, object]]]:
    """Return every row of every table."""
    found: dict[str, list[dict[str, object]]] = {}
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
            rows = [dict(row) for row in database.execute(f'select * from "{table}"')]
            found[table] = [{name: masked(row[name]) for name in row if f"{table}.{name}" not in drawn} for row in rows]
    return found


def masked(value: object) -> object:
    return UUID.sub("UUID", value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", sorted(DRAWN))
async def test_data_is_made_once_and_the_same(name: str, applications: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data that all tests use are compared with data made now."""
    first = await seed(name, interpreter())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    second = await seed(name, interpreter())
    assert first != second and await seed(name, interpreter()) == second
    file = {"trac": "db/trac.db", "wagtail": "site.sqlite3"}[name]
    one, other = (content(folder / file, DRAWN[name]) for folder in (first, second))
    assert one and one == other


class Visitor:
    """Somebody who is logged in, without a browser: what is sent is what is said here."""

    def __init__(self, address: str) -> None:
        self._address, jar = address, urllib.request.HTTPCookieProcessor()
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    def page(self, path: str) -> str:
        with self._opener.open(f"http://{self._address}{path}", timeout=60) as answer:
            return str(answer.read().decode())

    def token(self, path: str) -> dict[str, str]:
        """Return the token that the forms of a page send."""
        return dict(re.findall(r'name="(__FORM_TOKEN|csrfmiddlewaretoken)" value="([^"]+)"', self.page(path)))

    def post(self, path: str, fields: dict[str, str]) -> int:
        """Post a form, and return the final status."""
        try:
            with self._opener.open(f"http://{self._address}{path}", urllib.parse.urlencode(fields).encode(), timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.mark.parametrize(
    ("made", "form", "fields", "shown", "status"),
    [
        (
            trac,
            "/wiki/SandBox?action=edit",
            {"action": "edit", "text": "Forged", "version": "1", "save": "1"},
            ("/wiki/SandBox", "Forged"),
            400,
        ),
        (wagtail, "/admin/snippets/gazette/contact/add/", {"name": "Nobody", "post": "Forger"}, ("/contacts/", "Forger"), 403),
    ],
)
async def test_a_post_without_its_token_is_refused(
    made: type[SiteSuite], form: str, fields: dict[str, str], shown: tuple[str, str], status: int, applications: None, executable: str
) -> None:
    site = made()  # type: ignore[call-arg]
    application = site._application
    async with site.environments(BESIDE) as environments:
        visitor, entry = Visitor(environments._setup.hosts[application.host]), application.form.path  # type: ignore[attr-defined]

        def visit() -> None:
            login = {"username": application.users[0], "password": application.word}
            assert visitor.post(entry, {**login, **visitor.token(entry)}) == 200
            ((field, token),) = visitor.token(form).items()
            (page, words), target = shown, form.partition("?")[0]
            assert visitor.post(target, fields) == visitor.post(target, {**fields, field: "0" * len(token)}) == status
            assert words not in visitor.page(page)
            assert visitor.post(target, {**fields, field: token}) == 200 and words in visitor.page(page)

        await asyncio.to_thread(visit)


async def test_a_reset_is_for_those_who_know_its_token(applications: None, executable: str) -> None:
    site = trac()
    async with site.environments(BESIDE) as environments, environments.open(simulation=False) as environment:
        await environment.reset(site.task("trac/1"))
        seen = await environment.step(action(environment, await environment.reset(site.task("trac/1")), ["goto", "/__reset__"]))
        assert seen.observation is not None and "Not found" in seen.observation.text
        address = environment.episode.setup.hosts["trac.test"]  # type: ignore[attr-defined]

        def post() -> int:
            try:
                with urllib.request.urlopen(f"http://{address}/__reset__", b"") as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code

        assert await asyncio.to_thread(post) == 404


async def test_applications_that_do_not_start_are_no_score(applications: None, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exact.benchmarks.sites.suite.SERVER", Path("/nowhere/serve.py"))
    with pytest.raises(EnvironmentFailure, match="before it was ready"):
        async with trac().environments(BESIDE):
            pass
