"""A Flask application with SQLite inside the environment: server and half-typed form go back together, in five branches at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from exact.environments.browser.fork.factory import forking
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure
from tests.environments.browser.fork.test_factory import CONFIG, ROWS, SETUP, TASK, add, half_typed

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def service(executable: str) -> Service:
    """Skipped where there is no browser, no usable runsc or no Flask."""
    flask = pytest.importorskip("flask", reason="flask is not installed: pip install 'exact-agent[test]'")
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    application, packages = ROWS.with_name("flask_rows.py"), str(Path(flask.__file__).parents[1])
    return Service(
        command=(sys.executable, str(application), "8000"), ready_url="http://127.0.0.1:8000/",
        env={"PYTHONPATH": packages}, reads=(str(application), sys.prefix, sys.base_prefix, packages),
    )  # fmt: skip


async def test_rows_of_one_branch_are_absent_in_four_siblings_and_after_restore_with_the_half_typed_form(service: Service) -> None:
    names = ["a", "b", "c", "d", "e"]
    async with forking(CONFIG, SETUP, services=[service]) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot, together = await half_typed(environment), asyncio.Barrier(len(names))

        async def branch(name: str) -> str:
            async with environments.fork(snapshot, simulation=True) as environment:
                assert 'value="half a senten" focused' in environment.observation.text
                await together.wait()
                rows = await add(environment, name)
                await together.wait()  # all five are alive, each with its row
                return rows

        rows = await asyncio.gather(*map(branch, names))
        assert [row.partition("Rows: ")[2] for row in rows] == [f'one, {name}"' for name in names]
        assert "Rows: one, left" in await add(environment, "left")
        back = await environment.restore(snapshot)
        assert 'value="half a senten" focused' in back.text and 'Rows: one"' in back.text
