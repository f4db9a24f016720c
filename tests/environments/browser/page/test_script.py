import subprocess
from pathlib import Path

import playwright
import pytest

import exact.environments.browser
from exact.environments.browser.page.cdp import script, script_call

FOLDER = Path(exact.environments.browser.__file__).parent
NODE = Path(playwright.__file__).parent / "driver" / "node"
SCRIPTS = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.js"))


def test_every_script_parses_alone_and_with_what_it_includes(tmp_path: Path) -> None:
    for name in SCRIPTS:
        whole = tmp_path / f"{name.replace('/', '-')}.js"
        whole.write_text(script(name))
        for path in (FOLDER / f"{name}.js", whole):
            done = subprocess.run([NODE, "--check", path], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_says_what_it_does_and_is_used(name: str) -> None:
    assert (FOLDER / f"{name}.js").read_text().startswith("// ")
    sources = "".join(path.read_text() for path in FOLDER.rglob("*.*") if path.suffix in (".py", ".js"))
    assert f'"{name}"' in sources or f"'{name}'" in sources or f"//= {Path(name).name}\n" in sources


def test_a_script_includes_the_helpers_it_names() -> None:
    source = script("snapshot/pointer")
    assert source.startswith("function pointer(state)")
    assert "const path = element =>" in source
    assert "//=" not in source


def test_a_call_passes_its_arguments_as_json() -> None:
    assert script_call("page/timers", 500).endswith(")(500)")
    assert script_call("page/watch", "a, b", 'c"').endswith(')("a, b", "c\\"")')
