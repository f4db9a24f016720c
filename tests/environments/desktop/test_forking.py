"""The same desktop in gVisor: kept and forked as a whole."""

from __future__ import annotations

import pytest

from exact.environments.desktop.factory import desktop_factory
from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.task import Outcome

from .applications import CALCULATOR, EDITOR, desktop_task, id_of, value_of

CHECKS = [{"file": "note.txt", "equals": "left"}]


async def test_typed_text_is_restored_and_forks_are_independent(has_desktop: None) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with desktop_factory(sandbox=True, screenshots=False) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, SandboxedFactory) and isinstance(environment, SandboxedWorker)
        seen = await environment.reset(desktop_task(EDITOR, CALCULATOR, checks=CHECKS))
        field = id_of(seen, "textbox")

        async def fill(branch: SandboxedWorker, text: str) -> str | None:
            after = (await branch.step(branch.actions.action("fill", field, text))).observation
            assert after is not None
            return value_of(after)

        assert await fill(environment, "half-typed") == "half-typed"
        snapshot = await environment.snapshot()
        assert await fill(environment, "right") == "right"
        async with environments.fork(snapshot, simulation=True) as branch:
            assert branch.observation.fingerprint == snapshot.fingerprint and value_of(branch.observation) == "half-typed"
            await fill(branch, "left")
            await branch.step(branch.actions.parse('press "Control+s"'))
            assert (await branch.evaluate(Outcome(actions=()))).success
        assert not (await environment.evaluate(Outcome(actions=()))).success
        assert value_of(await environment.restore(snapshot)) == "half-typed"
