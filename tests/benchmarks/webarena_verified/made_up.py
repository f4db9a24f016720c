"""Made-up answers and traffic that fulfil a task of the data set, as far as they can be written down from what its evaluators expect."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from exact.benchmarks.webarena_verified.install import TASKS, VerifiedTask, data_set, interpreter
from exact.benchmarks.webarena_verified.suite import RecordedAttempt
from exact.environments.browser.network.har import HarExchange, entry
from exact.errors import UsageError

SITES = {site: f"http://127.0.0.1:{9101 + at}" for at, site in enumerate(("shopping", "reddit", "gitlab", "map", "wikipedia"))}
SITES["shopping_admin"] = "http://127.0.0.1:9100/admin"
HTML = (("accept", "text/html"),)
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def python() -> Any:
    """Return the Python of the evaluators. The test is skipped where they are missing."""
    try:
        return interpreter()
    except UsageError:
        pytest.skip("webarena-verified is not there: shells/setup.sh --webarena-verified")


def data() -> list[dict[str, Any]]:
    python()
    found: list[dict[str, Any]] = json.loads((data_set() / TASKS).read_text())
    return found


def filled(url: str) -> str:
    for site, address in SITES.items():
        url = url.replace(f"__{site.upper()}__", address)
    return url


def plain(value: Any) -> bool:
    """Return whether a value, and all in it, is meant as it is written: no pattern."""
    if isinstance(value, dict):
        return all(map(plain, value.values()))
    return all(map(plain, value)) if isinstance(value, list) else not (isinstance(value, str) and value.startswith("^"))


def first(value: Any) -> Any:
    """Return the first of the alternatives of a value."""
    return first(value[0]) if isinstance(value, list) and value else value


def exchanges(task: dict[str, Any]) -> list[HarExchange] | None:
    """Return traffic that fulfils a task; None where a pattern or a path into JSON leaves open what it is."""
    made = [HarExchange(method="GET", url=filled(url), started=0.0, headers=HTML, status=200) for url in task["start_urls"]]
    for each in task["eval"]:
        wanted = each["expected"]
        if each["evaluator"] != "NetworkEventEvaluator" or each.get("should_not_exist"):
            continue
        sent, content = wanted.get("post_data") or {}, wanted.get("response_content") or {}
        if not plain(wanted) or any(name.startswith("$") for name in (*sent, *content)) or wanted.get("response_cookies"):
            return None
        made.append(_exchange(wanted, sent, content))
    return made


def _exchange(wanted: dict[str, Any], sent: dict[str, Any], content: dict[str, Any]) -> HarExchange:
    url = filled(first(wanted["url"]))
    if query := wanted.get("query_params"):
        url += ("&" if "?" in url else "?") + urlencode({name: first(value) for name, value in query.items()}, quote_via=quote)
    headers = [(name, filled(str(first(value)))) for name, value in (wanted.get("headers") or {}).items()]
    status = wanted.get("response_status", 200)
    redirect = (("location", SITES["map"]),) if 300 <= status < 400 else ()
    body = "&".join(f"{quote(name)}={quote(str(first(value)))}" for name, value in sent.items() if value is not None)
    return HarExchange(
        method=wanted.get("http_method", "GET"),
        url=url,
        started=1.0,
        headers=(*HTML, *headers, *((("content-type", FORM),) if sent else ())),
        sent=body.encode() if sent else None,
        status=status,
        answer_headers=(("content-type", JSON), *redirect),
        body=json.dumps(content).encode() if content else None,
    )


def answer(task: dict[str, Any]) -> str | None:
    """Return the answer that a task expects; None where a pattern leaves open what it is."""
    judged = next(each for each in task["eval"] if each["evaluator"] == "AgentResponseEvaluator")
    wanted, schema = judged["expected"], judged["results_schema"].get("items", {})
    if not plain(wanted):
        return None
    items = wanted.get("retrieved_data")
    return json.dumps({**wanted, "retrieved_data": items and [_item(each, schema) for each in items]})


def _item(value: Any, schema: dict[str, Any]) -> Any:
    """Return a value without alternatives: a list is one, unless the schema names it."""
    if isinstance(value, dict):
        return {name: _item(each, schema.get("properties", {}).get(name, {})) for name, each in value.items()}
    return value if schema.get("type") == "array" else first(value)


def attempt(task: dict[str, Any], given: str | None, made: list[HarExchange]) -> RecordedAttempt:
    """Return an attempt at a task, with this answer and this traffic."""
    kept = msgspec.convert(task, VerifiedTask).kept
    entries = [entry(each, kept) for each in made]
    return RecordedAttempt(
        task_id=task["task_id"], answer=given, entries=entries, environments={site: SITES[site] for site in task["sites"]}
    )
