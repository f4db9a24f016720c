from contextlib import nullcontext

import msgspec
import pytest
from click.testing import CliRunner

import exact
from exact.agents.agent import Agent, build_agent
from exact.agents.value.controls import RewardValue
from exact.cli.show import show
from exact.config import Config, parse
from exact.context import Context, Taken
from exact.environments.toy.environment import TOY_ACTIONS
from exact.environments.toy.factory import ToyFactory, deceptive_chain
from exact.errors import ModelError, UsageError
from exact.observation import Observation
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.library.test_search import Links

TASK = Task(id="toy/chain", instruction="")
SEEN = Observation(text="", fingerprint="a")


def context(*links, **fields):
    history = tuple(Taken(observation=SEEN, action=TOY_ACTIONS.action("go", link)) for link in links)
    return Context(task=TASK, instruction="", observation=SEEN, history=history, **fields)


def rewarded(total, low=0.0, high=1.0):
    value = RewardValue(low, high)
    value.totals["toy/chain", 'go "on"'] = total
    return value


@pytest.mark.parametrize(("total", "low", "high", "worth"), [(0.0, 0.0, 1.0, 0.0), (1.0, 0.0, 1.0, 1.0), (-100.0, -200.0, 0.0, 0.5)])
async def test_a_total_reward_is_mapped_whether_or_not_the_episode_goes_on(total, low, high, worth):
    value = rewarded(total, low, high)
    assert (await value.evaluate(context("on", terminated=True))).value == worth
    assert (await value.evaluate(context("on"))).value == worth


async def test_rewards_outside_the_range_are_worth_its_ends():
    assert (await rewarded(7.0).evaluate(context("on", terminated=True))).value == 1.0
    assert (await rewarded(-7.0).evaluate(context("on", terminated=True))).value == 0.0


async def test_an_action_that_was_not_carried_out_adds_nothing_and_an_unknown_path_is_an_error():
    value = rewarded(1.0)
    assert (await value.evaluate(context("on", "off", unseen=True))).value == 1.0
    with pytest.raises(ModelError, match="start a new run"):
        await value.evaluate(context("off"))


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, float("nan"))])
def test_a_range_of_rewards_has_two_ends(ends):
    with pytest.raises(UsageError, match="invalid range of rewards"):
        RewardValue(*ends)


async def test_a_search_by_rewards_finds_the_end_that_pays():
    tree = await exact.search(ToyFactory(deceptive_chain(3)), policy=Links(), value=RewardValue(), iterations=60)
    best = max((node for node in tree.nodes if node.terminated), key=lambda node: node.value or 0.0)
    assert best.value == 1.0


def test_a_reward_is_no_part_of_another_value_function_and_has_no_calibration():
    for value in ({"kind": "ensemble", "members": [{"kind": "reward"}]}, {"kind": "reward", "calibration": "curve.json"}):
        with pytest.raises(UsageError, match="reward"):
            build_agent(parse({"value": value}), lambda role: None)


@pytest.mark.parametrize("id", ["miniwob/click-test", "desktop/text-file"])
async def test_rewards_of_a_benchmark_are_refused_before_a_folder_is_made(tmp_path, id):
    task, out = Task(id=id, instruction=""), tmp_path / "run"
    with pytest.raises(UsageError, match="no agent may see"):
        create(out, (task,), parse({"value": {"kind": "reward"}}))
    agent = Agent(policy=Links(), value=RewardValue())
    with pytest.raises(UsageError, match="no agent may see"):
        await exact.solve(task, agent=agent, environments=ToyFactory(deceptive_chain(1)), out=out)
    with pytest.raises(UsageError, match="no agent may see"):
        await exact.search(ToyFactory(deceptive_chain(1)), task=task, policy=Links(), value=RewardValue())
    assert not out.exists()


async def test_the_runner_refuses_an_agent_that_reads_rewards_on_a_benchmark(tmp_path):
    folder = create(tmp_path / "run", (Task(id="miniwob/click-test", instruction=""),), Config())
    runner = Runner(
        folder=folder, config=Config(), open_environments=lambda task: nullcontext(ToyFactory(deceptive_chain(1))),
        build_agent=lambda *_: Agent(policy=Links(), value=RewardValue()),
    )  # fmt: skip
    with pytest.raises(UsageError, match="no agent may see"):
        await runner.run()


async def test_a_run_that_read_rewards_is_marked(tmp_path):
    agent = Agent(policy=Links(), value=RewardValue())
    solution = await exact.solve(TASK, agent=agent, environments=ToyFactory(deceptive_chain(2)), out=tmp_path / "run")
    assert solution.score == 1.0 and solution.result.trained_with_reward
    assert RunFolder.open(tmp_path / "run").manifest.trained_with_reward
    assert "trained with reward" in shown(tmp_path / "run")
    assert msgspec.json.decode(shown(tmp_path / "run", "--json"))["trained_with_reward"] is True
    assert "Trained with reward" in next((tmp_path / "run").glob("tasks/*/report.html")).read_text()


def shown(path, *options):
    return CliRunner().invoke(show, [str(path), *options]).output
