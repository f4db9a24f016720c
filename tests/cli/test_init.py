"""`exact init` and `exact login`: files from answers, and a log-in that is kept for its user alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.benchmarks.own.files import read
from exact.cli.init import file_texts, init, search_summary
from exact.cli.main import main
from exact.config import load
from exact.errors import UsageError

UNASKED = dict.fromkeys(("name", "command", "ready_url", "reset", "snapshot", "restore"))
ANSWERS = {"url": "http://127.0.0.1:8000/", "where": "elsewhere", "login": "none", "login_url": "", "model": "", "goal": "Look.", **UNASKED}


@pytest.mark.parametrize("where", ["elsewhere", "here", "hooks"])
@pytest.mark.parametrize("login", ["none", "file", "script", "basic"])
def test_written_files_are_readable(tmp_path: Path, where: str, login: str) -> None:
    more = {"command": "python3 app.py", "reset": "http://a/reset", "snapshot": "ctl save {name}", "restore": "ctl load {name}"}
    for name, text in file_texts({**ANSWERS, **more, "where": where, "login": login, "model": "openai/gpt-4o"}).items():
        (tmp_path / name).write_text(text)
    [task] = read(tmp_path / "tasks.yaml")
    assert (task.id, task.start) == ("127.0.0.1/first", "http://127.0.0.1:8000/")
    assert ("services" in task.metadata, "outside" in task.metadata) == (where == "here", where == "hooks")
    config = load(tmp_path / "agent.yaml")
    assert config.models.policy is not None and config.limits.money == 1.0


def test_init_asks_opens_the_page_writes_the_files_and_ends_with_a_summary(httpserver: HTTPServer, executable: str, tmp_path: Path) -> None:
    httpserver.expect_request("/").respond_with_data("<title>Hours</title><a href=/>Home</a>", content_type="text/html")
    url = httpserver.url_for("/")
    done = CliRunner().invoke(init, [str(tmp_path / "own")], input=f"{url}\nelsewhere\n\n\nFind the hours.\n", standalone_mode=False)
    assert done.exception is None, done.output
    assert "opened http" in done.output and '"Hours", 1 element' in done.output
    restored = "by a reset and a replay of the steps" if "fidelity replay" in done.output else "fidelity client"  # where the browser forks
    assert restored in done.output and "; writes are blocked in simulation" in done.output
    assert {path.name for path in (tmp_path / "own").iterdir()} == {"site.yaml", "tasks.yaml", "agent.yaml"}
    assert yaml.safe_load((tmp_path / "own" / "site.yaml").read_text())["url"] == url
    assert all(f"  {way}: " in done.output for way in ("none", "file", "script", "basic"))
    assert done.output.strip().split("\n")[-1].startswith("next: exact run ") and "guessed" not in done.output


@pytest.mark.parametrize(
    ("more", "guessed"),
    [({"login": "script"}, ["fill [textbox", "fill [textbox", "click [button", "$SITE_USER", "$SITE_PASSWORD"]),
     ({"login": "basic"}, ["$SITE_USER", "$SITE_PASSWORD"]), ({"login": "file"}, []), ({"login": "none"}, []),
     ({"where": "here", "command": "run"}, ["ready_url"]), ({"where": "here", "command": "run", "ready_url": "http://a.test/up"}, [])],
)  # fmt: skip
def test_what_nobody_gave_is_marked(more: dict[str, str], guessed: list[str]) -> None:
    marked = [line for line in file_texts({**ANSWERS, **more})["site.yaml"].split("\n") if line.endswith("# guessed")]
    assert len(marked) == len(guessed) and all(text in line for text, line in zip(guessed, marked, strict=True))


@pytest.mark.parametrize("line", [1, 2, 3])
def test_each_example_of_an_evaluator_can_be_taken(line: int, tmp_path: Path) -> None:
    texts = file_texts(ANSWERS)
    lines = texts["tasks.yaml"].split("\n")
    examples = [at for at, each in enumerate(lines) if each.startswith("  # evaluate: ")]
    assert len(examples) == 3
    lines[examples[line - 1]] = lines[examples[line - 1]].replace("# ", "", 1)
    (tmp_path / "judge.py").write_text("async def solved(page, outcome): return True\n")
    for name, text in {**texts, "tasks.yaml": "\n".join(lines)}.items():
        (tmp_path / name).write_text(text)
    [task] = read(tmp_path / "tasks.yaml")
    assert task.private


@pytest.mark.parametrize(("login", "command"), [("none", "exact run"), ("file", "exact login"), ("script", "exact run")])
def test_the_last_line_is_the_next_command(login: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--url", "http://a.test/", "--where", "elsewhere", "--login", login, "--model", "", "--goal", "Look", "--no-check"]
    assert main(["init", str(tmp_path), *given]) == 0
    assert capsys.readouterr().out.strip().split("\n")[-1].startswith(f"next: {command} ")


def test_init_overwrites_nothing_and_says_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--url", "http://a.test/", "--where", "elsewhere", "--login", "none", "--model", "", "--goal", "Look", "--no-check"]
    assert main(["init", str(tmp_path), *given]) == 0
    assert main(["init", str(tmp_path), *given]) == 2 and "site.yaml exists already" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "x"), *given, "--url", "ftp://a"]) == 2 and "invalid --url" in capsys.readouterr().err


def test_commands_are_parted_as_a_shell_does() -> None:
    served = {**ANSWERS, "where": "here", "command": 'sh -c "cd app && npm start"'}
    (service,) = yaml.safe_load(file_texts(served)["site.yaml"])["services"]
    assert service["command"] == ["sh", "-c", "cd app && npm start"]
    hooked = {**ANSWERS, "where": "hooks", "reset": "ctl 'to start'", "snapshot": "http://a/keep/{name}", "restore": "ctl load {name}"}
    site = yaml.safe_load(file_texts(hooked)["site.yaml"])["outside"]["site"]
    assert (site["reset"], site["snapshot"]) == ({"command": ["ctl", "to start"]}, {"url": "http://a/keep/{name}"})


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"url": "http://[::1"}, r"invalid --url 'http://\[::1'"),
        ({"where": "hooks", "reset": " ", "snapshot": "x", "restore": "x"}, "invalid command for --reset: ' '"),
        ({"where": "here", "command": 'sh -c "x'}, "invalid command for --command: .*: No closing quotation"),
    ],
)
def test_answers_that_cannot_be_are_refused(answers: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        file_texts({**ANSWERS, **answers})


def test_a_file_is_no_folder_for_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").touch()
    given = ["--url", "http://a.test/", "--where", "elsewhere", "--login", "none", "--model", "", "--goal", "Look", "--no-check"]
    assert main(["init", str(tmp_path / "a"), *given]) == 2 and "is a file" in capsys.readouterr().err


def test_the_summary_says_what_is_explored() -> None:
    assert search_summary("full", True).endswith("writes are explored and rolled back")


def test_a_log_in_is_saved_for_its_user_alone(httpserver: HTTPServer, executable: str, tmp_path: Path) -> None:
    httpserver.expect_request("/in").respond_with_response(Response(status=302, headers={"Location": "/home", "Set-Cookie": "session=s1"}))
    httpserver.expect_request("/home").respond_with_data("<script>localStorage.theme = 'dark'</script>Home", content_type="text/html")
    path = tmp_path / "logins" / "site.json"
    assert main(["login", httpserver.url_for("/in"), "--headless", "--until", "/home$", "--out", str(path)]) == 0
    state = json.loads(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600 and [path] == list(path.parent.iterdir())
    assert state["cookies"][0]["value"] == "s1" and state["origins"][0]["localStorage"] == [{"name": "theme", "value": "dark"}]


def test_a_log_in_is_not_saved_in_runs_and_says_when_it_did_not_happen(
    httpserver: HTTPServer, executable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    httpserver.expect_request("/").respond_with_data("Here", content_type="text/html")
    (tmp_path / "run.json").write_text("{}")
    inside = str(tmp_path / "deep" / "login.json")
    assert main(["login", "https://a.test", "--headless", "--until", "x", "--out", inside]) == 2
    assert "save log-ins elsewhere" in capsys.readouterr().err
    (tmp_path / "run.json").unlink()
    never = ["login", httpserver.url_for("/"), "--headless", "--until", "/home$", "--seconds", "0.3", "--out", inside]
    assert main(never) == 1 and "nothing was saved" in capsys.readouterr().err
    assert not Path(inside).exists()


def test_origins_that_the_site_sends_to_are_proposed_as_partners(
    httpserver: HTTPServer, executable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = f"http://127.0.0.1:{httpserver.port}"
    script = f"fetch('{api}/token', {{method: 'POST', mode: 'no-cors'}}).then(() => {{ localStorage.t = 1; document.title = 'in' }})"
    page = f"<img src='{api}/a.png'><p>Welcome<script>{script}</script>"
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    assert main(["login", httpserver.url_for("/"), "--headless", "--proof", "Welcome", "--out", str(tmp_path / "state.json")]) == 0
    said = capsys.readouterr().out
    assert f"sent to {api}: after a secret was typed, that is refused" in said and f"partner_origins: [{api}]" in said


@pytest.fixture
def token_site(httpserver: HTTPServer, tmp_path: Path) -> Path:
    """A site file whose log-in page stores a token a while after it shows that the log-in is done."""
    page = """<title>Sign in</title><p>Welcome, guest<script>setTimeout(() => {
      document.querySelector('p').innerHTML = '<button>Log out</button>';
      setTimeout(() => { if (location.search !== '?none') localStorage.token = 't1'; }, 300);
    }, 300)</script>"""
    httpserver.expect_request("/sign-in").respond_with_data(page, content_type="text/html")
    httpserver.expect_request("/").respond_with_data("<title>Home</title>Welcome", content_type="text/html")
    login = {"url": "/sign-in", "proof": '[button "Log out"]', "state": "login.json"}
    (tmp_path / "site.yaml").write_text(json.dumps({"name": "s", "url": httpserver.url_for("/"), "browser": {"login": login}}))
    return tmp_path / "site.yaml"


def test_a_log_in_begins_at_the_log_in_page_and_is_saved_once_it_is_proven_and_stored(token_site: Path, executable: str) -> None:
    assert main(["login", str(token_site), "--headless", "--seconds", "30"]) == 0
    state = json.loads((token_site.parent / "login.json").read_text())
    assert state["origins"][0]["localStorage"] == [{"name": "token", "value": "t1"}]


def test_an_empty_or_unproven_log_in_is_not_saved(token_site: Path, executable: str, capsys: pytest.CaptureFixture[str]) -> None:
    token_site.write_text(token_site.read_text().replace("/sign-in", "/sign-in?none"))
    assert main(["login", str(token_site), "--headless", "--seconds", "2"]) == 1
    assert "left neither cookies nor local storage: nothing was saved" in capsys.readouterr().err
    assert main(["login", str(token_site), "--headless", "--seconds", "0.5", "--proof", "My account"]) == 1
    assert "no page showed 'My account' within 0.5 s: nothing was saved" in capsys.readouterr().err
    assert [path.name for path in token_site.parent.iterdir()] == ["site.yaml"]


def test_a_reset_alone_is_written_for_a_site_that_runs_elsewhere() -> None:
    site = yaml.safe_load(file_texts({**ANSWERS, "where": "hooks", "reset": "ctl reset"})["site.yaml"])
    assert site["outside"] == {"site": {"reset": {"command": ["ctl", "reset"]}}}
