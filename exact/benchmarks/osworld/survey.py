"""Survey of the tasks of an OSWorld checkout that can run here.

`python -m exact.benchmarks.osworld.survey` reads all task files and counts the reasons.

With desktop_env (`shells/setup.sh --osworld`) it also looks up each step, getter and metric that they name. The exit status is 1 if a file
cannot be read, or names a function that desktop_env lacks.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from exact.benchmarks.osworld.format import CODE, Getter, OSWorldTask, of
from exact.benchmarks.osworld.suite import FOLDER, OSWorld, judges, programs
from exact.errors import ExactError, UsageError

HERE = "nothing outside the machine"
REASONS = (
    ("an account of a service", {"googledrive", "login", "googledrive_file"}),
    ("sites of the internet", {
        "chrome_open_tabs", "active_tab_html_parse", "active_tab_info", "active_tab_url_parse", "url_dashPart", "info_from_website",
        "page_info", "pdf_from_url", "gotoRecreationPage_and_get_html_content", "macys_product_url_parse", "url_path_parse",
        "active_url_from_accessTree", "open_tabs_info", "cookie_data", "number_of_search_results",
    }),
    ("files of the internet", {"download", "cloud_file", "update_browse_history"}),
)  # fmt: skip
"""Requirements of tasks, by the types of steps and getters that need it. The first that fits counts."""
_SETTINGS = "chrome://"
_PACKAGES = {"compare_audios": "librosa", "compare_image_text": "easyocr"}


class Survey(NamedTuple):
    """Result for a collection."""

    reasons: dict[str, str]
    """The requirement of each task that is missing here, by task id; HERE if nothing is missing."""
    unreadable: dict[str, str]
    lacking: dict[str, list[str]]
    """Functions that desktop_env lacks, by the id of the task that names it."""


def reason(task: OSWorldTask) -> str:
    """Return the feature that a task needs and a desktop without a network lacks; HERE if there is none."""
    evaluator = task.evaluator
    if not task.possible and not task.config:
        return HERE
    if CODE in programs(task):
        return "Visual Studio Code, which Debian has not"
    results = [each for part in (evaluator.result, evaluator.expected) for each in _each(part)]
    kinds = {step.type for step in (*(task.config or ()), *evaluator.postconfig)} | {each.type for each in results}
    if _SETTINGS in msgspec.json.encode(task.raw).decode():
        kinds -= {"active_url_from_accessTree"}
    for name, types in REASONS:
        if kinds & types:
            return name
    for metric in [evaluator.func] if isinstance(evaluator.func, str) else evaluator.func:
        if metric in _PACKAGES:
            return f"the package {_PACKAGES[metric]}, of gigabytes"
    return HERE


def _each(part: Getter | Sequence[Getter | None] | None) -> list[Getter]:
    return [each for each in (part if isinstance(part, tuple) else (part,)) if isinstance(each, Getter)]


async def survey(suite: OSWorld, *, resolve: bool) -> Survey:
    """Read all task files. `resolve`: look up the functions that they name in desktop_env. Raises UsageError if it is not installed."""
    reasons, unreadable, raw = dict[str, str](), dict[str, str](), dict[str, Mapping[str, object]]()
    for id in suite.ids():
        try:
            task = of(suite.task(id))
            reasons[id], raw[id] = reason(task), task.handed()
        except UsageError as error:
            unreadable[id] = str(error)
    lacking: dict[str, list[str]] = {}
    if resolve:
        async with judges().open(simulation=False) as judge:
            found = await judge.command("resolve", tasks=list(raw.values()))
        lacking = {id: names for id, names in zip(raw, found["lacking"], strict=True) if names}
    return Survey(reasons, unreadable, lacking)


def main() -> int:
    """Print the counts. Return the exit status."""
    suite = OSWorld()
    try:
        if not suite.ids():
            raise UsageError(f"OSWorld's tasks are not here: set {FOLDER} to the folder evaluation_examples of a checkout")
        found = asyncio.run(survey(suite, resolve=True))
    except ExactError as error:
        sys.stderr.write(f"survey: {error}\n")
        return 2
    lines = [f"{count:5}  {name}" for name, count in Counter(found.reasons.values()).most_common()]
    faults = [f"unreadable: {text}" for text in found.unreadable.values()]
    faults += [f"{id}: desktop_env lacks {', '.join(names)}" for id, names in found.lacking.items()]
    total = f"{len(found.reasons)} task files read; {len(found.unreadable)} unreadable; {len(found.lacking)} name what desktop_env lacks"
    sys.stdout.write("\n".join(["tasks  need", *lines, *faults, total, ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
