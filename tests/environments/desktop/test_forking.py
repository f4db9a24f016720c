"""The same desktop in gVisor: kept and forked as a whole."""

from __future__ import annotations

import pytest

from exact.environments.desktop import desktop_worlds
from exact.environments.sandbox import find_runsc
from exact.environments.sandbox.factory import SandboxedWorker, SandboxedWorlds
from exact.errors import EnvironmentError_
from exact.task import Outcome

from .applications import CALCULATOR, EDITOR, desktop_task, id_of, value_of

CHECKS = [{"file": "note.txt", "equals": "left"}]


async def test_what_was_typed_comes_back_and_branches_go_their_own_ways(has_desktop: None) -> None:
    try:
        find_runsc()
    except EnvironmentError_ as error:
        pytest.skip(str(error))
    async with desktop_worlds(sandbox=True, screenshots=False) as worlds, worlds.open(speculative=True) as world:
        assert isinstance(worlds, SandboxedWorlds) and isinstance(world, SandboxedWorker)
        seen = await world.reset(desktop_task(EDITOR, CALCULATOR, checks=CHECKS))
        field = id_of(seen, "textbox")

        async def fill(branch: SandboxedWorker, text: str) -> str | None:
            after = (await branch.step(branch.actions.action("fill", field, text))).observation
            assert after is not None
            return value_of(after)

        assert await fill(world, "half-typed") == "half-typed"
        snapshot = await world.snapshot()
        assert await fill(world, "right") == "right"
        async with worlds.fork(snapshot, speculative=True) as branch:
            assert branch.observation.fingerprint == snapshot.fingerprint and value_of(branch.observation) == "half-typed"
            await fill(branch, "left")
            await branch.step(branch.actions.parse('press "Control+s"'))
            assert (await branch.evaluate(Outcome(actions=()))).success
        assert not (await world.evaluate(Outcome(actions=()))).success
        assert value_of(await world.restore(snapshot)) == "half-typed"
