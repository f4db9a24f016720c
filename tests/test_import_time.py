"""Which modules a start imports. How long it takes is measured by bench/startup.py."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_a_public_name_is_loaded_when_it_is_used() -> None:
    assert "msgspec" in imported("import exact; exact.Task")


def test_a_run_imports_its_own_suite_and_no_sandbox(tmp_path: Path) -> None:
    """The program of a run stops where it would start Playwright's driver, and prints the modules that it has imported."""
    code = """
import os, sys

def stop(event, arguments):
    if event == "subprocess.Popen" and arguments[0] != "git":  # which is asked for the commit
        os.write(1, "\\n".join(sorted(sys.modules)).encode())
        os._exit(0)

sys.addaudithook(stop)
from exact.cli.main import main
main(["run", "miniwob/click-test"])
"""
    environ = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ)
    names = {name for name in done.stdout.split() if name.startswith("exact.")}
    assert {"exact.benchmarks.miniwob.suite", "exact.environments.browser.environment"} <= names
    others = (
        "benchmarks.(osworld|webarena(_verified)?|visualwebarena|sites|desktop|browsergym)",
        "environments.(desktop|browser.fork|sandbox)",
    )
    unused = {name for name in names if re.match(rf"exact\.({'|'.join(others)})(\.|$)", name)}
    assert unused == {"exact.environments.sandbox", "exact.environments.sandbox.service"}  # what a task declares
    assert not any(name.startswith("exact.report") for name in names)
    assert len(names) < 275
