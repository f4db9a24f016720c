"""`exact init`: write the files for your own application and check them.

The type of an option that names a file to write.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from exact.cli.signals import run_async
from exact.cli.terminal import echo
from exact.errors import UsageError
from exact.origins import is_web
from exact.text import counted

if TYPE_CHECKING:
    from exact.config import Config
    from exact.environments.check import Finding
    from exact.task import Task


FILES = ("site.yaml", "tasks.yaml", "agent.yaml")
GUARANTEES = ("resets alike", "elements can be acted on", "snapshots are states")
"""The checks of `exact check` that show how far the application can be searched."""
WHERE, LOGIN = ("elsewhere", "here", "hooks"), ("none", "file", "script", "basic")
GUESSED = "  # guessed"
"""Mark behind each line whose value nobody gave."""
_EVALUATE = """\
  # Without an evaluator the outcome is what the agent says. Take one of these lines, or write your own:
  # evaluate: {{eval_types: [string_match], reference_answers: {{must_include: ["a part of the right answer"]}}}}
  # evaluate: {{eval_types: [url_match], reference_url: "{url}"}}
  # evaluate: judge.py:solved   # judge.py has: async def solved(page, outcome): return "Thank you" in await page.inner_text("body")
"""
_QUESTION = """Where does the application run, and what undoes its side effects?
  here: it is started with the browser and rolled back with it
  hooks: elsewhere, with commands or addresses that reset it, save its state and restore it; or that only reset it
  elsewhere: side effects are permanent
"""
_LOGIN = """How does one log in?
  none: its pages need no log-in
  file: you log in once in a window, with single sign-on if need be, and `exact login` saves the session
  script: the browser fills in the log-in page, with a user name and a password from environment variables
  basic: the browser sends a user name and a password with each request, as HTTP's basic authentication does
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), metavar="[FOLDER]")
@click.option("--url", prompt="Address of the start page", help="Start page of the tasks.")
@click.option("--name", help="Name of the site. Default: its host.")
@click.option(
    "--where",
    type=click.Choice(WHERE),
    prompt=_QUESTION,
    default="elsewhere",
    help="Where the application runs, which decides what undoes its side effects.",
)
@click.option("--command", help="here: command that starts the application, run in FOLDER.")
@click.option("--ready-url", help="here: address that answers once the application is ready. Default: the start page.")
@click.option("--reads", multiple=True, metavar="PATH", help="here: file or folder outside FOLDER that the application needs. Repeatable.")
@click.option("--reset", help="hooks: address or command that resets the application. Alone, it does so before each attempt.")
@click.option("--snapshot", help="hooks: address or command that saves the state as {name}.")
@click.option("--restore", help="hooks: address or command that restores the state {name}.")
@click.option("--login", type=click.Choice(LOGIN), prompt=_LOGIN, default="none", help="How the browser of an environment logs in.")
@click.option("--login-url", default="", help="script: page of the log-in. Default: the start page.")
@click.option(
    "--model",
    prompt="Model (empty: the built-in agent, which needs none)",
    default="",
    help="Chat model: NAME or PROVIDER/MODEL. Default: the built-in agent.",
)
@click.option("--goal", prompt="A first task, in words", help="Instruction of a first task.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the files; check nothing.")
@click.option("--check/--no-check", "checked", default=True, show_default=True, help="Open the start page and check the guarantees.")
def init(folder: Path, checked: bool, as_json: bool, **answers: Any) -> int:
    """Write site.yaml, tasks.yaml and agent.yaml for your own application and check them.

    The command asks five questions, unless options answer them: the address, the place in which the application runs, the log-in, the model
    and a first task. What it guessed is marked in the files. It says how far the application can be searched, and last the next command.
    The exit code is 1 if a guarantee does not hold.
    """
    files = file_texts(answers)
    if there := [name for name in FILES if (folder / name).exists()]:
        raise UsageError(f"{folder / there[0]} exists already: choose another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
        if not as_json:
            echo(f"wrote {folder / name}")
    if as_json:
        echo(json.dumps({"files": [str(folder / name) for name in files]}))
    if as_json:
        return 0
    guessed = [f"{name}: {line.removesuffix(GUESSED).strip(' -')}" for name in FILES for line in files[name].split("\n") if GUESSED in line]
    if guessed:
        echo(f"guessed, look at {'it' if len(guessed) == 1 else 'these'}: {'; '.join(guessed)}")
    if checked:
        return _check(folder)
    echo(_next(folder))
    return 0


def file_texts(answers: dict[str, Any]) -> dict[str, str]:
    """Return the text of the three files by name. Raises UsageError for invalid answers."""
    if not is_web(answers["url"]):
        raise UsageError(f"invalid --url {answers['url']!r}: write a web address such as http://host/path")
    parts = urlsplit(answers["url"])
    site: dict[str, Any] = {"name": answers["name"] or parts.hostname, "url": answers["url"]}
    site |= _placed(answers, f"{parts.scheme}://{parts.netloc}")
    if login := _login(answers):
        site["browser"] = {"login": login}
    tasks = {"site": "site.yaml", "tasks": [{"id": "first", "instruction": answers["goal"]}]}
    guesses: tuple[str, ...] = ("script:", "- fill ", "- click ", "$SITE_") if answers["login"] in ("script", "basic") else ()
    guesses += ("ready_url:",) if answers["where"] == "here" and not answers["ready_url"] else ()
    return {
        "site.yaml": _marked(_yaml(site), guesses),
        "tasks.yaml": _yaml(tasks) + _EVALUATE.format(url=answers["url"].replace('"', "%22")),
        "agent.yaml": _yaml(_agent(answers["model"])),
    }


def _marked(text: str, guesses: tuple[str, ...]) -> str:
    """Return YAML in which lines that hold one of some texts are marked as guessed. A line that opens a block is not."""
    return "\n".join(
        f"{line}{GUESSED}" if any(each in line for each in guesses) and not line.endswith(":") else line for line in text.split("\n")
    )


def _placed(answers: dict[str, Any], base: str) -> dict[str, Any]:
    """Return the part of the site file for the place in which the application runs."""
    if answers["where"] == "here":
        command = answers["command"] or _ask("Command that starts it, run in the folder", "--command")
        service: dict[str, Any] = {"command": _words(command, "--command"), "ready_url": answers["ready_url"] or answers["url"]}
        reads = [str(Path(each).expanduser().absolute()) for each in answers.get("reads") or ()]
        return {"services": [{**service, "reads": reads} if reads else service]}
    if answers["where"] != "hooks":
        return {}
    if answers["reset"] and not (answers["snapshot"] or answers["restore"]):
        return {"outside": {"site": {"reset": _hook(answers["reset"], "--reset")}}}
    hooks = {
        name: _hook(answers[name] or _ask(f"Address or command for {name}", f"--{name}"), f"--{name}")
        for name in ("reset", "snapshot", "restore")
    }
    return {"outside": {"site": {"base": base, **hooks}}}


def _hook(text: str, option: str) -> dict[str, Any]:
    return {"url": text.strip()} if "://" in text.strip().partition(" ")[0] else {"command": _words(text, option)}


def _words(text: str, option: str) -> list[str]:
    """Split a command as a shell does. Raises UsageError if it is empty or cannot be split."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"invalid command for {option}: {text!r}: {error}") from error
    if not words:
        raise UsageError(f"invalid command for {option}: {text!r}: write a program and its arguments")
    return words


def _login(answers: dict[str, Any]) -> dict[str, Any]:
    match answers["login"]:
        case "file":
            return {"state": "login.json"}
        case "script":
            steps = ('fill [textbox "User"] "<user>"', 'fill [textbox "Password"] "<password>"', 'click [button "Sign in"]')
            login = {"script": list(steps), "secrets": {"user": "$SITE_USER", "password": "$SITE_PASSWORD"}}
            return {"url": answers["login_url"], **login} if answers["login_url"] else login
        case "basic":
            return {"user": "$SITE_USER", "password": "$SITE_PASSWORD"}
        case _:
            return {}


def _agent(model: str) -> dict[str, Any]:
    """Return the configuration of an agent with a short search and limits on every cost."""
    limits = {"actions": 10, "transitions": 200, "seconds": 900}
    if not model:
        return {"name": "own", "search": {"iterations": 16}, "limits": limits}
    provider, slash, name = model.partition("/")
    which = {"model": name, "provider": provider} if slash else {"model": model}
    asked = {"policy": {"kind": "llm"}, "value": {"kind": "llm"}, "models": {"policy": which}}
    return {"name": "own", "search": {"iterations": 16}, **asked, "limits": {**limits, "money": 1.0, "calls": 200}}


def _yaml(data: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _ask(question: str, option: str) -> str:
    try:
        return str(click.prompt(question))
    except click.Abort as error:
        raise UsageError(f"{question.lower()}: give {option}") from error


def _check(folder: Path) -> int:
    from exact.benchmarks.own.files import read
    from exact.config import load

    if _wants_login(folder):
        echo(_next(folder))
        return 0
    [task] = read(folder / "tasks.yaml")
    config = load(folder / "agent.yaml")
    findings, fidelity, isolated = run_async(_findings(task, config))
    from exact.cli.check import print_findings

    print_findings(findings)
    echo(search_summary(fidelity, isolated))
    echo(_next(folder))
    return 0 if all(finding.passed for finding in findings) else 1


def _next(folder: Path) -> str:
    """Return the line with the next command."""
    if _wants_login(folder):
        return f"next: exact login {folder / 'site.yaml'}; then: exact check '{folder / 'tasks.yaml'}#first' --quick"
    return f"next: exact run {folder / 'tasks.yaml'} --config {folder / 'agent.yaml'}"


def _wants_login(folder: Path) -> bool:
    return "state: login.json" in (folder / "site.yaml").read_text() and not (folder / "login.json").exists()


async def _findings(task: Task, config: Config) -> tuple[list[Finding], str, bool]:
    import msgspec

    from exact.benchmarks.open import open_environments
    from exact.environments.check import check

    browser = msgspec.structs.replace(config.browser, screenshots=False)
    config = msgspec.structs.replace(config, browser=browser)
    async with open_environments(task, config, benchmark=False, notify=lambda text: echo(text, err=True)) as opened:
        async with opened.open(simulation=True) as environment:
            observation = await environment.reset(task)
            elements = counted(len(observation.elements), "element")
            echo(f"opened {observation.url}: {json.dumps(observation.title)}, {elements}")
            if any("password" in each.name.lower() for each in observation.elements) and "login" not in str(
                task.metadata.get("browser", "")
            ):
                echo("the page seems to have a log-in: add it to site.yaml, or begin again with --login script, file or basic")
            capabilities = environment.capabilities
        return await check(opened, task, quick=True, names=GUARANTEES), capabilities.fidelity, capabilities.isolated


def search_summary(fidelity: str, isolated: bool) -> str:
    """Return one line on the state that a restore recovers and the handling of writes."""
    recovered = {
        "full": "a restore recovers the browser and the application",
        "client": "a restore recovers the browser, but not the application",
        "page": "a restore recovers pages without the state of their scripts",
        "replay": "states are restored by a reset and a replay of the steps",
    }[fidelity]
    writes = "explored and rolled back" if isolated else "blocked in simulation, and sent once, at a commit"
    return f"fidelity {fidelity}: {recovered}; writes are {writes}"


class NewFile(click.Path):
    """A path to write to, which may exist. Its folder must exist, which is checked before the command runs. Commands interpret `-`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path. Fails if its folder does not exist."""
        folder = Path(value).parent
        if not folder.is_dir():
            self.fail(f"there is no folder {folder}: make it, or name another", param, ctx)
        return super().convert(value, param, ctx)
