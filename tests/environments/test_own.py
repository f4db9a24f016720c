import importlib
import sys

import pytest

import exact
from exact.cli.main import main
from exact.environments.check import check, suite
from exact.environments.own import is_own, own_environments
from exact.errors import UsageError
from exact.task import Task

MINE = """
from contextlib import asynccontextmanager

import exact

VALUE = 3


class Lamp:
    capabilities = exact.Capabilities(fidelity="replay", isolated=True, concurrent=False, evaluates=False)
    actions = exact.ActionSpace([exact.Verb(name="press")])
    open_now = 0

    def __init__(self):
        Lamp.open_now += 1
        assert Lamp.open_now == 1, "only one lamp may be open"
        self.on = None

    def seen(self):
        return exact.Observation(text=str(self.on), fingerprint=str(self.on))

    async def reset(self, task):
        self.on = False
        return self.seen()

    async def step(self, action):
        if self.on is None or action.name != "press":
            raise exact.ActionError("no")
        self.on = not self.on
        return exact.Transition(observation=self.seen())

    async def close(self):
        Lamp.open_now -= self.on != "closed"
        self.on = "closed"


class Lamps:
    @asynccontextmanager
    async def open(self, *, simulation):
        lamp = Lamp()
        yield lamp
        await lamp.close()


@asynccontextmanager
async def opened():
    yield Lamps()


async def later():
    return Lamp()


class Plain:
    actions = [{"name": "press", "form": []}]
    on = False

    def reset(self, task):
        self.on = False
        return {"text": "False"}

    def step(self, action):
        self.on = not self.on
        return {"observation": {"text": str(self.on)}}


def number():
    return 42


def nothing():
    pass


def needs(argument):
    return argument


def boom():
    raise OSError("no database here")
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    yield
    sys.modules.pop("mine", None)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution whose entry point `lamp` is an environment."""
    info = tmp_path / "site" / "lamps-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lamps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[exact.environments]\nlamp = mine:Lamp\nplain = mine:Plain\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


async def pressed(name):
    async with own_environments("ENV", name) as factory, factory.open(simulation=True) as environment:
        await environment.reset(Task(id="lamp", instruction=""))
        transition = await environment.step(environment.actions.action("press"))
        return transition.observation.text


@pytest.mark.parametrize("place", ["mine", "mine.py"])
@pytest.mark.parametrize("name", ["Lamp", "Lamps", "opened", "later", "Plain"])
async def test_whatever_makes_environments_can_be_named(place, name):
    assert await pressed(f"{place}:{name}") == "True"


@pytest.mark.parametrize("name", ["lamp", "plain"])
async def test_an_entry_point_is_a_name_of_its_own(installed, name):
    assert is_own(name) and await pressed(name) == "True"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine:number", "mine:number gives an int, and not an EnvironmentFactory"),
        ("mine.py:nothing", "gives nothing, and not"),
        ("mine:needs", "cannot be called without arguments: TypeError"),
        ("mine.py:boom", "cannot be called without arguments: OSError: no database here"),
        ("mine:VALUE", "has no 'VALUE' that can be called"),
        ("mine:missing", "has no 'missing'"),
        ("elsewhere:Lamp", "elsewhere cannot be imported"),
        ("elsewhere.py:Lamp", "there is no file"),
    ],
)
def test_a_wrong_kind_of_object_is_one_line(name, says, capsys):
    assert main(["check", name]) != 0
    said = capsys.readouterr().err.strip()
    assert says in said and len(said.splitlines()) == 1


def test_a_module_that_does_not_load_is_one_line(tmp_path, capsys):
    (tmp_path / "broken.py").write_text("def (:\n")
    for name in ("broken:Lamp", "broken.py:Lamp"):
        assert main(["check", name]) != 0
        assert "does not load: SyntaxError" in capsys.readouterr().err


async def test_environments_of_which_only_one_may_act_are_checked_one_after_the_other():
    async with own_environments("ENV", "mine:Lamps") as factory:
        names = ("resets alike", "environments are independent", "errors are typed")
        found = {each.name: each for each in await check(factory, Task(id="lamp", instruction=""), quick=True, names=names)}
    assert found["environments are independent"].skipped


async def test_without_proc_what_is_left_is_not_counted_and_the_rest_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "_PROC", tmp_path / "proc")
    async with own_environments("ENV", "mine:Lamp") as factory:
        found = {
            each.name: each
            for each in await check(factory, Task(id="lamp", instruction=""), quick=True, names=("repeats", "nothing is left"))
        }
    assert found["repeats"].passed and found["nothing is left"].skipped and "/proc" in found["nothing is left"].detail


async def test_a_name_that_is_not_registered_is_not_ones_own():
    assert not is_own("miniwob")
    with pytest.raises(UsageError, match=r"registers 'lamp' in the entry points exact\.environments"):
        await pressed("lamp")


@pytest.mark.parametrize(
    ("stated", "judges", "claims"), [(None, True, True), (None, False, False), (True, False, False), (False, True, False)]
)
def test_a_class_claims_an_evaluator_only_if_it_has_one(stated, judges, claims):
    members = {} if stated is None else {"capabilities": exact.Capabilities(fidelity="replay", isolated=True, evaluates=stated)}
    if judges:
        members["evaluate"] = lambda self, outcome: None
    made = type("Made", (exact.BaseEnvironment,), members)
    assert made.capabilities.evaluates is claims and made.capabilities.isolated is (stated is not None)
    assert type("Below", (made,), {}).capabilities.evaluates is claims
