import sys

import pytest
import yaml

import exact
from exact import plugins
from exact.agents.agent import build_agent
from exact.cli.main import main
from exact.report.model.head import judge

MINE = """
import exact

class Greedy:
    def __init__(self, name="one"):
        self.name = name

    async def propose(self, context, actions, k):
        return (exact.Proposal(action=actions.action(self.name), prior=1.0),)

class Half:
    async def evaluate(self, context):
        return exact.Evaluation(value=0.5)

def climb(config):
    return exact.Greedy(k=config.k)

NUMBER = 3
"""


@pytest.fixture(autouse=True)
def untrusted(monkeypatch):
    monkeypatch.setattr(plugins, "_trusted", set())
    monkeypatch.setattr(plugins, "_recorded", set())


@pytest.fixture(params=["mine.py", "mine"])
def place(request, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    yield request.param
    sys.modules.pop("mine", None)


def built(**sections):
    return build_agent(exact.Config.parse(sections), lambda role: pytest.fail("no model is needed"))


def test_a_policy_and_a_value_function_are_named_by_module_or_file(place):
    agent = built(policy={"kind": f"{place}:Greedy", "options": {"name": "two"}}, value={"kind": f"{place}:Half"})
    assert (type(agent.policy).__name__, agent.policy.name, type(agent.value).__name__) == ("Greedy", "two", "Half")


def test_an_algorithm_is_named_by_module_or_file(place):
    from exact.search.registry import algorithm

    assert isinstance(algorithm(exact.SearchConfig(algorithm=f"{place}:climb", k=2)), exact.Greedy)


async def test_a_search_with_a_policy_of_a_file_is_reported_under_its_name(place, tmp_path):
    from tests.library.number import Number

    config = exact.Config.parse({"policy": {"kind": f"{place}:Greedy"}, "value": {"kind": f"{place}:Half"}, "search": {"iterations": 4}})
    solution = await exact.solve(exact.Task(id="number/5", instruction=""), agent=config, environments=Number, out=tmp_path / "run")
    assert solution.score == 1.0
    report = solution.run.report().read_text()
    assert f"{place}:Greedy" in report and f"{place}:Half" in report and "Built-in agent" not in report
    assert judge(config).startswith(f"{place}:Half")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("lexicl", "unknown value 'lexicl' in configuration key policy.kind: did you mean 'lexical'"),
        ("no_module_here:Greedy", "policy.kind: no_module_here cannot be imported"),
        ("nothing.py:Greedy", "policy.kind: there is no file"),
        ("{place}:Gredy", "has no 'Gredy'; it has Greedy, Half"),
        ("{place}:NUMBER", "has no 'NUMBER' that can be called; it has Greedy"),
    ],
)
def test_a_plug_in_that_is_not_there_is_named(place, kind, says):
    with pytest.raises(exact.UsageError, match=says):
        built(policy={"kind": kind.format(place=place)})


async def test_a_plug_in_is_looked_for_before_a_folder_is_made(tmp_path):
    config = exact.Config.parse({"value": {"kind": f"{tmp_path}/nothing.py:Half"}})
    with pytest.raises(exact.UsageError, match=r"value.kind: there is no file"):
        await exact.solve("miniwob/click-test", agent=config, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_options_that_a_plug_in_does_not_take_are_named(place):
    with pytest.raises(exact.UsageError, match=r"cannot be made .*: options given: depth"):
        built(policy={"kind": f"{place}:Greedy", "options": {"depth": 3}})


def test_a_file_that_does_not_load_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(exact.UsageError, match="does not load: ZeroDivisionError"):
        built(policy={"kind": f"{tmp_path}/broken.py:Greedy"})


def test_an_entry_point_brings_a_policy(tmp_path, monkeypatch, place):
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[exact.policies]\ngreedy = mine:Greedy\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert type(built(policy={"kind": "greedy"}).policy).__name__ == "Greedy"


@pytest.mark.parametrize(
    "command", [("show",), ("report",), ("export", "graphml"), ("resume",), ("show", "--cost"), ("trust", "--secrets")], ids=" ".join
)
@pytest.mark.parametrize("key", ["search.algorithm", "policy.kind"])
def test_code_that_a_strange_run_folder_names_is_not_run(tmp_path, capsys, key, command):
    from tests.library.number import Both, Near, Number

    agent = exact.Agent(policy=Both(), value=Near())
    task = exact.Task(id="number/5", instruction="")
    exact.solve_sync(task, agent=agent, environments=Number, out=tmp_path / "run", config=exact.Config())
    (tmp_path / "run" / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef climb(*given): ...")
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    section, _, name = key.partition(".")
    config[section][name] = f"{tmp_path}/run/evil.py:climb"
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(config))
    main([*command, str(tmp_path / "run")])
    assert not (tmp_path / "ran").exists()
    if key == "search.algorithm" and command in (("show",), ("resume",)):
        assert "evil.py:climb (search.algorithm)" in (said := capsys.readouterr().err) or "which is not run unasked" in said
        assert "exact trust" in said


def test_code_of_a_run_folder_is_run_where_the_user_trusts_it(place):
    plugins.distrust([f"{place}:Greedy"])
    with pytest.raises(exact.UsageError, match="which is not run unasked"):
        plugins.attribute("policy.kind", f"{place}:Greedy", "exact.policies")
    plugins.trust([f"{place}:Greedy"])
    assert plugins.attribute("policy.kind", f"{place}:Greedy", "exact.policies").__name__ == "Greedy"
