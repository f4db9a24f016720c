import sys
from contextlib import nullcontext

import pytest

import exact
from exact.environments.own import factory_of
from exact.runs.runner import create
from tests.library.number import Both, Near, Number
from tests.report.journals import shop_run

TASKS = tuple(exact.Task(id=f"number/{name}", instruction="Reach 5.") for name in ("a", "b"))


@pytest.fixture
async def path(tmp_path):
    config = exact.Config.parse({"search": {"algorithm": "greedy"}})
    runner = exact.Runner(
        folder=create(tmp_path / "run", TASKS, config, benchmark=False),
        config=config,
        open_environments=lambda task: nullcontext(factory_of(Number)),
        build_agent=lambda *_: exact.Agent(policy=Both(), value=Near()),
    )
    await runner.run()
    return tmp_path / "run"


def test_a_run_has_its_tasks_results_journals_and_trees(path):
    run = exact.open_run(path)
    assert [task.id for task in run.tasks] == ["number/a", "number/b"]
    assert [(line["task"], line["score"]) for line in run.results()] == [("number/a", 1.0), ("number/b", 1.0)]
    assert run.journal("number/a")[0].task == TASKS[0]
    assert run.tree("number/a").root.terminated and 0 in run.graph("number/a")
    assert str(run.tree(TASKS[0])) == str(run.tree("number/a")) and run.journal(TASKS[0]) == run.journal("number/a")
    assert run.report(TASKS[1]) == run.report("number/b")
    assert run.report("number/a").read_text().lower().startswith("<!doctype html>")
    assert repr(run) == f"<Run {path}: 2 tasks, 2 ended, mean score 1.00>"
    assert run._repr_html_().count("<tr>") == 3


def test_a_tree_in_a_notebook_names_elements_as_the_report_does(tmp_path):
    tree = exact.open_run(shop_run(tmp_path / "run").path).tree()
    assert 'click link "Green tea"' in str(tree) and "click [4]" not in str(tree)
    assert "click link &quot;Green tea&quot;" in tree._repr_html_()


def test_a_runner_writes_a_report_of_each_task_and_an_index(path):
    assert (path / "index.html").exists() and len([*path.rglob("report.html")]) == 2


def test_a_task_is_named_where_there_are_several(path):
    run = exact.open_run(path)
    with pytest.raises(exact.UsageError, match="the run has 2 tasks: name one, such as 'number/a'"):
        run.tree()
    with pytest.raises(exact.UsageError, match="unknown task 'number/c'"):
        run.journal("number/c")
    with pytest.raises(exact.UsageError, match=r"^task is of type int: give a Task, or its id, such as 'number/a'$"):
        run.tree(0)


def test_what_is_not_installed_is_named_with_the_way_out(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "networkx", None)
    run = exact.open_run(path)
    with pytest.raises(exact.UsageError, match="pip install pandas, or use results"):
        run.frame()
    with pytest.raises(exact.UsageError, match="pip install networkx, or use tree"):
        run.graph("number/a")


def test_a_folder_without_a_run_is_a_usage_error(tmp_path):
    with pytest.raises(exact.UsageError, match="no run in"):
        exact.open_run(tmp_path)
