"""`exact run`: run one agent on tasks.

`exact resume`: resume a run that was interrupted or that failed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.task_files import are_task_files, is_task_file, read_task_files
from exact.cli.terminal import complete_tasks, configuration_option, echo
from exact.config import Config, load
from exact.errors import UsageError
from exact.library.tasks import page_task
from exact.origins import is_web
from exact.task import Task
from exact.untrusted import read_bounded, read_yaml

if TYPE_CHECKING:
    from exact.library.goal import Effort
    from exact.runs.journal.store import RunFolder
    from exact.runs.way import Ways

_LONGEST_SCHEMA = 64 * 1024
"""Bytes of the largest schema of an answer."""


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...", shell_complete=complete_tasks)
@configuration_option("YAML file of the agent, its search, models and limits. Default: the built-in agent.")
@click.option(
    "--set", "-s", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one configuration key: search.iterations=32. Repeatable."
)
@click.option("--strict-nltk", is_flag=True, help="Split answers in WebArena's and VisualWebArena's tasks with nltk, which you install.")
@click.option("--out", "-o", type=RunFolderPath(), help="Folder to write the run to. Default: runs/<name>-<number>.")
@click.option("--url", help="Start page on your own site, instead of a benchmark's task.")
@click.option("--goal", help="Instruction for the agent. Requires --url or --site.")
@click.option(
    "--model",
    metavar="MODEL",
    help="Model of the agent, instead of --config: a name at OpenAI, provider/name, or an address such as http://localhost:8080/v1.",
)
@click.option(
    "--effort",
    type=click.Choice(["low", "medium", "high"]),
    help="low: no search. medium: search if the model is not sure, or may write. high: search at each step. Default: low with --model.",
)
@click.option(
    "--answer",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON schema of the object that the answer is put into. results.jsonl holds the object as `data`. Excludes TASK.",
)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="Site file, as written by `exact init`. Requires --goal.")
@click.option(
    "--services",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML list of the site's services (command, ready_url), which run in one sandbox with the browser. Requires --url.",
)
@click.option(
    "--tasks", "own", type=click.Path(path_type=Path), metavar="FILE", help="YAML list of your own tasks; see docs/benchmarks.md."
)
@click.option(
    "--from",
    "source",
    type=RunFolderPath(),
    metavar="RUN",
    help="Carry out the committed actions of an earlier run again, without a model; search where a page differs. Default of TASK and of "
    "--config: those of RUN.",
)
@click.option("--yes", is_flag=True, help="With --from: agree to the writes of RUN, which are listed before the start.")
@click.option(
    "--var", "texts", multiple=True, metavar="FIELD=TEXT", help="With --from: type another text into a field. --dry-run lists the fields."
)
@click.option("--fail-unsolved", is_flag=True, help="Exit with code 3 unless every task is solved.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Further origin that pages may be opened from: https://host[:port]. Repeatable.",
)
@click.option(
    "--tools",
    multiple=True,
    metavar="FILE.py[:NAME]",
    help="Function that the agent may call, or all that a file declares by @exact.tool. Repeatable; for MCP servers: docs/tools.md.",
)
@click.option("--allow-same-task", is_flag=True, help="Also show reflections from the same task. The results record it.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the calls, files and costs of the run at worst, and the origins that a site with a log-in talks to, and stop.",
)
@click.option("--watch", is_flag=True, help="Show the browser window.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each task.")
@on_storage("out", write=True)
@on_storage("source")
def run(
    tasks: tuple[str, ...], path: Path | None, overrides: tuple[str, ...], out: Path | None, url: str | None, goal: str | None,
    site: Path | None, services: Path | None, origins: tuple[str, ...], allow_same_task: bool, dry_run: bool, watch: bool, as_json: bool,
    own: Path | None, fail_unsolved: bool, junit: Path | None, strict_nltk: bool, model: str | None, effort: Effort | None,
    answer: Path | None, tools: tuple[str, ...], source: Path | None, yes: bool, texts: tuple[str, ...],
) -> int:  # fmt: skip
    """Run one agent on tasks and write a report for each.

    TASK is an id or a pattern: miniwob/click-test, 'miniwob/click-*?seed=1..3'. `exact list tasks` prints the ids. TASK may also be a file
    of tasks on your own site: tasks.yaml for all of them, 'tasks.yaml#open-*' for some.
    """
    overrides = (*overrides, *("models.strict_nltk=true",) * strict_nltk)
    earlier = _earlier(source, yes or texts)
    default = earlier.path / "config.yaml" if earlier is not None and path is None else path
    config = _config(_named(model, effort, path, overrides, dry_run=dry_run) or load(default, overrides), origins, watch)
    if tools:
        from exact.environments.tools.open import with_tool_names

        config = with_tool_names(config, tools)
    if allow_same_task:
        config = msgspec.structs.replace(config, reflection=msgspec.structs.replace(config.reflection, exclude_same_task=False))
    own_site = bool(url or site or own) or any(is_task_file(each) for each in tasks)
    if earlier is not None and not (own_site or goal or services or tasks):
        selected, own_site = earlier.manifest.tasks, not earlier.manifest.benchmark
    else:
        selected = _selected(tasks, config, url=url, goal=goal, site=site, services=services, own=own)
    selected = _answered(selected, answer, tasks)
    selected, ways = _ways(selected, earlier, texts)
    if config.value.kind == "reward":
        from exact.runs.runner import refuse_reward

        refuse_reward(selected, benchmark=not own_site)
    if dry_run:
        from exact.cli.dry_run import describe, served_tools_shown
        from exact.cli.partners import looked_at

        echo(describe(selected, config, out or Path("runs", f"{config.name}-N"), benchmark=not own_site))
        _tell_ways(ways)
        if own_site and (seen := looked_at(selected, config)):
            echo(seen)
        if served := served_tools_shown(config):
            echo(served)
        return 0
    from exact.benchmarks.open import check_environments
    from exact.cli.attempt import attempt
    from exact.runs.lock import new_folder
    from exact.runs.runner import check_models, create

    check_models(config)  # a missing key, package or browser is reported before anything is written
    check_environments(selected, config, benchmark=not own_site)
    ways = _agreed(ways, yes=yes)
    folder = create(out or new_folder(Path("runs"), config.name), selected, config, benchmark=not own_site, ways=ways)
    return attempt(folder, config, as_json=as_json, fail_unsolved=fail_unsolved, junit=junit)


def _earlier(source: Path | None, others: object) -> RunFolder | None:
    """Return the run that --from names. Raises UsageError if it is of a stranger, or an option lacks it."""
    if source is None:
        if others:
            raise UsageError("--yes and --var require --from RUN: they are about the actions of an earlier run")
        return None
    from exact.cli.trust import require_trust
    from exact.config import load_recorded
    from exact.runs.journal.store import RunFolder
    from exact.runs.secrets import require_secrets

    folder = RunFolder.open(source)
    require_trust(folder.path)
    require_secrets(folder.manifest.tasks, load_recorded(folder.path))
    return folder


def _selected(
    tasks: tuple[str, ...], config: Config, *, url: str | None, goal: str | None, site: Path | None, services: Path | None, own: Path | None
) -> tuple[Task, ...]:
    """Return the tasks that the command names. Raises UsageError."""
    if own is not None:
        return _own_tasks(own, url or goal or services or site or tasks)
    if site:
        return _on_site(site, url, goal, tasks)
    return _own_site(url, goal, services, tasks) if url or goal or services else _tasks(tasks, config)


def _ways(tasks: tuple[Task, ...], earlier: RunFolder | None, texts: tuple[str, ...]) -> tuple[tuple[Task, ...], Ways]:
    """Return the tasks with the texts of --var, and their ways in the earlier run. Raises UsageError."""
    if earlier is None:
        return tasks, {}
    from exact.library.rerun import earlier_way

    wanted = dict[str, str]()
    for each in texts:
        name, sign, text = each.partition("=")
        if not sign or not name:
            raise UsageError(f"--var {each!r}: write FIELD=TEXT, such as --var 'Name=Ann'")
        wanted[name] = text
    found = [earlier_way(earlier.path, task, wanted) for task in tasks]
    return tuple(task for task, _, _ in found), {task.id: (way, blobs) for task, way, blobs in found}


def _tell_ways(ways: Ways) -> None:
    """Print the writes of ways, and the fields whose texts --var replaces."""
    from exact.cli.dry_run import LABEL
    from exact.library.rerun import listed_writes
    from exact.runs.way import typed_fields

    for line in listed_writes(ways):
        echo(f"  {'writes again':{LABEL}} {line}")
    for way, blobs in ways.values():
        for name, text in typed_fields(way, blobs).items():
            echo(f"  {'variable':{LABEL}} {name}={way.texts.get(text, text)}")


def _agreed(ways: Ways, *, yes: bool) -> Ways:
    """Print the writes of ways, and return the ways with the yes to them. Raises UsageError without a yes."""
    from exact.library.rerun import approved, listed_writes

    if not (lines := listed_writes(ways)):
        return ways
    echo("The earlier run wrote. These requests may be sent again, each as often as then:", err=True)
    for line in lines:
        echo(f"  {line}", err=True)
    if not yes and not (sys.stdin.isatty() and click.confirm("Send them?", err=True)):
        raise UsageError("the writes of the earlier run were not agreed to, and nothing was done: --yes agrees to those that are listed")
    return approved(ways)


def _named(model: str | None, effort: Effort | None, path: Path | None, overrides: tuple[str, ...], *, dry_run: bool) -> Config | None:
    """Return the configuration of --model and --effort; None if neither is given. What search was shown to bring is printed."""
    if model is None and effort is None:
        return None
    if path is not None:
        raise UsageError(f"{'--model' if model else '--effort'} excludes --config, which names the agent: choose one")
    from exact.cli.signals import run_async
    from exact.library.goal import agent_for, as_served, estimated

    config = agent_for(model or "", effort, overrides=overrides)
    if search := estimated(config).search:
        echo(f"exact: gain of search with this model: {search}", err=True)
    return config if dry_run or not model else run_async(as_served(config))


def _config(config: Config, origins: tuple[str, ...], watch: bool) -> Config:
    from exact.search.registry import algorithm

    algorithm(config.search)
    if config.models.strict_nltk:
        from exact.benchmarks.webarena.text import word_tokenize

        word_tokenize()
    browser = msgspec.structs.replace(
        config.browser, headed=watch or config.browser.headed, allow_origins=(*config.browser.allow_origins, *origins)
    )
    return msgspec.structs.replace(config, browser=browser)


def _tasks(patterns: tuple[str, ...], config: Config) -> tuple[Task, ...]:
    if not patterns:
        raise UsageError("no task given: name one, e.g. `exact run miniwob/click-test`, or give --url and --goal")
    if are_task_files(patterns):
        return read_task_files(patterns)
    from exact.benchmarks import registry

    registry.use(config)
    return tuple(registry.expand(registry.own_suites(patterns)))


def _answered(tasks: tuple[Task, ...], answer: Path | None, patterns: tuple[str, ...]) -> tuple[Task, ...]:
    """Return the tasks with the schema of their answer in a file, if there is one. Raises UsageError if it is none."""
    if answer is None:
        return tasks
    if patterns:
        raise UsageError("--answer excludes TASK: a benchmark's answers are texts; give --url and --goal, --site, or --tasks")
    from exact.agents.answer import checked_schema

    try:
        schema = checked_schema(read_bounded(answer, _LONGEST_SCHEMA).decode(errors="replace"))
    except OSError as error:
        raise UsageError(f"cannot read {answer}: {error.strerror}: name a JSON file") from error
    return tuple(msgspec.structs.replace(task, answer=schema) for task in tasks)


def _on_site(path: Path, url: str | None, goal: str | None, tasks: tuple[str, ...]) -> tuple[Task, ...]:
    from exact.benchmarks.own.files import TaskEntry, own_task, read_site

    if not goal or tasks:
        raise UsageError('--site requires --goal and no TASK: exact run --site site.yaml --goal "Find the opening hours"')
    return (own_task(read_site(path), TaskEntry(id="goal", instruction=goal, start=url or ""), path.parent),)


def _own_tasks(path: Path, others: object) -> tuple[Task, ...]:
    if others:
        raise UsageError("--tasks excludes TASK, --url, --goal, --site and --services: each task of the file has its own")
    from exact.benchmarks.own.files import read

    return read(path)


def _own_site(url: str | None, goal: str | None, services: Path | None, tasks: tuple[str, ...]) -> tuple[Task, ...]:
    if not (url and goal) or tasks:
        raise UsageError('--url requires --goal and no TASK: exact run --url https://example.org --goal "Find the opening hours"')
    if not is_web(url):
        raise UsageError(f"invalid --url {url!r}: write a web address such as https://host/path")
    task = page_task(url, goal)
    return (task if services is None else _with_services(task, services),)


def _with_services(task: Task, path: Path) -> Task:
    """Return the task with the services that a file declares. Raises UsageError if the file is not a list of services."""
    from exact.environments.sandbox.service import declared_services, located

    try:
        text = msgspec.json.encode(read_yaml(path)).decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: name a YAML file") from error
    except (TypeError, ValueError) as error:  # a set, or a key that is not a text
        raise UsageError(f"{path} holds no list of services: {error}: write `- command: [...]` and `ready_url: ...`") from error
    services = declared_services(msgspec.structs.replace(task, metadata={"services": text}))
    placed = msgspec.json.encode([located(each, path.parent) for each in services]).decode()
    return msgspec.structs.replace(task, metadata={"services": placed})


@click.command()
@click.argument("run", type=RunFolderPath())
@click.option(
    "--repeat-uncertain", is_flag=True, help="Repeat a committed action that a crash interrupted, although it may have been executed."
)
@click.option(
    "--secrets",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML file of the secrets that the run does not store, EXACT_SECRET_NAME: value.",
)
@click.option("--fail-unsolved", is_flag=True, help="Exit with code 3 unless every task is solved.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each task.")
@on_storage("run", write=True)
def resume(run: Path, repeat_uncertain: bool, secrets: Path | None, as_json: bool, fail_unsolved: bool, junit: Path | None) -> int:
    """Resume RUN at the end of its journals.

    Recorded model calls and environment steps are not repeated. A paused search continues. Secrets that stood in the site file are not
    stored: they are read from the environment variables that the error names, or from --secrets.
    """
    from exact.cli.attempt import attempt
    from exact.cli.trust import require_trust
    from exact.runs.journal.commands import lift
    from exact.runs.lock import sole
    from exact.runs.runner import reopen
    from exact.runs.secrets import read_secrets, require_secrets

    folder, config = reopen(run)
    require_trust(run)
    if secrets is not None:
        os.environ.update(read_secrets(secrets))
    require_secrets(folder.manifest.tasks, config)
    with sole(folder.path):
        for task in folder.manifest.tasks:
            lift(folder.task_folder(task) / "journal.jsonl")
    return attempt(folder, config, as_json=as_json, repeat_uncertain=repeat_uncertain, fail_unsolved=fail_unsolved, junit=junit)
