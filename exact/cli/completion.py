"""What a shell completes: commands, task ids, the names of shipped configurations. Nothing is fetched or started for it."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from exact.errors import ExactError

_KNOWN_HERE = ("miniwob", "desktop", "trac", "wagtail", "browsergym", "osworld")
"""Suites whose ids are known without fetching a task file."""


def complete_tasks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the suites, and after a slash the tasks and lists of a suite, that begin so; else file names."""
    from exact.benchmarks import registry

    try:
        known = list(registry.suites())
        suite, slash, _ = incomplete.partition("/")
        if not slash:
            found = _beginning([f"{name}/" for name in known], incomplete)
        elif suite in _KNOWN_HERE:
            tasks = registry.suite(suite)
            found = _beginning([*tasks.ids(), *(f"{suite}/@{name}" for name in tasks.lists())], incomplete)
        else:
            found = []
    except ExactError:
        found = []
    return found or [CompletionItem(incomplete, type="file")]


def complete_configurations(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the shipped configurations that begin so; else file names."""
    from exact.config.reading import shipped

    return _beginning(sorted(shipped()), incomplete) or [CompletionItem(incomplete, type="file")]


def _beginning(names: Sequence[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
