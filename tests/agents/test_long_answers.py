"""An answer of which a model repeats one part without end is read to its end, or asked again, as a short one is."""

from __future__ import annotations

import json
import subprocess
import sys

READ = """
import json, sys
from exact.agents import parse
from exact.agents.value.samples import SCALES
from exact.errors import ActionError, AnswerError
from tests.prompts.states import ACTIONS, SHOE

for text in json.load(sys.stdin):
    print(repr(text[:30]), flush=True)
    for read in (
        lambda: parse.parse_action(text, ACTIONS, SHOE),
        lambda: parse.parse_actions(text, ACTIONS, SHOE),
        lambda: parse.parse_grade(text),
        lambda: parse.parse_grades(text, SCALES["even"], 2),
        lambda: parse.parse_preference(text),
        lambda: parse.parse_argument(text),
        lambda: parse.parse_checks(text),
        lambda: parse.parse_check_answers(text, 2),
        lambda: parse.parse_yes_or_no(text),
    ):
        try:
            read()
        except (ActionError, AnswerError):
            pass
"""
BEGINS = ("", "That is it. Action: ", "Verdict: ")
PARTS = (" ", "\t", "\n", " \n", "*", "_", "`", ">", '"', "'", "[", "{", "<", "⟦a⟧", "Action: ", "A ", "1. ")
LENGTH, SECONDS = 50_000, 120
"""Characters of an answer, and seconds in which all are read: steps that grow with the square of the length take minutes for one."""


def test_answers_that_repeat_themselves_are_read_to_their_ends() -> None:
    texts = [f"{begins}{part * (LENGTH // len(part))}\nno" for begins in BEGINS for part in PARTS]
    done = subprocess.run([sys.executable, "-c", READ], input=json.dumps(texts), text=True, stdout=subprocess.PIPE, timeout=SECONDS)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == len(texts)
