"""Tasks on a site of one's own: a site file, a task file, and evaluators."""

from exact.benchmarks.own.files import OwnTask, SiteFile, own_task, read_site, read_tasks
from exact.benchmarks.own.judge import evaluator_of

__all__ = ["OwnTask", "SiteFile", "evaluator_of", "own_task", "read_site", "read_tasks"]
