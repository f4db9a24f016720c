"""The user's own tasks: a list of tasks, or a site file and a task file, with their evaluators."""

from exact.benchmarks.own.evaluate import by_rules, evaluator
from exact.benchmarks.own.files import SiteFile, TaskEntry, own_task, read, read_site

__all__ = ["TaskEntry", "SiteFile", "by_rules", "evaluator", "own_task", "read", "read_site"]
