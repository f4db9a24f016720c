import json
import sys
from pathlib import Path

import pytest

from exact.cli.main import main
from exact.environments.check import CHECKS
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure

LIGHTS = f"{Path(__file__).parents[2] / 'examples' / 'own_environment' / 'lights.py'}:Lights"


def test_an_environment_of_a_file_is_checked_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("check", LIGHTS, "--quick", "--json", "--python", sys.executable)) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)} == set(CHECKS)


def test_one_that_does_not_start_in_its_sandbox_fails_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    assert main(("check", "nowhere.py:Lights", "--quick", "--sandbox")) == 1
    assert "nowhere.py" in capsys.readouterr().out


def test_a_task_id_is_no_factory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("check", "miniwob/click-test", "--python", sys.executable)) == 2
    assert "write module:factory or file.py:factory" in capsys.readouterr().err


def test_a_suite_without_tasks_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("EXACT_OSWORLD", raising=False)
    assert main(("check", "osworld")) == 2
    assert "osworld has no tasks here: docs/benchmarks.md says what it needs" in capsys.readouterr().err


def test_a_factory_may_give_an_async_context_manager_of_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "managed.py").write_text(
        "from contextlib import asynccontextmanager\nfrom exact.environments.toy.factory import ToyFactory, chain\n"
        "@asynccontextmanager\nasync def environments():\n    yield ToyFactory(chain(3))\n    print('closed')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(("check", "managed:environments", "--quick")) == 0
    assert "closed" in capsys.readouterr().out


STUBBORN = """
from contextlib import asynccontextmanager
from exact.action import ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, Transition
from exact.errors import ActionError
from exact.observation import Element, Observation

ELEMENTS = {elements}
SEEN = Observation(text="A locked box", fingerprint="box", elements=ELEMENTS)
OPEN = Observation(text="An open box", fingerprint="open", elements=ELEMENTS)

class Box:
    capabilities = Capabilities(fidelity="replay", isolated=True, evaluates=False)
    actions = ActionSpace([Verb(name="say", form=(Parameter.TEXT,)), Verb(name="press", form=())])
    async def reset(self, task):
        self.began, self.is_open = True, False
        return SEEN
    async def step(self, action):
        if not getattr(self, "began", False) or action.args != ("sesame",):
            raise ActionError("the box takes only the right word")
        self.is_open = True
        return Transition(observation=OPEN)
    async def close(self):
        pass

class Boxes:
    @asynccontextmanager
    async def open(self, *, simulation):
        yield Box()
"""
NAMED = '(Element(id="1", role="button", name="open it"), Element(id="2", role="button", name="please"))'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, an empty one, which is not among the places of modules."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("elements", "words"), [(NAMED, "were refused, the last"), ("()", "were refused, the last press")])
def test_an_environment_whose_every_action_was_refused_does_not_pass(
    here: Path, capsys: pytest.CaptureFixture[str], elements: str, words: str
) -> None:
    (here / f"box_{len(elements)}.py").write_text(STUBBORN.replace("{elements}", elements))
    assert main(("check", f"box_{len(elements)}:Boxes", "--quick")) == 1
    said = capsys.readouterr().out
    assert "no action could be taken, so nothing was examined" in said and words in said and "--actions FILE" in said
    assert "all guarantees hold" not in said


def test_given_actions_are_taken_in_place_of_made_up_ones(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "box_given.py").write_text(STUBBORN.replace("{elements}", NAMED))
    (here / "words.txt").write_text('# the word that opens it\n\nsay "sesame"\n')
    assert main(("check", "box_given:Boxes", "--quick", "--actions", "words.txt")) == 0
    assert "all guarantees hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# nothing\n", "words.txt holds no action: write one on each line"),
        ("shout sesame", "'shout sesame' is no action of this environment"),
        (None, "cannot read words.txt: No such file or directory"),
    ],
)
def test_a_file_of_actions_that_cannot_be_used_is_wrong_usage(
    here: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    (here / "box_wrong.py").write_text(STUBBORN.replace("{elements}", NAMED))
    if text is not None:
        (here / "words.txt").write_text(text)
    assert main(("check", "box_wrong:Boxes", "--quick", "--actions", "words.txt")) == 2
    assert said in capsys.readouterr().err


def test_a_module_of_the_current_folder_is_found_and_the_path_is_left_as_it_was(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "nearby.py").write_text(
        "from exact.environments.toy.factory import ToyFactory, chain\n\ndef environments():\n    return ToyFactory(chain(3))\n"
    )
    before = list(sys.path)
    assert main(("check", "nearby:environments", "--quick")) == 0
    assert sys.path == before
    assert main(("check", "nowhere_to_be_found:environments", "--quick")) == 2
    assert "No module named 'nowhere_to_be_found'" in capsys.readouterr().err
