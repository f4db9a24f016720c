"""What a run names beyond its folder: code, programs, files, servers and values of this machine that going on with it would use."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import msgspec

from exact.config import Config
from exact.environments.browser.network.deny import is_private, written_address
from exact.origins import host_name, split_url
from exact.plugins import is_plugin
from exact.task import Task

_PLAIN = {
    *("removed", "name", "prefix", "options", "role", "model", "extra"),
    *("locale", "timezone", "user_agent", "contact", "permissions", "mask", "masks", "allow_origins", "deny"),
    *("geolocation.latitude", "geolocation.longitude", "width", "height", "scale", "clock", "html", "dialogs"),
    *("login.url", "login.script", "login.secret_origins", "login.expired", "login.proof", "proxy.bypass", "sandbox.user"),
    *("download_bytes", "settle_seconds", "answer_seconds", "screenshots"),
}
"""Keys whose texts name nothing outside: whole names, or their ends. All other texts of a configuration do."""
_KINDS = {"kind", "algorithm", "provider"}
"""Keys that hold the name of a part, which is code of this package or of an installed one unless it is written as a plug-in."""
_METADATA = {"template", "masks", "tabs", "geolocation", "site", "difficulty"}
"""Facts of a task by which nothing outside is used."""
_LOCAL = {"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test", "onion"}
"""Ends of names that are no names of the public internet."""
_DECLARED = ("outside", "services")
"""Facts of a task that hold JSON, of which each program, file and address is named by itself."""
_WHOLE = (".hosts", ".env", ".fields", ".headers", ".secrets")
"""Ends of keys whose names are anybody's choice, so that they are named as one."""
_LONGEST = 2000
"""Characters of the longest value that is shown."""
_VERBS = (
    (("evaluate", "environment", "suite", "suites", "kind", "algorithm", "providers"), "runs the code"),
    (("command", "reset", "snapshot", "restore", "fork", "drop", "end"), "runs the program"),
    (("services", "outside", "desktop"), "runs the programs"),
    (("base_url",), "sends a key to"),
    (("api_key_env",), "sends the key"),
    (("secrets", "headers", "fields", "user", "password", "passphrase"), "sends values of this machine:"),
    (("outside.harmless", "outside.reads", "tools.reads"), "counts as no write, and may send while searching,"),
    (("url", "base", "ready_url"), "asks"),
    (("memory", "cache.path", "traces", "recording.path"), "writes to"),
    (("files", "images", "state", "certificate", "key", "pfx", "authorities", "prompts", "examples", "calibration", "reads"), "reads"),
    (("folder",), "works in"),
    (("mounts", "root"), "mounts"),
    (("server", "hosts"), "sends traffic to"),
    (("trusted",), "trusts the certificates"),
    (("env",), "sets"),
    (("start",), "acts at"),
)


class Named(NamedTuple):
    """A thing outside a run folder."""

    key: str
    """Key of the configuration, or field of the task."""
    value: str
    """What stands there."""

    def __str__(self) -> str:
        """Say what is done, with what, and which key says so."""
        return self.told(_LONGEST)

    def told(self, most: int) -> str:
        """Say the same, with at most `most` characters of the value. What is left out is counted."""
        left = len(self.value) - most
        value = self.value if left <= 0 else f"{self.value[:most]}… and {left:,} more characters"
        return f"{(*(verb for _, verb in _VERBS), 'uses')[self.rank]} {value} ({self.key})"

    @property
    def rank(self) -> int:
        """Place in the order of the list, in which code comes first."""
        return next((at for at, (keys, _) in enumerate(_VERBS) if any(_ends(self.key, each) for each in keys)), len(_VERBS))


def named(config: Config, tasks: Sequence[Task]) -> list[Named]:
    """Return what a configuration and tasks name, code first. A new key counts as one that names something, until `_PLAIN` lists it."""
    found = [*_in_struct(config, type(config)(), "")]
    for task in tasks:
        found += _in_task(task)
    return sorted(dict.fromkeys(found), key=lambda each: each.rank)


def _in_struct(value: msgspec.Struct, default: msgspec.Struct | None, where: str) -> Iterator[Named]:
    for field in msgspec.structs.fields(value):
        given = getattr(value, field.name)
        usual = getattr(default, field.name) if default is not None else None
        if given != usual:
            yield from _in_value(given, usual, f"{where}{field.name}", field.type)


def _in_value(given: Any, usual: Any, key: str, kind: Any) -> Iterator[Named]:
    if isinstance(given, msgspec.Struct):
        yield from _in_struct(given, usual if type(usual) is type(given) else _default(type(given)), f"{key}.")
    elif isinstance(given, tuple | list) and any(isinstance(each, msgspec.Struct) for each in given):
        for number, each in enumerate(given):
            yield from _in_value(each, None, f"{key}[{number}]", kind)
    elif isinstance(given, Mapping) and any(isinstance(each, msgspec.Struct) for each in given.values()):
        for name, each in given.items():
            yield from _in_value(each, None, f"{key}.{name}", kind)
    elif not given or isinstance(given, bool | int | float) or _words(kind):
        return
    elif not _is_plain(key, given):
        yield Named(key, given if isinstance(given, str) else json.dumps(msgspec.to_builtins(given), ensure_ascii=False))


def _default(kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    required = any(field.required for field in msgspec.structs.fields(kind))
    return None if required else kind()


def _words(kind: Any) -> bool:
    """Return whether a type holds only words of a list."""
    parts = get_args(kind)
    return bool(parts) and all(isinstance(part, str) or part in (..., type(None)) or _words(part) for part in parts)


def _is_plain(key: str, given: Any) -> bool:
    if any(_ends(key, each) for each in _KINDS):
        return not is_plugin(str(given))
    return any(_ends(key, each) for each in _PLAIN)


def _ends(key: str, end: str) -> bool:
    plain = key.partition("[")[0] + key.partition("]")[2] if "[" in key else key
    return plain == end or plain.endswith(f".{end}")


def _in_task(task: Task) -> Iterator[Named]:
    for url in (task.start, *task.origins, *str(task.metadata.get("tabs") or "").split()):
        if _is_local(url):
            yield Named("start", url)
    yield from (Named("files", each) for each in task.files)
    yield from (Named("images", each) for each in task.images if not each.startswith("data:"))
    for key, value in (*task.metadata.items(), *task.private.items()):
        if value is None or isinstance(value, bool | int | float) or (key in _METADATA and key in task.metadata):
            continue
        if key == "browser":
            yield from _in_browser(str(value))
        elif key in _DECLARED and key in task.metadata:
            yield from _in_declared(key, str(value))
        else:
            yield Named(key, str(value))


def _in_browser(text: str) -> Iterator[Named]:
    """Yield what the browser of a task names, in plain data."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return  # it is refused where it is used
    waiting = [("browser", data)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict) and value and not key.endswith(_WHOLE):
            waiting += [(f"{key}.{name}", each) for name, each in value.items()]
        elif value and not isinstance(value, bool | int | float) and not _is_plain(key, value):
            yield Named(key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _in_declared(name: str, text: str) -> Iterator[Named]:
    """Yield what sites and services of a task name: each program, file and address apart, so that a long list hides none."""
    try:
        waiting = [(name, json.loads(text))]
    except (ValueError, RecursionError):
        yield Named(name, text)
        return
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict) and not key.endswith(_WHOLE):
            waiting += [(f"{key}.{part}", each) for part, each in value.items() if part not in ("name", "method")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            waiting += [(f"{key}[{number}]", each) for number, each in enumerate(value)]
        elif value and not isinstance(value, bool | int | float):
            is_command = key.endswith(".command") and isinstance(value, list)
            yield Named(key, shlex.join(map(str, value)) if is_command else value if isinstance(value, str) else json.dumps(value))


def _is_local(url: str) -> bool:
    """Return whether an address is of this machine or its network, as far as it is written so: `127.1`, `router`, `nas.local`."""
    host = host_name((split_url(url).hostname or "").strip("[]"))
    if (address := written_address(host)) is not None:
        return is_private(address)
    inner, _, last = host.rpartition(".")
    return bool(host) and (not inner or last in _LOCAL or not (last.isalpha() or last.startswith("xn--")))
