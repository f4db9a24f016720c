"""Which modules a start imports. How long it takes is measured by bench/startup.py."""

import json
import subprocess
import sys


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
