import pytest

from exact.environments.base import RewardSource
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.environments.reward import ScoredEnvironment, Totals, reward_of, rewarded_factory, with_rewards
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Outcome, Task
from tests.library.number import Number

TASK = Task(id="toy/chain", instruction="")


def go(environment, link):
    return environment.actions.action("go", link)


async def test_a_toy_gives_the_reward_of_the_state_that_ends_it():
    async with ToyFactory(chain(1)).open(simulation=True) as environment:
        await environment.reset(TASK)
        assert isinstance(environment, RewardSource) and environment.reward() == 0.0
        await environment.step(go(environment, "on"))
        assert environment.reward() == 1.0
        await environment.reset(TASK)
        assert environment.reward() == 0.0


@pytest.mark.parametrize("fidelity", ["full", "replay"])
async def test_a_factory_records_the_total_reward_of_each_path(fidelity):
    totals = Totals()
    async with rewarded_factory(ToyFactory(chain(2), fidelity=fidelity), totals).open(simulation=True) as environment:
        await environment.reset(TASK)
        await environment.step(go(environment, "on"))
        await environment.step(go(environment, "on"))
    assert totals == {("toy/chain", 'go "on"'): 0.0, ("toy/chain", 'go "on"', 'go "on"'): 1.0}


async def test_a_fork_goes_on_with_the_total_of_its_snapshot():
    totals = Totals()
    environments = rewarded_factory(ToyFactory(chain(2), fidelity="full"), totals)
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        await environment.step(go(environment, "on"))
        async with environments.fork(await environment.snapshot(), simulation=True) as fork:
            await fork.step(go(fork, "on"))
    assert totals["toy/chain", 'go "on"', 'go "on"'] == 1.0


class Unrewarded(Number):
    pass


class Broken(Number):
    def reward(self):
        return float("nan")


def test_a_missing_reward_and_one_that_is_no_number_are_errors_with_a_way_out():
    with pytest.raises(UsageError, match=r"Unrewarded gives no rewards: it needs a method"):
        reward_of(Unrewarded())
    with pytest.raises(EnvironmentFailure, match="Broken gave the reward nan"):
        reward_of(Broken())


async def test_an_environment_with_an_evaluator_gives_its_score_as_the_last_reward():
    async with ToyFactory(chain(1)).open(simulation=True) as inner:
        environment = ScoredEnvironment(inner)
        await environment.reset(TASK)
        await environment.step(go(environment, "on"))
        assert environment.reward() == 1.0
        assert (await environment.evaluate(Outcome(actions=('go "on"',)))).value == 1.0
        assert with_rewards(environment) is environment and isinstance(with_rewards(inner), ScoredEnvironment)


GUEST = """
class Counter:
    actions = [{"name": "add", "form": ["number"]}]

    def reset(self, task):
        return {"text": "start"}

    def step(self, action):
        return {"observation": {"text": "on"}, **self.given(float(action["args"][0]))}


class Given(Counter):
    def given(self, number):
        return {"reward": number}


class Asked(Counter):
    def given(self, number):
        self.last = number
        return {}

    def reward(self):
        return self.last


class Silent(Counter):
    def given(self, number):
        return {}
"""


ENDS = """{}

class Ending:
    def step(self, action):
        moved = super().step(action)
        return moved if float(action["args"][0]) else {{**moved, "observation": None, "terminated": True}}

    def evaluate(self, outcome):
        return {{"value": 0.5, "success": False}}


class EndsGiven(Ending, Given):
    pass


class EndsSilent(Ending, Silent):
    pass
"""


@pytest.mark.parametrize("kind", ["Given", "Asked"])
async def test_a_guest_gives_its_rewards_with_its_steps_or_by_a_method(tmp_path, kind):
    (tmp_path / "counter.py").write_text(GUEST)
    async with WorkerFactory(EnvironmentSpec(f"{tmp_path / 'counter.py'}:{kind}")).open(simulation=True) as worker:
        await worker.reset(TASK)
        assert worker.reward() == 0.0
        await worker.step(worker.actions.action("add", 2.5))
        assert reward_of(worker) == 2.5


async def test_a_guest_without_rewards_says_so(tmp_path):
    (tmp_path / "counter.py").write_text(GUEST)
    async with WorkerFactory(EnvironmentSpec(f"{tmp_path / 'counter.py'}:Silent")).open(simulation=True) as worker:
        await worker.reset(TASK)
        await worker.step(worker.actions.action("add", 1))
        with pytest.raises(UsageError, match="gives no rewards"):
            reward_of(worker)


@pytest.mark.parametrize(("kind", "rewards"), [("Given", (3.0, 0.0)), ("Silent", (0.0, 0.5))])
async def test_a_guest_gives_its_own_rewards_or_else_its_score(tmp_path, kind, rewards):
    (tmp_path / "counter.py").write_text(ENDS.format(GUEST))
    async with WorkerFactory(EnvironmentSpec(f"{tmp_path / 'counter.py'}:Ends{kind}")).open(simulation=True) as worker:
        environment = with_rewards(worker)
        await environment.reset(TASK)
        await environment.step(environment.actions.action("add", 3))
        first = reward_of(environment)
        await environment.step(environment.actions.action("add", 0))
        assert (first, reward_of(environment)) == rewards
