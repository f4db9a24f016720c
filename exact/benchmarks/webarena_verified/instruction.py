"""The goal of a task as agents get it: the evaluators read the answer as JSON."""

from __future__ import annotations

_FORM = """

The final answer is one JSON object with these keys:
- "task_type": "RETRIEVE" where the goal asks for data, "MUTATE" where it asks for a change, "NAVIGATE" where it asks for a page.
- "status": "SUCCESS", or why the goal cannot be reached: "NOT_FOUND_ERROR" (what it names does not exist), "ACTION_NOT_ALLOWED_ERROR" (the
  site does not offer it), "PERMISSION_DENIED_ERROR" (this user may not do it), "DATA_VALIDATION_ERROR" (an input is missing or invalid) or
  "UNKNOWN_ERROR".
- "retrieved_data": for RETRIEVE a list of all that was asked for, as texts, numbers, booleans or objects of one form; otherwise null.
- "error_details": null, or the reason in one sentence where the status is not SUCCESS."""


def instruction(intent: str) -> str:
    """Return the goal with the form of the answer."""
    return intent + _FORM
