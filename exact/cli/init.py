"""`exact init`: the files for one's own application, made from a few answers and tried at once."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from exact.errors import UsageError
from exact.safety import is_web

if TYPE_CHECKING:
    from exact.config import Config
    from exact.environments.check import Finding
    from exact.task import Task

FILES = ("site.yaml", "tasks.yaml", "agent.yaml")
PROMISES = ("resets alike", "elements can be acted on", "snapshots are states")
"""Of `exact check`, what says how far the application can be searched."""
WHERE, LOGIN = ("elsewhere", "here", "hooks"), ("none", "file", "script", "basic")
_QUESTION = """Where does it run, and what undoes what is done?
  here: it is started with the browser, and rolled back with it
  hooks: elsewhere, and there are ways to reset it, to keep its state and to bring it back
  elsewhere: what is done stays done
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), metavar="[FOLDER]")
@click.option("--url", prompt="Address of the start page", help="Where tasks start.")
@click.option("--name", help="Of the site. Default: its host.")
@click.option("--where", type=click.Choice(WHERE), prompt=_QUESTION, default="elsewhere", help="Where it runs, and so what undoes.")
@click.option("--command", help="here: how it is started, run in FOLDER.")
@click.option("--ready-url", help="here: what answers once it is ready. Default: the start page.")
@click.option("--reset", help="hooks: address or command that brings it to its start.")
@click.option("--snapshot", help="hooks: what keeps its state under {name}.")
@click.option("--restore", help="hooks: what brings {name} back.")
@click.option("--login", type=click.Choice(LOGIN), prompt="Log-in", default="none", help="How an environment logs in.")
@click.option("--login-url", default="", help="script: where it begins. Default: the start page.")
@click.option(
    "--model", prompt="Model (empty: the built-in agent, which needs none)", default="", help="Name of a chat model; PROVIDER/MODEL."
)
@click.option("--goal", prompt="A first task, in words", help="What the agent is to achieve.")
@click.option("--check/--no-check", "checked", default=True, show_default=True, help="Open the start page and try the promises.")
def init(folder: Path, checked: bool, **answers: Any) -> int:
    """Asks what there is to know about your own application, writes site.yaml, tasks.yaml and agent.yaml, and tries them.

    Every question is an option too. The last line says how far the application can be searched; exit code 1 if a promise is not kept.
    """
    files = file_texts(answers)
    if there := [name for name in FILES if (folder / name).exists()]:
        raise UsageError(f"{folder / there[0]} is there already: name another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
        click.echo(f"wrote {folder / name}")
    if not checked:
        return 0
    return _try(folder)


def file_texts(answers: dict[str, Any]) -> dict[str, str]:
    """The three files' text. Raises UsageError for answers that do not go together."""
    if not is_web(answers["url"]):
        raise UsageError(f"--url {answers['url']!r} is no web address: write http://host/path")
    parts = urlsplit(answers["url"])
    site: dict[str, Any] = {"name": answers["name"] or parts.hostname, "url": answers["url"]}
    site |= _placed(answers, f"{parts.scheme}://{parts.netloc}")
    if login := _login(answers):
        site["browser"] = {"login": login}
    tasks = {"site": "site.yaml", "tasks": [{"id": "first", "instruction": answers["goal"]}]}
    return {"site.yaml": _yaml(site), "tasks.yaml": _yaml(tasks), "agent.yaml": _yaml(_agent(answers["model"]))}


def _placed(answers: dict[str, Any], base: str) -> dict[str, Any]:
    """Where it runs."""
    if answers["where"] == "here":
        command = answers["command"] or _ask("Command that starts it, run in the folder", "--command")
        return {"services": [{"command": _words(command, "--command"), "ready_url": answers["ready_url"] or answers["url"]}]}
    if answers["where"] == "hooks":
        hooks = {
            name: _hook(answers[name] or _ask(f"Address or command for {name}", f"--{name}"), f"--{name}")
            for name in ("reset", "snapshot", "restore")
        }
        return {"outside": {"site": {"base": base, **hooks}}}
    return {}


def _hook(text: str, option: str) -> dict[str, Any]:
    return {"url": text.strip()} if "://" in text.strip().partition(" ")[0] else {"command": _words(text, option)}


def _words(text: str, option: str) -> list[str]:
    """Program and arguments, parted as a shell does. Raises UsageError where there are none."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no command: {error}") from error
    if not words:
        raise UsageError(f"{option} {text!r} is no command: write a program and its arguments")
    return words


def _login(answers: dict[str, Any]) -> dict[str, Any]:
    match answers["login"]:
        case "file":
            return {"state": "login.json"}
        case "script":
            names = ('fill [textbox "User"] "<user>"', 'fill [textbox "Password"] "<password>"', 'click [button "Sign in"]')
            found = {"script": list(names), "secrets": {"user": "$SITE_USER", "password": "$SITE_PASSWORD"}}
            return {"url": answers["login_url"], **found} if answers["login_url"] else found
        case "basic":
            return {"user": "$SITE_USER", "password": "$SITE_PASSWORD"}
        case _:
            return {}


def _agent(model: str) -> dict[str, Any]:
    """An agent that searches a little, with a cap on everything."""
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


def _try(folder: Path) -> int:
    from exact.benchmarks.own import read
    from exact.config import load

    if (folder / "site.yaml").read_text().find("state: login.json") >= 0 and not (folder / "login.json").exists():
        click.echo(f"log in next, then try it: exact login {folder / 'site.yaml'}; exact check '{folder / 'tasks.yaml'}#first' --quick")
        return 0
    [task] = read(folder / "tasks.yaml")
    config = load(folder / "agent.yaml")
    findings, fidelity, writes = asyncio.run(_tried(task, config))
    from exact.cli.check import findings_table

    click.echo(findings_table(findings))
    click.echo(search_summary(fidelity, writes))
    click.echo(f"next: exact run {folder / 'tasks.yaml'} --config {folder / 'agent.yaml'}")
    return 0 if all(finding.passed for finding in findings) else 1


async def _tried(task: Task, config: Config) -> tuple[list[Finding], str, bool]:
    import msgspec

    from exact.benchmarks.open import open_environments
    from exact.environments.check import check

    browser = msgspec.structs.replace(config.browser, screenshots=False)
    config = msgspec.structs.replace(config, browser=browser)
    async with open_environments(task, config, benchmark=False, notify=lambda text: click.echo(text, err=True)) as opened:
        async with opened.open(simulation=True) as environment:
            seen = await environment.reset(task)
            click.echo(f"opened {seen.url}: {json.dumps(seen.title)}, {len(seen.elements)} elements")
            can = environment.capabilities
        return await check(opened, task, quick=True, names=PROMISES), can.fidelity, can.isolated


def search_summary(fidelity: str, isolated: bool) -> str:
    """One line: what a state comes back with, and so what is explored."""
    come = {
        "environment": "browser and application come back as one",
        "client": "the browser comes back whole, the application does not",
        "page": "pages come back without the state of their scripts",
        "replay": "states are reached by a reset and the same steps again",
    }[fidelity]
    writes = "explored and rolled back" if isolated else "held back while looking ahead, and done once, at a commit"
    return f"fidelity {fidelity}: {come}; writes are {writes}"
