"""Literal secrets of tasks and configurations: what a run stores in their place, and which secrets a run knows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exact.config import BrowserConfig, Config
from exact.environments.browser.launch.options import browser_config_of
from exact.environments.sites.accounts import value_of, variable_of
from exact.environments.sites.known import login_secrets, resolved
from exact.environments.sites.site import declared_outside
from exact.errors import UsageError
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import Secret, placeholder
from exact.task import Task
from exact.untrusted import read_yaml

_KEYS = ("_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_AUTH_TOKEN", "_ACCESS_TOKEN")
"""Endings of the names of environment variables that hold keys of services."""


_STORED = re.compile(r"<secret:([^<>]+)>")


class _Slot(NamedTuple):
    """A place in plain data that holds a secret."""

    data: MutableMapping[str, Any]
    key: str
    name: str


def conceal(tasks: Sequence[Task], config: Config, environ: MutableMapping[str, str] | None = None) -> tuple[tuple[Task, ...], Config]:
    """Return tasks and a configuration as they are stored: with placeholders in place of the secrets that stand in them.

    The values go into environment variables of this process, `EXACT_SECRET_<NAME>`, where the placeholders are resolved from.
    """
    found: MutableMapping[str, str] = os.environ if environ is None else environ
    taken, scrubber = dict[str, str](), Scrubber()

    def take(slots: Iterator[_Slot]) -> bool:
        changed = False
        for data, key, name in slots:
            value = data[key]
            if not isinstance(value, str) or not value or value.startswith("$") or _STORED.fullmatch(value):
                continue
            free, number = name, 1
            while taken.get(variable_of(free), value) != value:
                free, number = f"{name}.{number + 1}", number + 1
            taken[variable_of(free)] = found[variable_of(free)] = value
            scrubber.learn([Secret(name.rpartition(".")[2], value)] if len(value) >= 6 else ())
            data[key], changed = placeholder(free), True
        return changed

    plain = msgspec.to_builtins(config)
    changed = [take(_browser_slots(plain["browser"], "config")), take(_tool_slots(plain["tools"]))]
    stored = msgspec.convert(plain, Config) if any(changed) else config
    concealed = [_concealed(task, take) for task in tasks]
    if not scrubber:
        return tuple(concealed), stored
    return tuple(_scrubbed(task, scrubber) for task in concealed), stored


def _concealed(task: Task, take: Any) -> Task:
    metadata, site = dict(task.metadata), task.id.partition("/")[0]
    for key, slots in (("browser", _browser_slots), ("outside", _outside_slots)):
        try:
            data = json.loads(str(metadata.get(key) or ""))
        except ValueError:
            continue  # it is refused where it is used
        if isinstance(data, dict) and take(slots(data, site)):
            metadata[key] = json.dumps(data, ensure_ascii=False)
    return msgspec.structs.replace(task, metadata=metadata) if metadata != task.metadata else task


def _scrubbed(task: Task, scrubber: Scrubber) -> Task:
    """Return a task whose texts do not repeat a secret of its own. Addresses and ids stay, since the task begins there."""
    scrubber = Scrubber(each for each in scrubber.secrets if not each.is_stated_in(task.instruction))
    return msgspec.structs.replace(task, instruction=scrubber.text(task.instruction))


def _browser_slots(browser: dict[str, Any], prefix: str) -> Iterator[_Slot]:
    login = browser.get("login")
    if isinstance(login, dict):
        for group, word in (("secrets", ""), ("headers", "header.")):
            if isinstance(values := login.get(group), dict):
                yield from (_Slot(values, name, f"{prefix}.{word}{name}") for name in values)
        if "password" in login:
            yield _Slot(login, "password", f"{prefix}.basic.password")
        if isinstance(certificate := login.get("certificate"), dict) and "passphrase" in certificate:
            yield _Slot(certificate, "passphrase", f"{prefix}.certificate.passphrase")
    if isinstance(address := browser.get("cdp_url"), str) and ("?" in address or "@" in address):
        yield _Slot(browser, "cdp_url", f"{prefix}.cdp_url")
    if isinstance(proxy := browser.get("proxy"), dict) and "password" in proxy:
        yield _Slot(proxy, "password", f"{prefix}.proxy.password")


def _tool_slots(tools: Sequence[dict[str, Any]]) -> Iterator[_Slot]:
    for number, tool in enumerate(tools):
        for key in ("env", "headers"):
            yield from (_Slot(tool[key], name, f"tools.{number}.{name}") for name in tool.get(key) or ())


def _outside_slots(outside: dict[str, Any], prefix: str) -> Iterator[_Slot]:
    for account in outside.get("accounts") or ():
        if isinstance(account, dict) and isinstance(fields := account.get("fields"), dict):
            yield from (_Slot(fields, field, f"{prefix}.{account.get('name', 'account')}.{field}") for field in fields)


def known_secrets(tasks: Sequence[Task], config: Config, environ: Mapping[str, str] | None = None) -> Iterator[Secret]:
    """Yield the secrets that a run knows: of its log-ins, accounts, headers, saved sessions, proxies and models.

    What is not set in the environment, or does not read, is left out: it is reported where it is used. So are user names and presumed
    secrets that a goal states.
    """
    goals = "\n".join(task.instruction for task in tasks)
    return (each for each in _known(tasks, config, os.environ if environ is None else environ) if not each.is_stated_in(goals))


def _known(tasks: Sequence[Task], config: Config, environ: Mapping[str, str]) -> Iterator[Secret]:
    seen = set[bytes]()
    for task in (None, *tasks):
        try:
            browser = browser_config_of(config.browser, task) if task else config.browser
            outside = declared_outside(task) if task else None
        except UsageError:
            continue
        key = msgspec.json.encode((browser.login, browser.proxy, outside))
        if key in seen:
            continue
        seen.add(key)
        yield from _of_browser(browser, environ)
        for account in outside.accounts if outside else ():
            yield from _values(account.fields, environ)
    for tool in config.tools:
        yield from _values({**tool.env, **tool.headers}, environ)
    yield from _of_models(config, environ)


def _of_browser(browser: BrowserConfig, environ: Mapping[str, str]) -> Iterator[Secret]:
    login = browser.login
    yield from _values(login.secrets, environ)
    yield from login_secrets(login, environ)
    passphrase = login.certificate.passphrase if login.certificate else ""
    address = browser.cdp_url if "?" in browser.cdp_url or browser.cdp_url.startswith(("$", "<secret:")) else ""
    yield from _values({"passphrase": passphrase, "proxy password": browser.proxy.password, "cdp_url": address}, environ)


def _of_models(config: Config, environ: Mapping[str, str]) -> Iterator[Secret]:
    named = {str(each) for each in _below(msgspec.to_builtins(config.models), "api_key_env") if each}
    for variable in sorted(named | {each for each in environ if each.endswith(_KEYS)}):
        if len(value := environ.get(variable, "")) >= 8:
            yield Secret(f"key {variable}", value)


def _below(data: Any, name: str) -> Iterator[Any]:
    """Yield the values of a key at any depth of plain data."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key == name:
                yield value
            else:
                yield from _below(value, name)


def _values(values: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[Secret]:
    return (Secret(name, value) for name, value in resolved(values, environ))


def require_secrets(tasks: Sequence[Task], config: Config, environ: Mapping[str, str] | None = None) -> None:
    """Raise UsageError where a secret that a run does not store is not in the environment."""
    slots = [*_browser_slots(msgspec.to_builtins(config.browser), ""), *_tool_slots(msgspec.to_builtins(config.tools))]
    for task in tasks:
        for key, slots_of in (("browser", _browser_slots), ("outside", _outside_slots)):
            with suppress(ValueError):  # it is refused where it is used
                data = json.loads(str(task.metadata.get(key) or ""))
                slots += slots_of(data, "") if isinstance(data, dict) else ()
    for data, key, _ in slots:
        if stored := _STORED.fullmatch(str(data[key])):
            value_of(f"the secret {stored[1]}", stored[0], os.environ if environ is None else environ)


def read_secrets(path: Path) -> dict[str, str]:
    """Return the secrets in a YAML mapping of variables, `EXACT_SECRET_NAME`, to values. Raises UsageError."""
    try:
        data = read_yaml(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: name a YAML file") from error
    except UsageError:  # its message may repeat a secret
        raise UsageError(f"{path} is not YAML: write `EXACT_SECRET_NAME: value`") from None
    if not isinstance(data, dict) or not all(re.fullmatch(r"EXACT_SECRET_[A-Z0-9_]+", str(key)) for key in data):
        raise UsageError(f"{path} holds no secrets: write `EXACT_SECRET_NAME: value`, one a line")
    return {str(key): str(value) for key, value in data.items()}
