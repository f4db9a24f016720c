"""Conformance checks of the environment contract that searches rely on."""

from exact.environments.check.base import Check, Finding, Subject, written_actions
from exact.environments.check.suite import CHECKS, check

__all__ = ["CHECKS", "Check", "Finding", "Subject", "check", "written_actions"]
