"""A user's own parts with a fault: one UsageError before work begins, or one failed attempt whose reason names the class and the method."""

import asyncio
import math
import re

import pytest

import exact
from exact.environments.guarded import guarded_factory
from exact.environments.own import factory_of
from tests.library.number import Both, Near, Number

ODD, GOOD = (exact.Task(id=f"number/{name}", instruction="Reach 5.") for name in ("odd", "good"))
PROPOSALS = "a list of Proposals, texts of actions, or pairs of a text and its prior"


class Saved(Number):
    """A Number with snapshots. Its task is the last one that it was reset to."""

    capabilities = exact.Capabilities(fidelity="client", isolated=True)
    task, count = GOOD, 0

    async def reset(self, task):
        self.task = task
        return await super().reset(task)

    async def snapshot(self):
        Saved.count += 1
        return exact.Snapshot(id=f"{Saved.count}/{self.number}", fidelity="client", fingerprint=str(self.number))

    async def restore(self, snapshot):
        self.number = int(snapshot.id.partition("/")[2])
        return self.seen()


def odd(base, method, fault):
    """Return a subclass whose method has a fault in the task ODD alone."""

    def call(self, *given):
        about = given[0] if given and isinstance(given[0], exact.Task) else getattr(given[0], "task", None) if given else None
        if (about if isinstance(about, exact.Task) else self.task).id == ODD.id:
            return fault(self, *given)
        return getattr(super(Odd, self), method)(*given)

    Odd = type("Odd", (base,), {method: call})
    return Odd


def returns(value):
    async def fault(*_):
        return value

    return fault


def raises(error):
    async def fault(*_):
        raise error

    return fault


def at_once(value):
    return lambda *_: value


async def unawaited(*_):
    return asyncio.sleep(0)


async def generator(*_):
    yield 0.5


ONE = Number.actions.action("one")


def proposal(action=ONE, prior=1.0):
    return exact.Proposal(action=action, prior=prior)


async def attempted(*, policy=Both(), value=Near(), environments=Number, tasks=(ODD, GOOD), out=None, **sections):  # noqa: B008
    config = exact.Config.parse({"search": {"iterations": 3}, "reflection": {"kind": "none"}, **sections})
    agent = exact.Agent(policy=policy, value=value)
    async with asyncio.timeout(20):
        return await exact.solve_many(tasks, agent=agent, environments=environments, config=config, out=out)


def check(solutions, says):
    failed, good = (each.result for each in solutions)
    assert (failed.status, failed.score) == ("failed", None) and "\n" not in failed.reason
    assert says in failed.reason, failed.reason
    assert good.status == "scored"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (returns(None), f"returned None: expected {PROPOSALS}"),
        (returns([1, 2]), f"returned int 1: expected {PROPOSALS}"),
        (returns("one"), f"returned str 'one': expected {PROPOSALS}"),
        (returns({"one": 1.0}), f"returned dict {{'one': 1.0}}: expected {PROPOSALS}"),
        (returns(Both), f"returned the class Both: expected {PROPOSALS}"),
        (returns([("one", 0.5, 1)]), f"returned tuple ('one', 0.5, 1): expected {PROPOSALS}"),
        (returns(["fly"]), "proposed 'fly': unknown action 'fly': valid: one, two"),
        (returns([proposal(exact.Action("fly", (), "fly"))]), "proposed 'fly', which is no action here: expected one of one, two"),
        (returns([proposal("one")]), "returned Proposal that cannot be stored"),
        (returns([proposal(prior=math.nan)]), "gave 'one' the prior nan: expected a number of at least 0"),
        (returns([("one", -1)]), "gave 'one' the prior -1: expected a number of at least 0"),
        (returns([("one", "high")]), "gave 'one' the prior 'high': expected a number of at least 0"),
        (at_once(["one"]), "returned list ['one'] from a plain function: write `async def`"),
        (unawaited, f"returned a coroutine that was not awaited: expected {PROPOSALS}"),
        (generator, "yields its result: return it"),
        (raises(ValueError("boom")), "raised ValueError: boom (test_own_parts.py, line "),
        (raises(exact.UsageError("boom")), "raised exact.errors.UsageError: boom (test_own_parts.py, line "),
        (raises(asyncio.CancelledError()), "raised asyncio.exceptions.CancelledError (test_own_parts.py, line "),
        (lambda self: [], "raised TypeError: "),
    ],
)
async def test_a_faulty_policy_fails_its_own_attempt(fault, says):
    check(await attempted(policy=odd(Both, "propose", fault)()), f"policy.propose: Odd {says}")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (returns(None), "returned None: expected a number in [0, 1] or an Evaluation"),
        (returns("high"), "returned str 'high': expected a number in [0, 1] or an Evaluation"),
        (returns([0.5]), "returned list [0.5]: expected a number in [0, 1] or an Evaluation"),
        (returns(math.nan), "returned the value nan: expected one in [0, 1]"),
        (returns(1.5), "returned the value 1.5: expected one in [0, 1]"),
        (returns(exact.Evaluation(value=-3)), "returned the value -3: expected one in [0, 1]"),
        (returns(exact.Evaluation(value="high")), "returned Evaluation that cannot be stored"),
        (at_once(0.5), "returned float 0.5 from a plain function: write `async def`"),
        (unawaited, "returned a coroutine that was not awaited: expected a number in [0, 1] or an Evaluation"),
        (generator, "yields its result: return it"),
        (raises(ValueError("boom")), "raised ValueError: boom (test_own_parts.py, line "),
        (raises(exact.UsageError("boom")), "raised exact.errors.UsageError: boom (test_own_parts.py, line "),
    ],
)
async def test_a_faulty_value_function_fails_its_own_attempt(fault, says):
    check(await attempted(value=odd(Near, "evaluate", fault)()), f"value.evaluate: Odd {says}")


FAULTS = [
    (returns(None), "returned None: expected {kind}"),
    (returns((1, 2)), "returned tuple (1, 2): expected {kind}"),
    (at_once(7), "returned int 7 from a plain function: write `async def`"),
    (unawaited, "returned a coroutine that was not awaited: expected {kind}"),
    (generator, "yields its result: return it"),
    (raises(ValueError("boom")), "raised ValueError: boom (test_own_parts.py, line "),
    (raises(exact.UsageError("boom")), "raised exact.errors.UsageError: boom (test_own_parts.py, line "),
]
NAMES = ["None", "tuple", "plain", "unawaited", "generator", "ValueError", "UsageError"]


@pytest.mark.parametrize(("method", "kind"), [("reset", "Observation"), ("step", "Transition"), ("evaluate", "Score")])
@pytest.mark.parametrize(("fault", "says"), FAULTS, ids=NAMES)
async def test_a_faulty_environment_fails_its_own_attempt(method, kind, fault, says):
    solutions = await attempted(environments=odd(Saved, method, fault))
    check(solutions, f"environment.{method}: Odd {says.format(kind=kind)}")


@pytest.mark.parametrize(("method", "kind"), [("snapshot", "Snapshot"), ("restore", "Observation")])
@pytest.mark.parametrize(("fault", "says"), FAULTS, ids=NAMES)
async def test_a_faulty_snapshot_or_return_is_refused_with_a_note_and_one_warning(method, kind, fault, says, caplog):
    notes, said = [], f"environment.{method}: Odd {says.format(kind=kind)}"
    async with guarded_factory(factory_of(odd(Saved, method, fault)), notes.append).open(simulation=True) as environment:
        await environment.reset(ODD)
        for _ in range(2):
            with pytest.raises(exact.EnvironmentFailure, match=re.escape(said)):
                await (environment.snapshot() if method == "snapshot" else environment.restore(await environment.snapshot()))
    [warned] = [each.getMessage() for each in caplog.records]
    assert len(notes) == 2 and warned == f"{notes[0]}; the attempt goes on without it"


CLOSING = [(fault, says) for fault, says in FAULTS if "expected" not in says] + [(unawaited, "returned a coroutine that was not awaited")]


@pytest.mark.parametrize(("fault", "says"), CLOSING)
async def test_an_environment_that_does_not_close_costs_a_warning(fault, says, caplog):
    for each in await attempted(environments=odd(Saved, "close", fault)):
        assert each.result.status == "scored"
    [warned] = [each.getMessage() for each in caplog.records if "close" in each.getMessage()]
    assert f"environment.close: Odd {says}" in warned


class Unmade(Saved):
    def __init__(self, size):
        super().__init__()


class Unset(Saved):
    def __init__(self):
        raise ValueError("boom")


class Opened:
    """A factory that opens what it is given."""

    def __init__(self, given):
        self.given = given

    def open(self, *, simulation):
        return self.given


class Bare:
    actions = Number.actions

    async def reset(self, task):
        return exact.Observation(text="one")


def subclass(**attributes):
    return type("Odd", (Saved,), attributes)


@pytest.mark.parametrize(
    ("environments", "says"),
    [
        (Unmade, "environment.open: Unmade raised TypeError: "),
        (Unset, "environment.open: Unset raised ValueError: boom (test_own_parts.py, line "),
        (lambda: None, "environment.open: <lambda> returned None: expected an object with reset, step, actions and capabilities"),
        (lambda: Saved, "environment.open: <lambda> returned the class Saved: expected an object with reset, step"),
        (lambda size: Saved(), "environment.open: <lambda> raised TypeError: "),
        (Opened(None), "environment.open: Opened returned None: expected an async context manager"),
        (Opened(Saved()), "environment.open: Opened returned an object of type Saved: expected an async context manager"),
        (subclass(actions=["one", "two"]), "environment.actions: Odd has list ['one', 'two']: expected ActionSpace"),
        (subclass(capabilities=None), "environment.capabilities: Odd has None: expected Capabilities"),
        (subclass(step=None), "environment.open: Odd returned an object of type Odd: expected an object with reset, step"),
        (subclass(actions=property(lambda self: 1 / 0)), "environment.actions: Odd raised ZeroDivisionError: division by zero"),
        (subclass(evaluate=returns(exact.Score(value=math.nan, success=False))), "environment.evaluate: Odd returned the score nan"),
    ],
)
async def test_an_environment_that_does_not_open_fails_each_attempt(environments, says):
    for each in await attempted(environments=environments):
        assert (each.result.status, each.score) == ("failed", None) and says in each.result.reason


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"policy": Both}, r"^policy is the class Both: give an instance of it, such as Both\(\)$"),
        ({"value": Near}, r"^value is the class Near: give an instance of it, such as Near\(\)$"),
        ({"policy": Near(), "value": Both()}, "^policy is an object of type Near, which has no propose: its evaluate makes it a value: "),
        ({"value": Both()}, "^value is an object of type Both, which has no evaluate: its propose makes it a policy: "),
        ({"policy": None}, "^policy is None, which has no propose: give an object that has propose$"),
        ({"value": lambda context: 0.5}, "^value is an object of type function, which has no evaluate"),
        ({"environments": Saved()}, "^environments is one environment"),
        ({"environments": 3}, "^environment is of type int"),
        ({"environments": Both}, "^environment is the class Both, which has no reset"),
        ({"environments": Bare}, "^environment is the class Bare, which has no step"),
        ({"environments": Bare()}, "^environment is of type Bare, which has no step"),
        ({"environments": Opened}, r"^environment is the class Opened of a factory: give an instance of it, such as Opened\(\)$"),
    ],
)
async def test_a_part_that_cannot_be_one_is_refused_before_work_begins(given, says):
    with pytest.raises(exact.UsageError, match=says):
        await attempted(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [({"agent": exact.Agent}, "^agent is the class Agent: give an Agent"), ({"algorithm": exact.MCTS}, "^algorithm is the class MCTS: ")],
)
async def test_a_class_in_place_of_an_agent_or_a_name_is_refused(given, says):
    with pytest.raises(exact.UsageError, match=says):
        await (exact.solve(ODD, **given) if "agent" in given else exact.search(Number, policy=Both(), value=Near(), **given))


async def test_search_and_solve_raise_the_error_of_a_part():
    policy, value = Both(), odd(Near, "evaluate", returns(None))()
    with pytest.raises(exact.PartError, match=r"^value\.evaluate: Odd returned None: "):
        await exact.search(Number, policy=policy, value=value, task=ODD)
    with pytest.raises(exact.PartError, match=r"^value\.evaluate: Odd returned None: "):
        await exact.solve(ODD, agent=exact.Agent(policy=policy, value=value), environments=Number)


class Texts:
    """A policy that gives what it is made with."""

    def __init__(self, *given):
        self.given = given

    async def propose(self, context, actions, k):
        return self.given


@pytest.mark.parametrize(
    ("given", "priors"),
    [
        (("one", "two"), (0.5, 0.5)),
        ((ONE, "two"), (0.5, 0.5)),
        ((("one", 3), ("two", 1)), (0.75, 0.25)),
        ((["one", 0.75], (Number.actions.action("two"), 0.25)), (0.75, 0.25)),
        ((proposal(prior=0.9), "two"), (0.5, 0.5)),
        ((proposal(prior=0.6), ("two", 0.2)), (0.75, 0.25)),
        ((("one", 0), "two"), (0.5, 0.5)),
    ],
)
async def test_a_policy_may_give_texts_and_pairs(given, priors):
    tree = await exact.search(Number, policy=Texts(*given), value=Near(), iterations=6)
    assert [(edge.action.key, edge.prior) for edge in tree.root.edges] == [
        ("one", pytest.approx(priors[0])),
        ("two", pytest.approx(priors[1])),
    ]


class Plain:
    """A value function that gives the number of an Evaluation, and takes states together if it is wanted."""

    async def evaluate(self, context):
        return (await Near().evaluate(context)).value

    async def evaluate_all(self, contexts):
        return [await self.evaluate(context) for context in contexts]


@pytest.mark.parametrize("settings", [{}, {"algorithm": "beam", "batch": True}])
async def test_a_value_function_may_give_numbers(settings):
    given = {"policy": Both(), "iterations": 8, "settings": settings}
    found, wanted = [await exact.search(Number, value=value, **given) for value in (Plain(), Near())]
    assert str(found) == str(wanted) and found.root.edges[0].visits > 1


@pytest.mark.parametrize("kind", ["ensemble", "cascade"])
async def test_a_value_function_within_another_one_may_give_numbers(kind):
    member = {"kind": f"{__name__}:Plain"}
    config = {
        "search": {"iterations": 3},
        "value": {"kind": kind, "members": [member, member]},
        "policy": {"kind": "tests.library.number:Both"},
    }
    solution = await exact.solve(GOOD, agent=exact.Config.parse(config | {"reflection": {"kind": "none"}}), environments=Number)
    assert solution.result.status == "scored", solution.result.reason


async def test_a_number_of_evaluations_that_are_not_those_of_the_states_is_named():
    value = type("Odd", (Plain,), {"evaluate_all": returns([0.5, 0.5, 0.5])})()
    with pytest.raises(exact.PartError, match=r"^value\.evaluate_all: Odd returned list .*: expected a list of 2 evaluations"):
        await exact.search(Number, policy=Both(), value=value, settings={"algorithm": "beam", "batch": True})


async def test_a_function_that_makes_an_environment_may_be_asynchronous():
    async def make():
        return Number()

    assert len((await exact.search(make, policy=Both(), value=Near(), iterations=6)).nodes) > 2
