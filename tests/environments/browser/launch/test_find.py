from pathlib import Path

import pytest

from exact.environments.browser.launch.find import browser_version, find_browser
from exact.errors import EnvironmentFailure


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Remove all browsers from the search; PATH is the given folder."""
    monkeypatch.delenv("EXACT_BROWSER", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_named_browser_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(bare / "chromium")
    monkeypatch.setenv("EXACT_BROWSER", str(install(bare / "mine" / "browser")))
    assert find_browser() == bare / "mine" / "browser"


def test_a_named_browser_that_is_not_there_is_not_replaced_by_another(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(bare / "chromium")
    monkeypatch.setenv("EXACT_BROWSER", "nowhere")
    with pytest.raises(EnvironmentFailure, match="EXACT_BROWSER=nowhere is not an executable: correct it or unset it"):
        find_browser()


def test_the_headless_shell_is_preferred_unless_a_window_is_wanted(bare: Path) -> None:
    full, shell = install(bare / "chromium"), install(bare / "chromium-headless-shell")
    assert find_browser() == shell
    assert find_browser(headed=True) == full


def test_playwrights_own_is_found_newest_first(bare: Path) -> None:
    for build in (1100, 1200):
        newest = install(bare / "own" / f"chromium_headless_shell-{build}" / "chrome-linux" / "headless_shell")
    assert find_browser() == newest


def test_without_a_browser_the_error_names_the_fix(bare: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"shells/setup\.sh, or apt-get install chromium-headless-shell"):
        find_browser()


def test_without_a_full_browser_a_window_is_refused(bare: Path) -> None:
    install(bare / "chromium-headless-shell")
    with pytest.raises(EnvironmentFailure, match="apt-get install chromium, or run headless"):
        find_browser(headed=True)


def test_a_browser_says_what_it_is() -> None:
    assert browser_version(find_browser()).count(".") >= 2


@pytest.mark.parametrize("script", ["exit 3", "echo libnss3.so is missing >&2; exit 127", "echo true 9.1", ""])
def test_an_executable_that_does_not_run_is_no_browser_and_the_way_out_is_named(script: str, tmp_path: Path) -> None:
    path = install(tmp_path / "browser")
    path.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(EnvironmentFailure, match=r"not a working browser .*apt-get install chromium-headless-shell") as raised:
        browser_version(path)
    assert "\n" not in str(raised.value) and ("libnss3" in str(raised.value)) == ("libnss3" in script)
    with pytest.raises(EnvironmentFailure, match="does not start"):
        browser_version(tmp_path / "nowhere")
