"""Files of an application that lie where the sandbox hides everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.environments.browser.fork.store import hidden_links, visible_files
from exact.environments.sandbox.service import Service
from exact.errors import UsageError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with an application, and what a person has there besides."""
    for folder in ("shop/app", "shop/data", "other", ".ssh", "venv/bin", ".tool/bin", ".tool/lib", ".pyenv/shims"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("shop/data/shop.db", "shop/shop.db", "notes.db", ".ssh/key", "venv/pyvenv.cfg", ".tool/bin/node", ".pyenv/shims/python3"):
        (tmp_path / file).write_text("")
    (tmp_path / "venv/bin/python").symlink_to(tmp_path / ".tool/bin/node")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def shown(home: Path, *command: str, reads: tuple[str, ...] = (), **env: str) -> set[str]:
    """Return what is shown besides the application's folder, relative to the home directory."""
    service = Service(command=command or ("sh",), ready_url="http://127.0.0.1:9/", folder=str(home / "shop/app"), reads=reads, env=env)
    found = {str(path.relative_to(home)) for path in visible_files(service)}
    assert "shop/app" in found
    return found - {"shop/app"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{home}/shop/data", "shop/data"),
        ("{home}/shop/data/shop.db", "shop/data"),
        ("{home}/shop/data/not-yet.db", "shop/data"),
        ("sqlite:///{home}/shop/data/shop.db?timeout=5", "shop/data"),
        ("~/notes.db", "notes.db"),
        ("../data/shop.db", "shop/data"),
        ("../shop.db", "shop"),
        ("{home}/.ssh/key", ".ssh/key"),
    ],
)
def test_a_path_in_a_variable_or_an_argument_is_shown_with_its_folder_but_never_a_home(home: Path, value: str, expected: str) -> None:
    text = value.format(home=home)
    assert shown(home, DATA=text) == {expected}
    assert shown(home, "sh", f"--data={text}") == {expected} == shown(home, "sh", "--data", text)


@pytest.mark.parametrize("value", ["{home}", "~/", "{home}/nowhere/at/all.db", "http://127.0.0.1:8000/data", "/usr/share", "a/b", "8000"])
def test_no_other_text_shows_anything(home: Path, value: str) -> None:
    assert shown(home, "sh", "serve", DATA=value.format(home=home)) == set()


def test_a_program_is_shown_with_its_libraries(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(home, str(home / "venv/bin/python")) == {"venv/bin/python", "venv", ".tool/bin/node", ".tool/lib"}
    assert shown(home, "../../.tool/bin/node") == {"shop/app/../../.tool/bin/node", "shop/app/../../.tool/lib"}
    (home / ".pyenv/shims/python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / ".pyenv/shims"))
    assert shown(home, "python3") == {".pyenv/shims/python3", ".pyenv"}


def test_in_a_root_of_its_own_a_service_sees_its_reads_alone(home: Path) -> None:
    service = Service(command=("/bin/serve",), ready_url="http://127.0.0.1:9/", folder="/srv", reads=(str(home / "other"),))
    assert visible_files(service, own_root=True) == (home / "other",)


def test_links_on_the_way_to_what_is_shown_are_made_in_the_sandbox_too(home: Path) -> None:
    (home / "now").symlink_to("shop")
    (home / "shop" / "latest").symlink_to(home / "other")
    paths = (home / "now" / "app", home / "shop" / "latest", home / "shop" / "app", Path("/usr/bin"))
    assert hidden_links(paths) == {str(home / "now"): str(home / "shop"), str(home / "shop" / "latest"): str(home / "other")}


def test_a_service_sees_a_private_file_or_one_of_another_account_that_it_names(home: Path) -> None:
    assert visible_files(Service(command=("sh",), ready_url="http://127.0.0.1:9/", reads=("/etc/passwd", "/usr/share"))) == (
        Path("/etc/passwd"),
    )


@pytest.mark.parametrize("folder", ["{home}", "/tmp", "/home", "/home/ann"])
def test_a_service_that_would_show_a_whole_home_is_refused(home: Path, folder: str) -> None:
    with pytest.raises(UsageError, match="move the site file"):
        visible_files(Service(command=("sh",), ready_url="http://127.0.0.1:9/", folder=folder.format(home=home)))
