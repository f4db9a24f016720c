"""The promises: each a function that tries one of them and raises Broken where it is not kept."""

from __future__ import annotations

from exact.action import Action
from exact.environments.base import Environment, Forks, Snapshot
from exact.environments.check.base import TRIES, Broken, Skip, Subject
from exact.errors import ActionError, EnvironmentError_, ExactError
from exact.observation import Observation
from exact.task import Outcome


async def resets_alike(subject: Subject) -> str:
    """Equal resets lead to equal states: in one world after it was used, and in another world."""
    async with subject.world() as one, subject.world() as other:
        first = await subject.reset(one)
        await subject.walk(one, first, 3, "reset")
        for world, where in ((one, "the same world, after three actions"), (other, "another world")):
            again = await subject.reset(world)
            if again.fingerprint != first.fingerprint:
                raise Broken(f"reset led to another state in {where}: seed what is random, mark what is volatile")
    return "3 resets in 2 worlds alike"


async def repeats(subject: Subject) -> str:
    """Equal actions after equal resets lead to equal states."""
    async with subject.world() as world:
        if not world.capabilities.deterministic:
            raise Skip("says itself that it is not deterministic")
        path = await subject.set_out(world, subject.steps, "repeat")
        if difference := await subject.retrace(world, path):
            raise Broken(difference)
    return f"{len(path)} actions alike"


async def actions_round_trip(subject: Subject) -> str:
    """The written form of an action parses to the same action."""
    async with subject.world() as world:
        seen = await subject.reset(world)
        found = list(subject.propose(seen, world.actions))
        if not found:
            raise Broken("no action could be made of the first observation: name elements, or give `propose`")
        for action in found:
            if world.actions.parse(action.key) != action:
                raise Broken(f"{action.key} parses to {world.actions.parse(action.key)!r}")
    return f"{len(found)} actions"


async def elements_can_be_acted_on(subject: Subject) -> str:
    """What an observation shows is there: actions on its elements are mostly accepted."""
    tried = refused = 0
    async with subject.world() as world:
        seen = await subject.reset(world)
        for action in [a for a in subject.propose(seen, world.actions) if a.elements][:12]:
            if tried >= 3 and subject.late():
                break
            await subject.reset(world)
            tried += 1
            try:
                await subject.step(world, action)
            except ActionError:
                refused += 1
    if tried and refused > tried / 2:
        raise Broken(f"{refused} of {tried} actions on elements that are shown were refused: is the observation stale?")
    return f"{tried - refused} of {tried} accepted" if tried else "its actions name no elements"


async def snapshots_are_states(subject: Subject) -> str:
    """Restoring returns to the state that was left, at every depth, and what is done next has the same result."""
    async with subject.world() as world:
        if world.capabilities.fidelity == "replay":
            raise Skip("has no snapshots of its own: states are reached by reset and replay")
        if world.capabilities.fidelity == "page":
            return await _pages_come_back(subject, world)
        seen, kept, reached = await subject.reset(world), None, 0
        for depth in range(1, subject.depth + 1):
            if reached and subject.late(reached / depth):  # there is no time for another like those
                break
            if (deeper := await _deeper(subject, world, seen, kept, depth)) is None:
                break
            (seen, kept), reached = await _returns(subject, world, deeper, depth), depth
    return f"depths 1 to {reached}" if reached else "no state to return to: every action ends the episode"


async def _pages_come_back(subject: Subject, world: Environment) -> str:
    """Page snapshots hold no script's state: told is how far they carry. What a fingerprint shows to be missing is no broken promise."""
    back = on = refused = 0
    for depth in range(1, subject.depth + 1):
        path = await subject.walk(world, await subject.reset(world), depth, f"page {depth}")
        if len(path) < depth:  # the last action ended the episode
            await subject.retrace(world, path)
        try:
            snapshot = await subject.call("snapshot", world.snapshot())
            ahead = await subject.walk(world, path[-1][1], 2, f"ahead {depth}") if path else []
            seen = await subject.call("restore", world.restore(snapshot))
        except EnvironmentError_:
            refused += 1
            continue
        if seen.fingerprint == snapshot.fingerprint:
            back, on = back + 1, on + (not await subject.follow(world, ahead))
    return f"{back} of {subject.depth} pages came back, {on} of them went on alike; {refused} refused, the rest seen to differ"


async def _deeper(subject: Subject, world: Environment, seen: Observation, kept: Snapshot | None, depth: int) -> Observation | None:
    """Two actions on, away from ends; the state there, or None where every way ends. `kept`: what it sets out from, none at the start."""
    for attempt in range(TRIES):
        path = await subject.walk(world, seen, 2, f"snapshot {depth} {attempt}")
        if len(path) == 2 and not getattr(world, "obstacle", ""):
            return path[-1][1]
        await (subject.call("restore", world.restore(kept)) if kept else subject.reset(world))
    return None


async def _returns(subject: Subject, world: Environment, seen: Observation, depth: int) -> tuple[Observation, Snapshot]:
    """On from here, back, and the same way on again: the states on the way must be the same. Ends where it began, in the snapshot."""
    snapshot = await subject.call("snapshot", world.snapshot())
    if snapshot.fingerprint != seen.fingerprint:
        raise Broken(f"depth {depth}: the state that was observed is not the state that was saved: a stale observation?")
    back = seen
    for way in range(subject.ways):
        on = await subject.walk(world, back, 4, f"on {depth} {way}", keys=True)
        for last in (False, True):
            back = await subject.call("restore", world.restore(snapshot))
            if back.fingerprint != seen.fingerprint:
                raise Broken(f"depth {depth}: restore led to another state than was saved")
            if not last and (difference := await subject.follow(world, on)):
                raise Broken(f"depth {depth}: after restore {difference}: something is not saved (focus? scroll? server?)")
    return back, snapshot


async def branches_are_independent(subject: Subject) -> str:
    """What happens in one world is not seen in another, nor after its reset."""
    async with subject.world() as one, subject.world() as other:
        if not one.capabilities.sealed:
            raise Skip("not sealed: it says itself that others see what it does")
        path = await subject.set_out(one, subject.steps, "branch")
        await subject.walk(other, await subject.reset(other), subject.steps, "other branch")
        for world, where in ((other, "in another world"), (one, "after a reset")):
            if difference := await subject.retrace(world, path):
                raise Broken(f"what one world did is seen {where}: {difference}")
    return f"2 worlds, {len(path)} actions each"


async def forks_are_independent(subject: Subject) -> str:
    """Branches stand where their snapshot was taken, and none sees what another, or the world it was taken in, does."""
    if not isinstance(subject.worlds, Forks):
        raise Skip("its worlds do not fork")
    async with subject.world() as world:
        if world.capabilities.fidelity not in ("world", "client"):
            raise Skip("its snapshots are not of whole worlds")
        path = await subject.walk(world, await subject.reset(world), 2, "fork")
        if len(path) < 2:
            await subject.retrace(world, path)
        if getattr(world, "obstacle", ""):
            await subject.reset(world)
        snapshot = await subject.call("snapshot", world.snapshot())
        async with subject.fork(snapshot) as one, subject.fork(snapshot) as other:
            for branch in (one, other):
                if branch.observation.fingerprint != snapshot.fingerprint:
                    raise Broken("a branch stands elsewhere than its snapshot")
            ahead = await subject.walk(one, one.observation, subject.steps, "ahead")
            for untouched, what in ((other, "its sibling"), (world, "the world it branched from")):
                if difference := await subject.follow(untouched, ahead):
                    raise Broken(f"what one branch did is seen in {what}: {difference}")
    return f"2 branches, {len(ahead)} actions each"


async def errors_are_typed(subject: Subject) -> str:
    """A refused action is an ActionError that changes nothing; a step before the reset is refused too; close may come twice."""
    async with subject.world() as world:
        wrong = Action("nonsense", (), "nonsense")
        await _refuses(subject, world, (EnvironmentError_, ActionError), "a step before the first reset", wrong)
        seen = await subject.reset(world)
        await _refuses(subject, world, (ActionError,), "an action that does not exist", wrong)
        if world.capabilities.deterministic:
            path = await subject.walk(world, seen, 2, "error")
            if difference := await subject.retrace(world, path):
                raise Broken(f"after a refused action: {difference}")
        await subject.call("evaluate", world.evaluate(Outcome(actions=()))) if world.capabilities.evaluates else None
        await subject.call("close", world.close())
    return "refusals change nothing"


async def _refuses(subject: Subject, world: Environment, kinds: tuple[type[ExactError], ...], what: str, action: Action) -> None:
    try:
        await subject.step(world, action)
    except kinds:
        return
    except Exception as error:
        raise Broken(f"{what} raised {type(error).__name__}, not {kinds[0].__name__}: {error}") from error
    raise Broken(f"{what} was carried out: raise {kinds[0].__name__}")
