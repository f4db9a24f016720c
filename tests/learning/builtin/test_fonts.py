"""Fonts of pages."""

import json
from pathlib import Path

import pytest

from exact.errors import UsageError
from exact.learning.builtin.machine import FAMILIES, drawn_fonts
from exact.learning.builtin.rounds import BuiltinSettings, train

DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
_ONE_FONT = """<?xml version="1.0"?>
<fontconfig>
  <dir>{folder}</dir>
  <cachedir>{cache}</cachedir>
  <match target="pattern"><edit name="family" mode="assign" binding="strong"><string>DejaVu Sans</string></edit></match>
</fontconfig>
"""


@pytest.mark.usefixtures("executable")
@pytest.mark.skipif(not DEJAVU.exists(), reason="needs the DejaVu fonts of Debian")
async def test_the_fonts_are_those_that_the_browser_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await drawn_fonts()
    assert tuple(found) == FAMILIES and all(found.values())
    (tmp_path / "fonts.conf").write_text(_ONE_FONT.format(folder=DEJAVU, cache=tmp_path / "cache"))
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert await drawn_fonts() == dict.fromkeys(FAMILIES, "DejaVu Sans")


@pytest.mark.usefixtures("executable")
def test_a_training_says_its_fonts_and_does_not_go_on_with_others(tmp_path: Path) -> None:
    pytest.importorskip("miniwob")
    settings, lines = BuiltinSettings(out=str(tmp_path), seeds=(), processes=1), list[str]()
    train(settings, lines.append)
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert lines[0].startswith(f"the browser draws {', '.join(f'{family} in {font}' for family, font in manifest['fonts'].items())};")
    train(settings, lines.append)
    (tmp_path / "run.json").write_text(json.dumps({**manifest, "fonts": {"Arial": "Comic Sans"}}))
    with pytest.raises(UsageError, match=r"begun where the browser draws Arial in Comic Sans: install these fonts"):
        train(settings, lines.append)


@pytest.mark.usefixtures("executable")
async def test_a_training_begins_where_a_loop_runs_too(tmp_path: Path) -> None:
    pytest.importorskip("miniwob")
    train(BuiltinSettings(out=str(tmp_path), seeds=()), print)
    assert json.loads((tmp_path / "run.json").read_text())["fonts"]
