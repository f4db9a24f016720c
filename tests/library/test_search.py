import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import exact
from exact.environments.toy.factory import ToyFactory, deceptive_chain
from tests.library.number import Both, Near, Number


def searched(environment, **settings):
    return exact.search(environment, policy=Both(), value=Near(), iterations=12, **settings)


class Numbers:
    @asynccontextmanager
    async def open(self, *, simulation):
        yield Number()


class Links:
    async def propose(self, context, actions, k):
        links = [each.name for each in context.observation.elements if each.role == "link"]
        return tuple(exact.Proposal(action=actions.action("go", name), prior=1 / len(links)) for name in links)


class Half:
    async def evaluate(self, context):
        return exact.Evaluation(value=0.5)


@pytest.mark.parametrize("given", [Number, lambda: Number(), Number(), Numbers()], ids=["class", "function", "instance", "factory"])
async def test_a_search_takes_whatever_stands_for_an_environment(given):
    tree = await searched(given)
    assert [edge.action.name for edge in tree.root.edges] == ["one", "two"] and tree.iterations > 3
    assert max(node.value for node in tree.nodes if node.terminated) == 1.0


async def test_one_environment_stays_open_and_made_ones_are_closed():
    own, made = Number(), []

    def make():
        made.append(Number())
        return made[-1]

    await searched(own)
    await searched(make)
    assert not own.closed and made and all(each.closed for each in made)


async def test_a_search_leaves_no_file_and_commits_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tree = await searched(Number)
    assert tree.root is tree.nodes[0] and list(tmp_path.iterdir()) == []


async def test_the_same_seed_gives_the_same_tree_and_searches_run_side_by_side():
    first, second, other = await asyncio.gather(searched(Number), searched(Number), searched(Number, algorithm="beam"))
    assert str(first) == str(second) != str(other)


async def test_settings_are_keys_of_the_search():
    tree = await searched(Number, settings={"depth": 1})
    assert max(node.depth for node in tree.nodes) == 1


async def test_an_argument_that_is_not_given_is_that_of_the_settings():
    given, settings = {"algorithm": "beam", "iterations": 5}, {"depth": 2}
    by_name, by_settings = [
        await exact.search(Number, policy=Both(), value=Near(), **arguments)
        for arguments in ({**given, "settings": settings}, {"settings": {**given, **settings}})
    ]
    assert str(by_name) == str(by_settings) and by_name.iterations == by_settings.iterations == 5


async def test_a_cancelled_search_closes_its_environments_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, began = [], asyncio.Event()

    class Slow(Number):
        def __init__(self):
            super().__init__()
            made.append(self)

        async def step(self, action):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(searched(Slow))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(each.closed for each in made) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"environment": 3}, "environment is of type int"),
        ({"algorithm": "mtcs"}, "did you mean 'mcts'"),
        ({"settings": {"k": 0}}, "search.k"),
        ({"iterations": 0}, "search.iterations"),
        ({"iterations": 10, "settings": {"iterations": 20}}, "^iterations is 10, and settings has iterations 20: give one of them$"),
        ({"algorithm": "beam", "settings": {"algorithm": "mcts"}}, "^algorithm is 'beam', and settings has algorithm 'mcts'"),
        (
            {"environment": Number(), "settings": {"workers": 4}},
            "^settings has workers 4, and environment is one environment: give its class$",
        ),
    ],
)
async def test_a_wrong_argument_is_named(arguments, says):
    given = {"environment": Number, "policy": Both(), "value": Near()} | arguments
    with pytest.raises(exact.UsageError, match=says):
        await exact.search(given.pop("environment"), **given)


def test_a_search_runs_from_code_that_is_not_asynchronous():
    tree = exact.search_sync(ToyFactory(deceptive_chain(2)), policy=Links(), value=Half(), iterations=6)
    assert len(tree.nodes) > 2


def test_the_package_of_algorithms_is_still_a_package():
    import exact.search.tree as tree
    from exact.search import mcts

    assert tree.Tree is exact.Tree and mcts.MCTS is exact.MCTS and callable(exact.search)
    assert Path(exact.search.__file__).name == "__init__.py"
