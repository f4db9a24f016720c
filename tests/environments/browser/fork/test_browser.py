"""How Chromium is started inside."""

from __future__ import annotations

from pathlib import Path

from exact.environments.browser.fork.browser import chromium_binary


def test_a_script_around_the_headless_shell_is_left_out_and_nothing_else_is(tmp_path: Path) -> None:
    for name, text in {"chromium-headless-shell": "#!/bin/sh", "chromium": "#!/bin/sh", "lib/chromium-headless-shell": "ELF"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    real = tmp_path / "lib/chromium-headless-shell"
    assert chromium_binary(tmp_path / "chromium-headless-shell", tmp_path / "lib") == real
    assert chromium_binary(tmp_path / "chromium", tmp_path / "lib") == tmp_path / "chromium"
    assert chromium_binary(real, tmp_path / "lib") == real
    assert chromium_binary(tmp_path / "chromium-headless-shell", tmp_path / "none") == tmp_path / "chromium-headless-shell"
