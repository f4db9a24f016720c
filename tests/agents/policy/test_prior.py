import pytest

import exact
from exact.agents.base import propose
from exact.agents.policy.prior import RandomPolicy
from exact.context import Context, Proposal
from exact.environments.toy.environment import TOY_ACTIONS
from exact.observation import Element, Observation
from exact.task import Task
from tests.library.number import Near, Number

MOVES = exact.ActionSpace(
    [exact.Verb(name="left"), exact.Verb(name="right"), exact.Verb(name="stop", form=(exact.Parameter.TEXT,), final=True)]
)


class Given:
    def __init__(self, *priors):
        self.priors = priors

    async def propose(self, context, actions, k):
        return [Proposal(action=actions.action("go", str(number)), prior=prior) for number, prior in enumerate(self.priors)]


@pytest.mark.parametrize(
    ("given", "expected"), [((1, 1), (0.5, 0.5)), ((3, 1), (0.75, 0.25)), ((0, 0), (0.5, 0.5)), ((0.9, 0.1), (0.9, 0.1)), ((), ())]
)
async def test_priors_are_scaled_to_sum_to_one(given, expected):
    assert tuple(each.prior for each in await propose(Given(*given), context(), TOY_ACTIONS, 3)) == expected


class Careless:
    def __init__(self, prior):
        self.prior = prior

    async def propose(self, context, actions, k):
        return [Proposal(action=actions.action(verb), prior=self.prior) for verb in actions.verbs]


@pytest.mark.parametrize("prior", [1, 0, 40.0])
async def test_a_search_takes_whatever_priors_a_policy_gives(prior):
    tree = await exact.search(Number, policy=Careless(prior), value=Near(), iterations=12)
    assert [edge.prior for edge in tree.root.edges] == [0.5, 0.5]


def context(*elements):
    seen = Observation(text="observation: 0", fingerprint="0", elements=elements)
    return Context(task=Task(id="game", instruction=""), instruction="", observation=seen)


async def test_the_random_policy_draws_from_the_grammar_where_nothing_can_be_clicked():
    assert {each.action.key for each in await RandomPolicy().propose(context(), MOVES, 6)} == {"left", "right"}


async def test_the_random_policy_draws_the_texts_that_a_state_offers():
    act = exact.ActionSpace([exact.Verb(name="act", form=(exact.Parameter.TEXT,)), MOVES.verbs["stop"]])
    offered = [Element(id=str(number), role="option", name=name) for number, name in enumerate(("[0]", "[1]"))]
    assert {each.action.key for each in await RandomPolicy().propose(context(*offered), act, 6)} == {'act "[0]"', 'act "[1]"'}
