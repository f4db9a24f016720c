"""Site files of strangers: what they name is said before it is used, and what no site may have is refused."""

from pathlib import Path

import pytest

from exact.benchmarks.own.files import TaskEntry, own_task, read, read_site
from exact.cli.dry_run import describe
from exact.cli.run import _with_services
from exact.config import Config
from exact.environments.sandbox.service import declared_services
from exact.errors import UsageError
from exact.library.tasks import page_task
from exact.models.providers import providers
from exact.task import Task

BASE = "name: shop\nurl: http://shop.test/\n"
LOGIN = 'browser: {login: {script: [\'fill [textbox "P"] "<p>"\'], secrets: {p: $%s}}}\n'
SERVICE = "services: [{command: %s, ready_url: '%s'}]\n"


def site_task(folder: Path, *lines: str) -> Task:
    (folder / "site.yaml").write_text(BASE + "".join(lines))
    return own_task(read_site(folder / "site.yaml"), TaskEntry(id="goal", instruction="Look."), folder)


@pytest.mark.parametrize(
    "line",
    [
        LOGIN % "OPENAI_API_KEY",
        "browser: {login: {headers: {X-Key: $ANTHROPIC_API_KEY}}}\n",
        "browser: {proxy: {server: 'http://p.test:1', user: u, password: $GEMINI_API_KEY}}\n",
        SERVICE % ("[a]", "http://127.0.0.1:1/', env: {KEY: '$OPENAI_API_KEY'}, folder: '/"),
        "outside: {accounts: [{name: ann, fields: {p: $AZURE_OPENAI_API_KEY}}]}\n",
    ],
)
def test_no_site_is_sent_the_key_of_a_model(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="_API_KEY, the key of a model, which no site is sent"):
        site_task(tmp_path, line)
    assert site_task(tmp_path, LOGIN % "SHOP_PASSWORD").id == "shop/goal"


def test_the_variables_that_are_refused_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "own_application.md").read_text()
    assert all(f"`{each.api_key_env}`" in page for each in providers().values() if each.api_key_env)


def test_a_dry_run_says_which_programs_files_and_values_a_site_uses(tmp_path: Path) -> None:
    lines = (
        SERVICE % ("[make, me]", "http://127.0.0.1:1/"),
        "outside: {site: {reset: 'touch /tmp/it'}}\n",
        "browser: {login: {state: ../session.json, headers: {X: $SHOP_KEY}}}\n",
    )
    said = describe((site_task(tmp_path, *lines),), Config(), tmp_path / "out", benchmark=False)
    assert "runs the program make me (services[0].command)" in said
    assert "runs the program touch /tmp/it (outside.site.reset.command)" in said
    assert 'sends values of this machine: {"X": "$SHOP_KEY"} (browser.login.headers)' in said
    assert f"reads {tmp_path}/../session.json (browser.login.state)" in said


@pytest.mark.parametrize(
    ("command", "url", "said"),
    [("[]", "http://127.0.0.1:1/", "length >= 1"), ("[a]", "file:///etc/passwd", "ready_url 'file:///etc/passwd' is no web address")],
)
def test_a_service_has_a_program_and_a_web_address(tmp_path: Path, command: str, url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        site_task(tmp_path, SERVICE % (command, url))


def test_paths_of_a_task_have_neither_links_nor_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site := tmp_path / "site" / "data").mkdir(parents=True)
    (here := tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(site.parent)
    (site.parent / "site.yaml").write_text(SERVED)
    (site.parent / "tasks.yaml").write_text("site: site.yaml\ntasks: [{id: one, instruction: Look.}]\n")
    monkeypatch.chdir(here)
    for path in ("../site/tasks.yaml", "../link/tasks.yaml", "../site/data/../tasks.yaml"):
        (service,) = declared_services(read(Path(path))[0])
        assert (service.folder, service.reads) == (str(site), (str(site.parent), str(site)))


def test_a_list_of_services_names_folders_from_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data := tmp_path / "data").mkdir()
    (tmp_path / "services.yaml").write_text("- {command: [serve], ready_url: 'http://127.0.0.1:1/', folder: data, reads: [data]}\n")
    (tmp_path / "tasks.yaml").write_text(
        "- {id: a, goal: Look., url: 'http://127.0.0.1:1/', "
        "services: [{command: [serve], ready_url: 'http://127.0.0.1:1/', folder: data}]}\n"
    )
    (given,) = declared_services(_with_services(page_task("http://127.0.0.1:1/", "Look."), tmp_path / "services.yaml"))
    (listed,) = declared_services(read(tmp_path / "tasks.yaml")[0])
    assert (given.folder, given.reads, listed.folder) == (str(data), (str(data),), str(data))
    (tmp_path / "services.yaml").write_text("- {command: [serve], ready_url: 'http://127.0.0.1:1/', folder: dta}\n")
    with pytest.raises(UsageError, match=r"`serve` needs .*dta, which does not exist"):
        _with_services(page_task("http://127.0.0.1:1/", "Look."), tmp_path / "services.yaml")


SERVED = """
name: site
url: http://127.0.0.1:1/
services: [{command: [serve], ready_url: "http://127.0.0.1:1/", folder: data, reads: [data]}]
"""
