"""The guarantees: each is a function that tries one and raises Broken if it does not hold."""

from __future__ import annotations

from exact.action import Action
from exact.environments.base import Environment, ForkableFactory, Snapshot
from exact.environments.check.base import TRIES, Broken, Skip, Subject
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Outcome
from exact.text import counted


async def resets_alike(subject: Subject) -> str:
    """Check that equal resets lead to equal states: in a used environment and in another one."""
    async with subject.environment() as one:
        first = await subject.reset(one)
        await subject.walk(one, first, 3, "reset")
        await _resets_to(subject, one, first, "the same environment, after three actions")
        if together := one.capabilities.concurrent:
            async with subject.environment() as other:
                await _resets_to(subject, other, first, "another environment")
    if not together:
        async with subject.environment() as other:
            await _resets_to(subject, other, first, "another environment")
    return "3 resets in 2 environments alike"


async def _resets_to(subject: Subject, environment: Environment, first: Observation, where: str) -> None:
    again = await subject.reset(environment)
    if again.fingerprint != first.fingerprint:
        raise Broken(f"reset led to another state in {where}: seed what is random, mark what is volatile")


async def repeats(subject: Subject) -> str:
    """Check that equal actions after equal resets lead to equal states."""
    async with subject.environment() as environment:
        if environment.capabilities.deterministic is False:
            raise Skip("says itself that it is not deterministic")
        path = await subject.set_out(environment, subject.steps, "repeat")
        if difference := await subject.retrace(environment, path):
            raise Broken(difference)
    return f"{counted(len(path), 'action')} alike"


async def actions_round_trip(subject: Subject) -> str:
    """Check that the written form of an action parses to the same action."""
    async with subject.environment() as environment:
        seen = await subject.reset(environment)
        found = list(subject.propose(seen, environment.actions))
        if not found:
            raise Broken("no action could be made of the first observation: name elements, or give `propose`")
        for action in found:
            if environment.actions.parse(action.key) != action:
                raise Broken(f"{action.key} parses to {environment.actions.parse(action.key)!r}")
    return counted(len(found), "action")


async def elements_can_be_acted_on(subject: Subject) -> str:
    """Check that elements of an observation exist: actions on them are mostly accepted."""
    tried = refused = 0
    async with subject.environment() as environment:
        seen = await subject.reset(environment)
        for action in [a for a in subject.propose(seen, environment.actions) if a.elements][:12]:
            if tried >= 3 and subject.late():
                break
            await subject.reset(environment)
            tried += 1
            try:
                await subject.step(environment, action)
            except ActionError:
                refused += 1
    if tried and refused > tried / 2:
        raise Broken(f"{refused} of {tried} actions on elements that are shown were refused: is the observation stale?")
    return f"{tried - refused} of {tried} accepted" if tried else "its actions name no elements"


async def snapshots_are_states(subject: Subject) -> str:
    """Check that a restore returns to the state that was left, at every depth, and that the next actions have the same result."""
    async with subject.environment() as environment:
        if environment.capabilities.fidelity == "replay":
            raise Skip("has no snapshots of its own: states are reached by reset and replay")
        if environment.capabilities.fidelity == "page":
            return await _pages_come_back(subject, environment)
        seen, snapshot, reached = await subject.reset(environment), None, 0
        for depth in range(1, subject.depth + 1):
            if reached and subject.late(reached / depth):  # too late for another like those
                break
            if (deeper := await _deeper(subject, environment, seen, snapshot, depth)) is None:
                break
            (seen, snapshot), reached = await _returns(subject, environment, deeper, depth), depth
    return f"depths 1 to {reached}" if reached else "no state to return to: no action leads on"


async def _pages_come_back(subject: Subject, environment: Environment) -> str:
    """Report how far page snapshots carry. They hold no script state: a difference that a fingerprint shows breaks no guarantee."""
    back = on = refused = 0
    for depth in range(1, subject.depth + 1):
        path = await subject.walk(environment, await subject.reset(environment), depth, f"page {depth}")
        if len(path) < depth:  # the last action ended the episode
            await subject.retrace(environment, path)
        try:
            snapshot = await subject.call("snapshot", environment.snapshot())
            ahead = await subject.walk(environment, path[-1][1], 2, f"ahead {depth}") if path else []
            seen = await subject.call("restore", environment.restore(snapshot))
        except EnvironmentFailure:
            refused += 1
            continue
        if seen.fingerprint == snapshot.fingerprint:
            back, on = back + 1, on + (not await subject.follow(environment, ahead))
    return f"{back} of {subject.depth} pages came back, {on} of them went on alike; {refused} refused, the rest seen to differ"


async def _deeper(
    subject: Subject, environment: Environment, seen: Observation, snapshot: Snapshot | None, depth: int
) -> Observation | None:
    """Take two more actions, away from ends; return the state, or None if every action ends.

    `kept`: the snapshot at the beginning, if any.
    """
    for attempt in range(TRIES):
        path = await subject.walk(environment, seen, 2, f"snapshot {depth} {attempt}")
        if len(path) == 2 and not getattr(environment, "obstacle", ""):
            return path[-1][1]
        await (subject.call("restore", environment.restore(snapshot)) if snapshot else subject.reset(environment))
    return None


async def _returns(subject: Subject, environment: Environment, seen: Observation, depth: int) -> tuple[Observation, Snapshot]:
    """Continue, return, and repeat the continuation: its states must be the same. Ends in the state in which it began, the snapshot."""
    snapshot = await subject.call("snapshot", environment.snapshot())
    if snapshot.fingerprint != seen.fingerprint:
        raise Broken(f"depth {depth}: the state that was observed is not the state that was saved: a stale observation?")
    back = seen
    for way in range(subject.ways):
        on = await subject.walk(environment, back, 4, f"on {depth} {way}", keys=True)
        for last in (False, True):
            back = await subject.call("restore", environment.restore(snapshot))
            if back.fingerprint != seen.fingerprint:
                raise Broken(f"depth {depth}: restore led to another state than was saved")
            if not last and (difference := await subject.follow(environment, on)):
                raise Broken(f"depth {depth}: after restore {difference}: something is not saved (focus? scroll? server?)")
    return back, snapshot


async def environments_are_independent(subject: Subject) -> str:
    """Check that actions in one environment are not seen in another, nor after its reset."""
    async with subject.environment() as one:
        if not one.capabilities.concurrent:
            raise Skip("says itself that only one acts at a time")
        if not one.capabilities.isolated:
            raise Skip("not isolated: it says itself that others see what it does")
        async with subject.environment() as other:
            length = await _is_untouched(subject, one, other)
    return f"2 environments, {counted(length, 'action')} each"


async def _is_untouched(subject: Subject, one: Environment, other: Environment) -> int:
    """Act in one environment and look for it in another, and after a reset. Return the number of actions."""
    path = await subject.set_out(one, subject.steps, "branch")
    await subject.walk(other, await subject.reset(other), subject.steps, "other branch")
    for environment, where in ((other, "in another environment"), (one, "after a reset")):
        if difference := await subject.retrace(environment, path):
            raise Broken(f"what one environment did is seen {where}: {difference}")
    return len(path)


async def forks_are_independent(subject: Subject) -> str:
    """Check that forks begin at their snapshot, and that none sees the actions of another or of the environment of the snapshot."""
    if not isinstance(subject.environments, ForkableFactory):
        raise Skip("its environments do not fork")
    async with subject.environment() as environment:
        if environment.capabilities.fidelity not in ("full", "client"):
            raise Skip("its snapshots are not of whole environments")
        path = await subject.walk(environment, await subject.reset(environment), 2, "fork")
        if len(path) < 2:
            await subject.retrace(environment, path)
        if getattr(environment, "obstacle", ""):
            await subject.reset(environment)
        snapshot = await subject.call("snapshot", environment.snapshot())
        async with subject.fork(snapshot) as one, subject.fork(snapshot) as other:
            for fork in (one, other):
                if fork.observation.fingerprint != snapshot.fingerprint:
                    raise Broken("a fork is in another state than its snapshot")
            ahead = await subject.walk(one, one.observation, subject.steps, "ahead")
            for untouched, what in ((other, "its sibling"), (environment, "the environment it branched from")):
                if difference := await subject.follow(untouched, ahead):
                    raise Broken(f"the actions of one fork are seen in {what}: {difference}")
    return f"2 forks, {counted(len(ahead), 'action')} each"


async def errors_are_typed(subject: Subject) -> str:
    """Check that errors are typed.

    A refused action is an ActionError that changes nothing, and close may come twice. If no action has an argument, each always fits, so
    none is refused: an agent's actions are those of the action space.
    """
    async with subject.environment() as environment:
        wrong = Action("nonsense", (), "nonsense")
        seen = await subject.reset(environment)
        if fits := any(verb.form or verb.code for verb in environment.actions.verbs.values()):
            await _refuses(subject, environment, "an action that does not exist", wrong)
        if environment.capabilities.deterministic is not False:
            path = await subject.walk(environment, seen, 2, "error")
            if difference := await subject.retrace(environment, path):
                raise Broken(f"after a refused action: {difference}")
        await subject.call("evaluate", environment.evaluate(Outcome(actions=()))) if environment.capabilities.evaluates else None
        await subject.call("close", environment.close())
    return "refusals change nothing" if fits else "no action has an argument, so none is refused"


async def _refuses(subject: Subject, environment: Environment, what: str, action: Action) -> None:
    try:
        await subject.call(f"step {action}", environment.step(action))
    except ActionError:
        return
    except Exception as error:
        raise Broken(f"{what} raised {type(error).__name__}, not ActionError: {error}") from error
    raise Broken(f"{what} was carried out: raise ActionError")
