"""Which modules a start imports. How long it takes is measured by bench/startup.py."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from pytest_httpserver import HTTPServer

import exact


def imported(code: str) -> set[str]:
    """Top-level names, outside the standard library, that `code` imports beyond what a bare interpreter does."""
    report = "; import json, sys; sys.stderr.write(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"

    def names(code: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
        return set(json.loads(done.stderr))

    return names(code) - names("pass") - sys.stdlib_module_names


def test_importing_exact_imports_nothing_else() -> None:
    assert imported("import exact") == {"exact"}


def test_importing_exact_does_not_load_its_parts() -> None:
    code = "import exact, sys; print([name for name in sys.modules if name.startswith('exact.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_help_imports_click_and_nothing_else() -> None:
    assert imported("from exact.cli.main import main; main(['--help'])") == {"exact", "click"}


def test_a_list_of_tasks_needs_neither_numbers_nor_models() -> None:
    assert not HEAVY & imported("from exact.cli.main import main; main(['list', 'tasks'])")


def test_a_public_name_is_loaded_when_it_is_used() -> None:
    assert "msgspec" in imported("import exact; exact.Task")


WATCHED = """
import os, sys
from pathlib import Path
from exact.runs.journal.file import Journal

write = Journal.write

def note(moment):
    if not Path(moment).exists():
        Path(moment).write_text(" ".join(sorted(sys.modules)))

def watch(event, arguments):
    if event == "subprocess.Popen" and os.path.basename(arguments[0]).startswith("node"):  # Playwright's driver
        note("browser")

def noting(self, event):
    if type(event).__name__ == "Reset":
        note("page")
    return write(self, event)

sys.addaudithook(watch)
Journal.write = noting
from exact.cli.main import main
main(sys.argv[1:])
"""
"""A command that writes the names of its modules when it starts the browser, and when it has the first page."""
MODEL = "policy: {kind: llm}\nreflection: {kind: none}\nmodels: {policy: {model: m, base_url: 'http://127.0.0.1:9/v1', retries: 0}}\n"
HEAVY = {"openai", "numpy", "jinja2", "PIL", "networkx"}


def loaded(folder: Path, *command: str) -> tuple[set[str], set[str]]:
    """Return the modules that a run has imported when its browser is started, and when its first page is there."""
    environ = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", WATCHED, "run", *command], capture_output=True, check=False, cwd=folder, env=environ)
    browser, page = (set((folder / moment).read_text().split()) for moment in ("browser", "page"))
    return browser, page


def own(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("exact.")}


def test_a_run_starts_its_browser_before_it_imports_what_the_browser_does_not_need(tmp_path: Path) -> None:
    browser, page = loaded(tmp_path, "miniwob/click-test")
    others = (
        "benchmarks.(osworld|webarena(_verified)?|visualwebarena|sites|desktop|browsergym)",
        "environments.(desktop|browser.fork|sandbox)",
    )
    unused = {name for name in page if re.match(rf"exact\.({'|'.join(others)})(\.|$)", name)}
    assert unused == {"exact.environments.sandbox", "exact.environments.sandbox.service"}  # what a task declares
    assert not any(name.startswith("exact.report") for name in page)
    later = {"exact.environments.browser.environment", "exact.agents.agent", "exact.runs.attempt.attempt"}
    assert {"exact.benchmarks.miniwob.suite", *later} <= page and not later & browser
    assert not HEAVY & browser and HEAVY & page == {"numpy"}  # for the vectors of the memory
    assert "exact.reflection.hygiene" not in page  # nothing was learned yet
    assert len(own(browser)) < 200


def test_a_model_is_not_imported_before_it_is_asked(tmp_path: Path, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("<button>Look</button>", content_type="text/html")
    (tmp_path / "agent.yaml").write_text(MODEL)
    command = ("--config", "agent.yaml", "--url", httpserver.url_for("/"), "--goal", "Look", "--set", "browser.sandbox=never")
    browser, page = loaded(tmp_path, *command)
    assert not HEAVY & page
    assert len(own(browser)) < 215
