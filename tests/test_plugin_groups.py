"""Suites and environments of a user's own, in YAML and on the command line, and all seven groups of one distribution."""

import importlib
import json
import sys

import pytest

import exact
from exact import plugins
from exact.benchmarks import registry
from exact.benchmarks.own.files import read
from exact.cli.main import main
from exact.interop.mcp.operations import Operations

MINE = """
import exact
from exact.environments.own import own_environments
from exact.models.base import ChatAnswer, Choice, Usage


class Number(exact.BaseEnvironment):
    actions = exact.ActionSpace(["double", "add_three"])

    def __init__(self, goal=10):
        self.goal = goal

    async def reset(self, task):
        self.number = 1
        return exact.Observation(text=str(self.number))

    async def step(self, action):
        self.number = self.number * 2 if action.name == "double" else self.number + 3
        over = self.number >= self.goal
        return exact.Transition(observation=None if over else exact.Observation(text=str(self.number)), terminated=over)

    async def evaluate(self, outcome):
        return exact.Score(value=float(self.number == self.goal), success=self.number == self.goal)


class Numbers:
    name = "numbers"

    def ids(self):
        return ["numbers/one", "numbers/two"]

    def lists(self):
        return {"first": ["numbers/one"]}

    def task(self, id):
        if id.partition("?")[0] not in self.ids():
            raise exact.UsageError(f"no task {id}")
        return exact.Task(id=id if "?" in id else f"{id}?seed=0", instruction="Reach 10.")

    def environments(self, config):
        return own_environments("numbers", "mine:Number")


class Plus:
    async def propose(self, context, actions, k):
        return [exact.Proposal(action=actions.action("add_three"), prior=1.0)]


class Half:
    async def evaluate(self, context):
        return exact.Evaluation(value=0.5)


class Chat:
    name, price = "mine/chat", None

    def __init__(self, model):
        self.model = model

    async def complete(self, request):
        choice = Choice(text="Thought: on\\nAction: add_three")
        return ChatAnswer(
            choices=(choice,) * request.sampling.n, usage=Usage(input_tokens=1, output_tokens=1), model=self.model, raw="{}"
        )

    async def close(self):
        pass


class Notes:
    version = "1:0"

    def add(self, reflection):
        pass

    def retrieve(self, context, kind, **options):
        return ()

    def used(self, attempt, ids, success):
        pass

    def close(self):
        pass


def climb(config):
    return exact.Greedy(k=config.k)


def nothing():
    return 3
"""
GROUPS = {
    "policies": "plus = mine:Plus",
    "values": "half = mine:Half",
    "algorithms": "climb = mine:climb",
    "environments": "number = mine:Number",
    "models": "mychat = mine:Chat",
    "memories": "mynotes = mine:Notes",
    "suites": "numbers = mine:Numbers",
}


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.setattr(plugins, "_recorded", set())
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(registry, "_brought", {})
    registry.suites.cache_clear()
    yield
    sys.modules.pop("mine", None)
    registry.suites.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution that registers a name in each of the seven groups."""
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[exact.{group}]\n{line}\n" for group, line in GROUPS.items()))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry.suites.cache_clear()


AGENT = ["policy.kind=mine.py:Plus", "value.kind=mine.py:Half", "search.iterations=4", "reflection.kind=none"]


def set_to(*settings):
    return [part for each in settings for part in ("--set", each)]


def results(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_one_distribution_brings_a_part_of_every_group(installed, tmp_path):
    (tmp_path / "tasks.yaml").write_text("environment: number\ntasks: [{id: ten, instruction: Reach 10.}]\n")
    settings = ["value.kind=half", "search.algorithm=climb", "reflection.kind=builtin", "reflection.memory=mynotes"]
    rules = set_to("policy.kind=plus", *settings)
    model = set_to("policy.kind=llm", "models.policy.model=small", "models.policy.provider=mychat", *settings)
    assert main(["run", "numbers/one", "--out", "suite", *rules]) == 0
    assert main(["run", "tasks.yaml", "--out", "environment", *model]) == 0
    [suite], [environment] = results(tmp_path / "suite"), results(tmp_path / "environment")
    assert (suite["score"], suite["policy"], suite["value_function"]) == (1.0, "plus", "half")
    assert (environment["score"], environment["task"]) == (1.0, "own/ten?seed=0") and environment["calls"] > 0


@pytest.mark.parametrize("name", ["mine.py:Numbers", "mine:Numbers", "./mine.py:Numbers"])
def test_a_suite_of_ones_own_is_listed_shown_and_run(name, tmp_path, capsys):
    assert main(["list", "tasks", name]) in (0, None)
    assert capsys.readouterr().out.split() == ["numbers/one", "numbers/two"]
    assert main(["run", f"{name}/@first", "--out", "run", *set_to(*AGENT)]) == 0
    [line] = results(tmp_path / "run")
    assert (line["task"], line["score"], line["policy"]) == ("numbers/one?seed=0", 1.0, "mine.py:Plus")


def test_a_configuration_names_suites(tmp_path):
    (tmp_path / "agent.yaml").write_text(
        "suites: [mine.py:Numbers]\npolicy: {kind: mine.py:Plus}\nvalue: {kind: mine.py:Half}\nreflection: {kind: none}\n"
    )
    assert main(["run", "numbers/two?seed=1", "--config", "agent.yaml", "--out", "run"]) == 0
    assert results(tmp_path / "run")[0]["score"] == 1.0


@pytest.mark.parametrize("named", ["suite", "environment"])
def test_a_run_is_resumed_from_another_folder(named, tmp_path, monkeypatch):
    (tmp_path / "tasks.yaml").write_text("- {id: ten, goal: Reach 10., environment: mine.py:Number}\n")
    task = "mine.py:Numbers/one" if named == "suite" else "tasks.yaml"
    settings = [each.replace("mine.py", str(tmp_path / "mine.py")) for each in AGENT]
    assert main(["run", task, "--out", "run", *set_to(*settings, "limits.actions=1")]) == 0
    (tmp_path / "run" / "results.jsonl").unlink()
    for journal in (tmp_path / "run" / "tasks").rglob("journal.jsonl"):
        journal.unlink()
    registry._brought.clear()
    registry.suites.cache_clear()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert results(tmp_path / "run")[0]["status"] == "scored"


@pytest.mark.parametrize("named", ["suite", "environment"])
def test_code_that_the_tasks_of_a_strange_run_name_is_not_run(named, tmp_path, capsys, monkeypatch):
    (tmp_path / "tasks.yaml").write_text("- {id: ten, goal: Reach 10., environment: mine.py:Number}\n")
    task = "mine.py:Numbers/one" if named == "suite" else "tasks.yaml"
    assert main(["run", task, "--out", "run", *set_to("policy.kind=random", "value.kind=constant", "limits.actions=1")]) == 0
    (tmp_path / "run" / "signature").write_text("0" * 64)
    capsys.readouterr()
    (tmp_path / "mine.py").write_text("open('ran', 'w')\n")
    monkeypatch.setattr(plugins, "_loaded", {})
    registry._brought.clear()
    registry.suites.cache_clear()
    for command in ("resume", "rescore", "show", "report"):
        main([command, "run"])
    assert not (tmp_path / "ran").exists() and "runs the code" in capsys.readouterr().err


def test_a_client_of_the_mcp_server_names_no_code(tmp_path):
    operations = Operations(exact.Config(), tmp_path / "runs")
    for pattern in ("mine.py:Numbers", "mine.py:Numbers/one"):
        with pytest.raises(exact.UsageError, match="unknown suite"):
            operations.list_tasks(pattern)
    with pytest.raises(exact.UsageError, match="unknown suite"):
        operations._task("mine.py:Numbers/one", "", "")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("environment: mine.py:Numbr", "has no 'Numbr'"),
        ("environment: {kind: mine.py:Number, option: {}}", "unknown field `option`"),
        ("environment: {options: {}}", "missing required field `kind`"),
        ("environment: gone.py:Number", "there is no file"),
        ("environment: nowhere", "no installed package registers 'nowhere'"),
        ("environment: mine.py:Number, url: 'http://a.test/'", "url is for browsers"),
        ("environment: mine.py:Number, evaluate: 'mine.py:climb'", "evaluate is for browsers"),
    ],
)
def test_an_environment_that_cannot_be_used_is_told_when_the_file_is_read(entry, says, tmp_path):
    (tmp_path / "tasks.yaml").write_text(f"- {{id: ten, goal: Reach 10., {entry}}}\n")
    with pytest.raises(exact.UsageError, match=f"tasks.yaml: task ten: .*{says}"):
        read(tmp_path / "tasks.yaml")


def test_options_go_to_the_environment(tmp_path):
    (tmp_path / "tasks.yaml").write_text(
        "environment: {kind: mine.py:Number, options: {goal: 7}}\ntasks: [{id: seven, instruction: Reach 7.}]\n"
    )
    assert main(["run", "tasks.yaml#sev*", "--out", "run", *set_to(*AGENT)]) == 0
    assert results(tmp_path / "run")[0]["actions"] == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine.py:nothing", "gives int, which has no name, ids"),
        ("mine.py:Number", "is Number, which has no name"),
        ("mine.py:Numbrs", "has no 'Numbrs'"),
        ("gone.py:Numbers", "there is no file"),
        ("mine.py:Numbers/three", "no task numbers/three"),
    ],
)
def test_a_suite_that_cannot_be_used_is_one_line(name, says, capsys):
    assert main(["run", name if "/" in name else f"{name}/x"]) == 2
    said = capsys.readouterr().err.strip()
    assert says in said and len(said.splitlines()) == 1


def test_a_suite_with_the_name_of_another_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text(MINE.replace('name = "numbers"', 'name = "miniwob"'))
    with pytest.raises(exact.UsageError, match="is named 'miniwob', as another suite is"):
        registry.own_suites(["mine.py:Numbers/one"])


def test_the_library_takes_a_suite_of_ones_own(tmp_path):
    config = exact.Config.parse({"policy": {"kind": "mine.py:Plus"}, "value": {"kind": "mine.py:Half"}, "reflection": {"kind": "none"}})
    solution = exact.solve_sync("mine.py:Numbers/one", agent=config, out=tmp_path / "run")
    assert solution.score == 1.0 and solution.result.policy == "mine.py:Plus"
    from exact.calibration.collect import open_source
    from exact.runs.journal.store import RunFolder

    assert open_source(RunFolder.open(tmp_path / "run")).judge == "mine.py:Half"
