"""The whole thing as a user without any rights, where this machine lets one have a user namespace."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nobody import AS_NOBODY, nobody

HERE = Path(__file__).parent
CODE = """
import asyncio, sys
from exact.config import BrowserConfig
from exact.environments.browser import PageSetup
from exact.environments.browser.fork.factory import forking
from exact.environments.sandbox.service import Service
from exact.task import Task

async def main():
    application, *packages = sys.argv[1:]
    service = Service(
        command=("python3", application, "8000"), ready_url="http://127.0.0.1:8000/",
        env={"PYTHONPATH": ":".join(packages)}, reads=(application, *packages),
    )
    setup = PageSetup(hosts={"rows.test": "127.0.0.1:8000"})
    async with forking(BrowserConfig(screenshots=False), setup, services=[service]) as environments:
        async with environments.open(simulation=True) as one:
            await one.reset(Task(id="t", instruction="", start="http://rows.test/"))
            await one.step(one.actions.parse('fill [3] "half"'))
            snapshot = await one.snapshot()
            await one.step(one.actions.parse("click [4]"))
            together = asyncio.Barrier(5)

            async def branch(number):
                async with environments.fork(snapshot, simulation=True) as other:
                    form = 'value="half"' in other.observation.text and "Rows: none" in other.observation.text
                    await together.wait()
                    await other.step(other.actions.parse(f'fill [3] "{number}"'))
                    await other.step(other.actions.parse("click [4]"))
                    await together.wait()
                    return form, (await other.page.inner_text("h1"))

            print(await one.page.inner_text("h1"))
            for form, rows in await asyncio.gather(*map(branch, range(5))):
                print(form, rows)
            back = await one.restore(snapshot)
            print('value="half"' in back.text, await one.page.inner_text("h1"))

asyncio.run(main())
"""


@pytest.mark.parametrize("application", ["rows.py", "flask_rows.py"])
def test_a_user_without_rights_has_five_forks_and_goes_back_with_server_and_form(runsc: str, application: str) -> None:
    packages = []
    if application.startswith("flask"):
        flask = pytest.importorskip("flask", reason="flask is not installed: pip install 'exact-agent[test]'")
        packages = [str(Path(flask.__file__).parents[1])]
    command = [*AS_NOBODY, sys.executable, "-W", "ignore", "-c", CODE, str(HERE / application), *packages]
    with nobody(runsc) as variables:
        env = {"PATH": "/usr/bin:/bin", **variables}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[3])
    branches = "".join(f"True Rows: {number}\n" for number in range(5))
    assert done.stdout == f"Rows: half\n{branches}True Rows: none\n", done.stderr
