"""Environments of the suite: log-in by form and by file, resets by their owner's hook, tabs, places, and judges that are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.benchmarks.webarena import WebArena
from exact.benchmarks.webarena.resets import LIMIT
from exact.benchmarks.webarena.sessions import FORMS, Sessions
from exact.benchmarks.webarena.variables import Addresses
from exact.config import BrowserConfig, ModelConfig, ModelsConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup, launch
from exact.environments.browser.page.setup import Beginning
from exact.environments.sites.site import Hook
from exact.errors import EnvironmentFailure, ExactError, UsageError
from exact.evaluation.local import HANG
from exact.task import Outcome, Task
from tests.benchmarks.webarena.conftest import item
from tests.http_server import BriefServer

CONFIG = BrowserConfig(screenshots=False)
NOTHING = Outcome(actions=())


class Classifieds:
    """A site that is logged into by a form, and counts what is asked of it."""

    def __init__(self, server: HTTPServer) -> None:
        self.entries, self.resets, self.valid, self.port = 0, 0, "1", server.port
        server.expect_request("/index.php", query_string="page=login", method="GET").respond_with_data(
            "<form method=post action=/in><input id=email name=n><input id=password name=p><button>Log in</button></form>",
            content_type="text/html",
        )
        server.expect_request("/in", method="POST").respond_with_handler(self.enter)
        server.expect_request("/index.php", query_string="page=user&action=items").respond_with_handler(self.items)
        server.expect_request("/").respond_with_handler(self.home)
        server.expect_request("/reset", method="POST").respond_with_handler(self.reset)

    def enter(self, request: Request) -> Response:
        self.entries += 1
        answer = Response(status=303, headers={"Location": "/"})
        if (request.form["n"], request.form["p"]) == ("ann", "s3cret"):
            answer.set_cookie("session", self.valid)
        return answer

    def items(self, request: Request) -> Response:
        inside = request.cookies.get("session") == self.valid
        return Response("<h1>My listings</h1>" if inside else "<h1>Log in first</h1>", content_type="text/html")

    def home(self, request: Request) -> Response:
        name = "Ann" if request.cookies.get("session") == self.valid else "stranger"
        return Response(f"<h1>Hello {name}</h1>", content_type="text/html")

    def reset(self, request: Request) -> Response:
        self.resets += 1
        return Response("done")


@pytest.fixture
def classifieds(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Classifieds:
    address = f"http://localhost:{httpserver.port}"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in {"": address, "_USERNAME": "ann", "_PASSWORD": "s3cret", "_RESET": f"{address}/reset"}.items():
        monkeypatch.setenv(f"CLASSIFIEDS{name}", value)
    monkeypatch.delenv("WA_CLASSIFIEDS", raising=False)
    return Classifieds(httpserver)


def suite(folder: Path, **fields: Any) -> WebArena:
    """Return a suite with one task at the site."""
    plain = {"task_id": 0, "sites": ["classifieds"], "start_url": "__CLASSIFIEDS__/", "require_login": True}
    state = {"storage_state": "./.auth/classifieds_state.json", "require_reset": True}
    (folder / "tasks.json").write_text(json.dumps([item(**{**plain, **state, **fields})]))
    return WebArena(path=folder / "tasks.json")


async def test_a_log_in_is_done_once_and_again_when_it_has_run_out(classifieds: Classifieds, executable: str, tmp_path: Path) -> None:
    made = suite(tmp_path)
    async with (
        made.environments(CONFIG) as environments,
        environments.open(simulation=False) as live,
        environments.open(simulation=True) as other,
    ):
        for environment in (live, other, live):
            assert "Hello Ann" in (await environment.reset(made.task("webarena/0"))).text
        assert classifieds.entries == 1
        assert classifieds.resets == 2, "before each attempt in the live environment, never for one that searches"
        for count, environment in ((2, live), (3, other)):
            classifieds.valid = str(count)  # whoever was logged in is so no longer: somebody logged out
            assert "Hello Ann" in (await environment.reset(made.task("webarena/0"))).text and classifieds.entries == count


async def test_a_storage_state_file_is_used_and_refreshed(
    classifieds: Classifieds, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXACT_AUTH", str(tmp_path / "auth"))
    for expected in (1, 1):
        made = suite(tmp_path)
        async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
            assert "Hello Ann" in (await environment.reset(made.task("webarena/0"))).text
        assert classifieds.entries == expected
    path = tmp_path / "auth" / "classifieds_state.json"
    assert path.stat().st_mode & 0o077 == 0, "nobody else reads it"
    classifieds.valid = "3"
    made = suite(tmp_path)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        await environment.reset(made.task("webarena/0"))
    assert classifieds.entries == 2 and '"3"' in path.read_text()


async def test_the_storage_state_alone_decides_who_begins_logged_in(classifieds: Classifieds, executable: str, tmp_path: Path) -> None:
    made = suite(tmp_path, require_login=False)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        assert "Hello Ann" in (await environment.reset(made.task("webarena/0"))).text


@pytest.mark.parametrize("kept", ["in a file", "from a task before"])
async def test_each_of_two_sites_is_entered_with_its_own_newest_session(
    kept: str, classifieds: Classifieds, executable: str, tmp_path: Path
) -> None:
    with BriefServer(host="127.0.0.1") as server:
        other = Classifieds(server)
        sites = {"classifieds": f"http://localhost:{classifieds.port}", "other": f"http://127.0.0.1:{server.port}"}
        environ = {site.upper(): address for site, address in sites.items()}
        environ |= {f"{site.upper()}_{name}": value for site in sites for name, value in (("USERNAME", "ann"), ("PASSWORD", "s3cret"))}
        folder = tmp_path / "auth" if kept == "in a file" else None
        known, held = list[Sessions](), list[dict[str, str]]()

        async def prepare(beginning: Beginning) -> None:
            if folder or not known:
                forms = dict.fromkeys(sites, FORMS["classifieds"])
                known.append(Sessions(Addresses("", environ), environ, forms=forms, folder=folder))
            await known[-1].enter(beginning.context, beginning.page, "classifieds.other_state.json", tuple(sites))
            held.append({str(each["domain"]): str(each["value"]) for each in await beginning.context.cookies()})

        task = Task(id="test/two", instruction="", start=sites["classifieds"], origins=tuple(sites.values()))
        async with launch(CONFIG) as browser:
            environments = BrowserFactory(browser, PageSetup(prepare=prepare), CONFIG, isolated=False)
            for valid in ("1", "2"):  # the sessions of the first site are over
                classifieds.valid = valid
                async with environments.open(simulation=False) as environment:
                    await environment.reset(task)
                assert held[-1] == {"localhost": valid, "127.0.0.1": "1"}
        assert (classifieds.entries, other.entries) == (2, 1)
        assert folder is None or '"2"' in (folder / "classifieds.other_state.json").read_text()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", r"does not read \(Expected `object`, got `array`\)"),
        ('{"cookies": [{"name": "a", "value": 3, "domain": "x", "path": "/"}]}', r"does not read \(.*`\$\.cookies\[0\]\.value`\)"),
        ('{"cookies": [{"name": "a", "value": "", "domain": "", "path": "/"}]}', r"does not come back: it is refused \(.*domain.*\)"),
        (
            '{"origins": [{"origin": "http://localhost:9", "localStorage": [{"name": "a", "value": "b"}]}]}',
            r"does not come back: http://localhost:9 is refused \(.*\)",
        ),
    ],
)
async def test_a_storage_state_that_cannot_be_used_is_named(
    text: str, why: str, classifieds: Classifieds, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "classifieds_state.json").write_text(text)
    monkeypatch.setenv("EXACT_AUTH", str(tmp_path))
    made = suite(tmp_path)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(ExactError, match=rf"the storage state .*/classifieds_state\.json {why}: delete it"):
            await environment.reset(made.task("webarena/0"))


async def test_a_refused_account_and_a_site_that_is_down_are_distinct_errors(
    classifieds: Classifieds, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLASSIFIEDS_PASSWORD", "wrong")
    made = suite(tmp_path, require_reset=False)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(EnvironmentFailure, match=r"does not let ann in: check CLASSIFIEDS_USERNAME"):
            await environment.reset(made.task("webarena/0"))
        monkeypatch.setenv("CLASSIFIEDS", "http://localhost:9")
        with pytest.raises(EnvironmentFailure, match=r"classifieds does not answer at http://localhost:9/.* is CLASSIFIEDS right"):
            await environment.reset(made.task("webarena/0"))


async def test_a_reset_that_fails_is_no_attempt(
    classifieds: Classifieds, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLASSIFIEDS_RESET", "sh -c 'echo disk full >&2; exit 4'")
    made = suite(tmp_path)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(EnvironmentFailure, match=r"classifieds was not reset: .*status 4: disk full.* see CLASSIFIEDS_RESET"):
            await environment.reset(made.task("webarena/0"))


async def test_a_judge_that_is_not_named_is_missed_before_anything_is_tried(
    classifieds: Classifieds, executable: str, tmp_path: Path
) -> None:
    made = suite(tmp_path, eval={"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["x"]}})
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(UsageError, match=r"name one at models\.parts\.evaluator"):
            await environment.reset(made.task("webarena/0"))
    assert classifieds.resets == 0
    named = made.with_models(ModelsConfig(parts={"evaluator": ModelConfig(model="m", base_url="http://127.0.0.1:9/v1")}))
    async with named.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        await environment.reset(named.task("webarena/0"))


async def test_a_site_that_one_agent_changed_is_reset_for_another_with_a_judge_of_its_own(classifieds: Classifieds, tmp_path: Path) -> None:
    made = suite(tmp_path)
    one, other = made.with_models(ModelsConfig()), made.with_models(ModelsConfig())
    await one.resets.before(("classifieds",), changes=True)
    await other.resets.before(("classifieds",), changes=False)
    assert classifieds.resets == 2


async def test_a_site_that_a_process_has_not_seen_is_reset_once_for_tasks_that_only_read(classifieds: Classifieds, tmp_path: Path) -> None:
    made = suite(tmp_path)
    for _ in range(3):
        await made.resets.before(("classifieds",), changes=False)
    assert classifieds.resets == 1, "nobody knows what was done there before, by a process that was killed, say"


async def test_a_site_that_another_process_changed_is_reset_for_a_task_that_only_reads(classifieds: Classifieds, tmp_path: Path) -> None:
    one, other = suite(tmp_path).resets, suite(tmp_path).resets  # what they know of each other is what two processes do
    await other.before(("classifieds",), changes=False)
    await one.before(("classifieds",), changes=True)
    assert classifieds.resets == 2
    for count in (3, 3):
        await other.before(("classifieds",), changes=False)
        assert classifieds.resets == count


async def test_a_reset_that_was_cut_short_is_done_again(classifieds: Classifieds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = suite(tmp_path).resets
    await made.before(("classifieds",), changes=False)
    monkeypatch.setenv("CLASSIFIEDS_RESET", "sh -c 'exit 4'")
    with pytest.raises(EnvironmentFailure, match="was not reset"):
        await made.before(("classifieds",), changes=True)
    monkeypatch.setenv("CLASSIFIEDS_RESET", f"{made._addresses.of('classifieds')}/reset")
    await made.before(("classifieds",), changes=False)
    assert classifieds.resets == 2


async def test_without_a_hook_nothing_is_noted_of_a_site(classifieds: Classifieds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLASSIFIEDS_RESET")
    await suite(tmp_path).resets.before(("classifieds",), changes=True)
    assert classifieds.resets == 0 and not (tmp_path / "cache").exists()


async def test_where_nothing_can_be_noted_the_way_out_is_said(
    classifieds: Classifieds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(EnvironmentFailure, match=r"cannot be noted in .*file/exact/resets: .*: name another folder in XDG_CACHE_HOME"):
        await suite(tmp_path).resets.before(("classifieds",), changes=True)


async def test_all_sites_of_a_task_are_reset_within_the_time_limit_for_hung_attempts(
    classifieds: Classifieds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, limits = [0.0], list[float]()

    async def call(hook: Hook, role: str, **values: str) -> str:
        limits.append(hook.seconds)
        clock[0] += 500.0
        return ""

    monkeypatch.setattr("exact.benchmarks.webarena.resets.monotonic", lambda: clock[0])
    monkeypatch.setattr(Hook, "call", call)
    monkeypatch.setenv("SHOPPING", "http://localhost:9")
    monkeypatch.setenv("SHOPPING_RESET", "true")
    made = suite(tmp_path).resets
    await made.before(("classifieds", "shopping"), changes=True)
    assert limits == [LIMIT, LIMIT - 500.0] and LIMIT + 60.0 <= HANG
    with pytest.raises(EnvironmentFailure, match=rf"wikipedia was not reset: .* {LIMIT:g} s for the sites of a task are over"):
        monkeypatch.setenv("WIKIPEDIA", "http://localhost:9")
        monkeypatch.setenv("WIKIPEDIA_RESET", "true")
        await made.before(("classifieds", "shopping", "wikipedia"), changes=True)


async def test_the_score_is_that_of_the_task(classifieds: Classifieds, executable: str, tmp_path: Path) -> None:
    url = {"eval_types": ["url_match"], "reference_url": "__CLASSIFIEDS__/index.php?page=user", "url_note": "GOLD in PRED"}
    made = suite(tmp_path, eval=url)
    async with made.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
        await environment.reset(made.task("webarena/0"))
        assert not (await environment.evaluate(NOTHING)).success
        await environment.step(environment.actions.action("goto", "/index.php?page=user&action=items"))
        assert (await environment.evaluate(NOTHING)).success


@pytest.mark.asyncio(loop_scope="session")
async def test_further_tabs_are_open_below_the_start_page(browser: Browser, httpserver: HTTPServer) -> None:
    for name in ("one", "two", "three"):
        httpserver.expect_request(f"/{name}").respond_with_data(f"<title>{name}</title><h1>{name}</h1>", content_type="text/html")
    base = f"http://localhost:{httpserver.port}"
    task = Task(id="test/tabs", instruction="", start=f"{base}/one", metadata={"tabs": f"{base}/two\n{base}/three"})
    environments = BrowserFactory(browser, PageSetup(), CONFIG, isolated=False)
    async with environments.open(simulation=False) as environment:
        for _ in range(2):
            seen = await environment.reset(task)
            assert (seen.url, seen.tabs) == (f"{base}/one", (f"{base}/two", f"{base}/three"))
        back = await environment.step(environment.actions.action("go_back"))
        assert back.observation is not None and back.observation.title == "three"


@pytest.mark.asyncio(loop_scope="session")
async def test_the_browser_says_it_is_where_the_task_says(browser: Browser, httpserver: HTTPServer) -> None:
    script = "navigator.geolocation.getCurrentPosition(p => document.body.append(`${p.coords.latitude} ${p.coords.longitude}`))"
    httpserver.expect_request("/").respond_with_data(f"<body><script>{script}</script>", content_type="text/html")
    start = f"http://localhost:{httpserver.port}/"
    environments = BrowserFactory(browser, PageSetup(), CONFIG, isolated=False)
    async with environments.open(simulation=False) as environment:
        seen = await environment.reset(Task(id="test/place", instruction="", start=start, metadata={"geolocation": "40.44 -79.99"}))
        assert "40.44 -79.99" in seen.text
        with pytest.raises(UsageError, match="write `latitude longitude`"):
            await environment.reset(Task(id="test/place", instruction="", start=start, metadata={"geolocation": "here"}))


async def test_a_task_at_a_site_of_ones_own_begins_logged_in_by_its_storage_state(
    httpserver: HTTPServer, executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> Response:
        return Response(f"Hello {request.cookies.get('session', 'stranger')}", content_type="text/html")

    httpserver.expect_request("/").respond_with_handler(answer)
    monkeypatch.setenv("WIKI", f"http://localhost:{httpserver.port}")
    cookie = {"name": "session", "value": "ann", "domain": "localhost", "path": "/", "expires": -1, "sameSite": "Lax"}
    (tmp_path / "wiki_state.json").write_text(json.dumps({"cookies": [cookie], "origins": []}))
    judged = {"eval_types": ["url_match"], "reference_url": "__WIKI__", "reference_answers": None, "program_html": None}
    plain = {"task_id": 1, "sites": ["wiki"], "require_login": True, "geolocation": None, "require_reset": False, "intent": "Look."}
    item = {**plain, "start_url": "__WIKI__/", "storage_state": "./.auth/wiki_state.json", "eval": judged}
    (tmp_path / "tasks.json").write_text(json.dumps([item]))
    wiki = WebArena(path=tmp_path / "tasks.json")
    async with wiki.environments(BrowserConfig(screenshots=False)) as opened, opened.open(simulation=True) as environment:
        assert "Hello ann" in (await environment.reset(wiki.task("webarena/1"))).text
