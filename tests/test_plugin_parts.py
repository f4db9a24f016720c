"""Models, memories and further parts of a user's own, by file, by module and by the entry points of an installed distribution."""

import importlib
import sys

import pytest

import exact
from exact import plugins
from exact.errors import unknown
from tests.library.number import Number

MINE = """
import exact
from exact.models.base import ChatAnswer, Choice, Usage

loads = []
loads.append(1)


class Chat:
    name, price = "mine/chat", None

    def __init__(self, model, mood="calm"):
        self.model, self.mood = model, mood

    async def complete(self, request):
        choice = Choice(text="Thought: on\\nAction: two")
        return ChatAnswer(
            choices=(choice,) * request.sampling.n, usage=Usage(input_tokens=1, output_tokens=1), model=self.model, raw="{}"
        )

    async def close(self):
        pass


class Notes:
    def __init__(self):
        self.closed = self.asked = 0
        notes.append(self)

    version = "1:0"

    def add(self, reflection):
        pass

    def retrieve(self, context, kind, **options):
        self.asked += 1
        return ()

    def used(self, attempt, ids, success):
        pass

    def close(self):
        self.closed += 1


notes = []


class Greedy:
    async def propose(self, context, actions, k):
        return (exact.Proposal(action=actions.action("two"), prior=1.0),)


class Half:
    async def evaluate(self, context):
        return exact.Evaluation(value=0.5)
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """Lay mine.py into the current folder, and install a distribution that names its parts."""
    (tmp_path / "mine.py").write_text(MINE)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    groups = {
        "models": "mychat = mine:Chat",
        "memories": "notes = mine:Notes",
        "policies": "mygreedy = mine:Greedy",
        "values": "half = mine:Half",
    }
    (info / "entry_points.txt").write_text("".join(f"[exact.{group}]\n{line}\n" for group, line in groups.items()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.setattr(plugins, "_recorded", set())
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("mine", None)


async def solved(out=None, **sections):
    config = exact.Config.parse({"search": {"iterations": 4}, "reflection": {"kind": "none"}, **sections})
    return await exact.solve(exact.Task(id="number/5", instruction="Reach 5."), agent=config, environments=Number, out=out)


@pytest.mark.parametrize("name", ["mine:Chat", "mine.py:Chat", "mychat"])
async def test_a_model_of_ones_own_answers(name):
    model = {"model": "small", "provider": name, "extra": {"mood": "merry"}}
    solution = await solved(policy={"kind": "llm", "samples": 2}, value={"kind": "constant"}, models={"policy": model})
    assert solution.result.status != "failed", solution.result.reason
    assert solution.actions[0] == "two" and solution.result.calls > 0


@pytest.mark.parametrize("name", ["mine:Notes", "notes"])
async def test_a_memory_of_ones_own_is_asked_and_closed(name):
    reflection = {"kind": "builtin", "memory": name}
    await solved(policy={"kind": "mine:Greedy"}, value={"kind": "half"}, reflection=reflection)
    [notes] = sys.modules["mine"].notes
    assert notes.asked and notes.closed == 1


async def test_a_run_names_the_plug_ins_and_not_the_built_in_agent(tmp_path):
    solution = await solved(tmp_path / "run", policy={"kind": "mygreedy"}, value={"kind": "half"})
    report = solution.run.report().read_text()
    assert "mygreedy" in report and "half" in report and "Built-in agent" not in report
    assert "kind: mygreedy" in (tmp_path / "run" / "config.yaml").read_text()


def test_a_file_runs_once_whichever_parts_are_named(tmp_path):
    exact.Config.parse({"policy": {"kind": "mine.py:Greedy"}})
    one = plugins.attribute("policy.kind", "mine.py:Greedy", "exact.policies")
    other = plugins.attribute("value.kind", "mine.py:Half", "exact.values")
    assert sys.modules[one.__module__] is sys.modules[other.__module__] and sys.modules[one.__module__].loads == [1]


@pytest.mark.parametrize(("name", "near"), [("chek", "check"), ("calibrat", "calibrate")])
def test_an_unknown_name_suggests_the_nearest(name, near):
    assert f"did you mean {near!r}" in str(unknown("command", name, ["check", "calibrate", "show"]))


@pytest.mark.parametrize("name", ["help", "x", "tasks"])
def test_a_name_that_is_near_to_nothing_lists_what_is_valid(name):
    assert "valid: calibrate, check" in str(unknown("command", name, ["check", "calibrate", "show"]))


def test_models_and_memories_of_ones_own_are_code_that_a_run_folder_names():
    config = exact.Config.parse({"policy": {"kind": "llm"}, "models": {"policy": {"model": "m", "provider": "mine:Chat"}}})
    assert "mine:Chat" in config.own_parts
    assert "mine:Notes" in exact.Config.parse({"reflection": {"memory": "mine:Notes"}}).own_parts
    assert exact.Config.parse({"reflection": {"memory": "postgresql://host/base"}}).own_parts[-1] == ""
