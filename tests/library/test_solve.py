import tempfile

import pytest

import exact
from tests.library.number import Both, Near, Number

TASK = exact.Task(id="number/5", instruction="Reach 5.")
OWN = {"agent": exact.Agent(policy=Both(), value=Near()), "environments": Number}
CONFIG = exact.Config.parse({"name": "mine", "search": {"algorithm": "best_first", "iterations": 12, "commit": "plan"}})


async def test_own_parts_solve_a_task_and_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    solution = await exact.solve(TASK, config=CONFIG, **OWN)
    assert (solution.score, solution.run, list(tmp_path.iterdir())) == (1.0, None, [])
    assert sum(1 if action == "one" else 2 for action in solution.actions) == 4
    assert repr(solution).startswith("<Solution of number/5: scored, score 1, ") and "<details" in solution._repr_html_()


async def test_a_run_folder_is_kept_with_its_report_where_one_is_named(tmp_path):
    solution = await exact.solve(TASK, config=CONFIG, out=tmp_path / "run", seed=7, **OWN)
    assert solution.run.config.seed == 7 and solution.result.agent == "mine"
    assert (tmp_path / "run" / "index.html").exists() and len([*(tmp_path / "run").rglob("report.html")]) == 1


@pytest.mark.parametrize("many", [False, True])
async def test_a_folder_that_holds_a_run_is_refused_with_advice_that_works(many, tmp_path):
    async def attempt():
        await (
            exact.solve_many([TASK], config=CONFIG, out=tmp_path, **OWN) if many else exact.solve(TASK, config=CONFIG, out=tmp_path, **OWN)
        )

    await attempt()
    run = tmp_path / "1" if many else tmp_path
    says = f"^out {run} holds a run already: read it by exact.open_run({str(run)!r}), or give another folder$"
    with pytest.raises(exact.UsageError, match=says.replace("(", r"\(").replace(")", r"\)")):
        await attempt()
    assert exact.open_run(run).tree(TASK).root.terminated


async def test_an_environment_that_breaks_is_a_failed_result_and_no_score():
    class Broken(Number):
        async def step(self, action):
            raise exact.EnvironmentFailure("the disk is gone")

    solution = await exact.solve(TASK, config=CONFIG, **OWN | {"environments": Broken})
    assert (solution.result.status, solution.score) == ("failed", None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"task": 3}, "task is of type int"),
        ({"task": "minwob/click-test"}, "did you mean 'miniwob'"),
        ({"task": "miniwob/click-*"}, "stands for .* tasks: name one of them"),
        ({"agent": "rmcts_bultin", "config": None}, "did you mean 'rmcts_builtin'"),
        ({"agent": 3, "config": None}, "agent is int 3"),
        ({"agent": "rmcts_builtin", "config": CONFIG}, "config is for an agent that is an Agent object"),
        ({"environments": Number()}, "environments is one environment"),
    ],
)
async def test_a_wrong_argument_is_named(arguments, says):
    given = {"task": TASK, **OWN} | arguments
    with pytest.raises(exact.UsageError, match=says):
        await exact.solve(given.pop("task"), **given)


def test_a_task_of_a_benchmark_is_solved_by_the_built_in_agent():
    solution = exact.solve_sync("miniwob/click-test")
    assert solution.score == 1.0 and solution.actions[0].startswith("click ")
