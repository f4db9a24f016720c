"""Conditions on an outcome, without a desktop."""

from pathlib import Path

import pytest

from exact.environments.desktop.setup import Check, failure
from exact.observation import Element

ELEMENTS = (
    Element(id="1", role="textbox", value="391"),
    Element(id="2", role="button", name="Save"),
)


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (Check(file="note.txt", equals="pears\nquinces"), ""),
        (Check(file="note.txt", equals="pears"), "file note.txt is 'pears quinces'"),
        (Check(file="note.txt", contains=("pears", "plums")), "file note.txt lacks 'plums'"),
        (Check(file="note.txt", lacks=("quinces",)), "file note.txt still has 'quinces'"),
        (Check(file="other.txt"), "there is no file other.txt"),
        (Check(element="textbox", equals="391"), ""),
        (Check(element="textbox", equals="39"), "textbox is '391'"),
        (Check(element="button Save"), ""),
        (Check(element="button Open"), "there is no button Open"),
        (Check(answer=True, equals="42"), ""),
        (Check(answer=True, contains=("43",)), "the answer lacks '43'"),
    ],
)
def test_a_condition_says_why_it_does_not_hold(check: Check, why: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("pears\nquinces\n")
    assert failure(check, tmp_path, ELEMENTS, "42") == why
