"""Program that scores attempts with the evaluators of webarena-verified. The Python that has the package runs it.

Each line of the input is an attempt, a JSON object: `task_id`, `answer` (a text or null), `entries` (of a HAR) and `environments` (the
address of each site). Each line of the output is a result: `status` (`success`, `failure` or `error`) and `reasons`, a list of texts.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any


def main() -> None:
    """Score the attempts of the input. The package's output goes to the standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        from webarena_verified.api import WebArenaVerified
        from webarena_verified.types.config import WebArenaVerifiedConfig

        benchmarks: dict[str, Any] = {}
        for line in sys.stdin.buffer:
            attempt = json.loads(line)
            sites = json.dumps(attempt["environments"], sort_keys=True)
            if sites not in benchmarks:
                environments = {site: {"urls": [url]} for site, url in attempt["environments"].items()}
                benchmarks[sites] = WebArenaVerified(config=WebArenaVerifiedConfig(environments=environments))
            print(json.dumps(scored(benchmarks[sites], attempt)), file=sys.__stdout__, flush=True)


def scored(benchmark: Any, attempt: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an attempt.

    An answer that the evaluators cannot read, such as one whose status is a number, fails the attempt: without it they do not fail.
    """
    fields = {"task_id": attempt["task_id"], "network_trace": attempt["entries"]}
    result = benchmark.evaluate_task(agent_response=attempt["answer"], **fields)
    if result.status != "error":
        return {"status": str(result.status), "reasons": reasons(result)}
    if attempt["answer"] is not None and benchmark.evaluate_task(agent_response=None, **fields).status != "error":
        return {"status": "failure", "reasons": ["the evaluators cannot read the answer", *reasons(result)]}
    return {"status": "error", "reasons": reasons(result)}


def reasons(result: Any) -> list[str]:
    """Return the evaluators' reasons for an attempt that did not succeed."""
    found = [result.error_msg]
    for each in result.evaluators_results:
        found.append(each.error_msg)
        for assertion in each.assertions or ():
            found += [*(assertion.assertion_msgs or ()), assertion.error_msg]
    return [text for text in found if text]


if __name__ == "__main__":
    main()
