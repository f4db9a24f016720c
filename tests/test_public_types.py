"""Pyright, as an editor runs it in strict mode, finds every type of the public names known."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import exact

ROOT = Path(__file__).parents[1]
PYRIGHT = ROOT / ".bench" / "venvs" / "types" / "bin" / "basedpyright"
pytestmark = pytest.mark.skipif(not PYRIGHT.exists(), reason="Pyright is not installed: shells/setup.sh --types")

USER = """
import exact


class Links:
    async def propose(self, context: exact.Context, actions: exact.ActionSpace, k: int) -> tuple[exact.Proposal, ...]:
        links = [each.name for each in context.observation.elements if each.role == "link"]
        return tuple(exact.Proposal(action=actions.action("go", name), prior=1 / len(links)) for name in links)


class Depth:
    async def evaluate(self, context: exact.Context) -> exact.Evaluation:
        return exact.Evaluation(value=min(1.0, 0.3 * len(context.history)))


class Lamp(exact.BaseEnvironment):
    actions = exact.ActionSpace(["press"])
    on = False

    async def reset(self, task: exact.Task) -> exact.Observation:
        self.on = False
        return exact.Observation(text="off")

    async def step(self, action: exact.Action) -> exact.Transition:
        self.on = not self.on
        return exact.Transition(observation=exact.Observation(text="on" if self.on else "off"))


lamp: exact.Environment = Lamp()
policy: exact.Policy = Links()
value: exact.ValueFunction = Depth()
agent = exact.Agent(policy=policy, value=value)


async def main() -> None:
    solution = await exact.solve("miniwob/click-test", agent=agent, config=exact.Config.parse({"search": {"iterations": 4}}))
    print(solution.score, solution.actions)
    for row in exact.open_run("runs/default-1").results():
        print(row)
    async with exact.make("miniwob/click-test") as environment:
        observation = await environment.reset()
        print(observation.elements[0].name)
"""
"""A user's program with his own agent."""


ELSEWHERE = set() if importlib.util.find_spec("pandas") else {"frame"}
"""Members with types of packages that are not installed here."""


def touching() -> str:
    """Return a program that reads every public attribute of every public class, and every public function."""
    lines = ["import exact", ""]
    for name in exact.__all__:
        found = getattr(exact, name)
        lines.append(f"name_{name.strip('_')} = exact.{name}")
        if not inspect.isclass(found):
            continue
        members = [each for each in dir(found) if not each.startswith("_") and each not in {*dir(BaseException), *ELSEWHERE}]
        lines += [
            "",
            "",
            f"def read_{name}(it: exact.{name}) -> None:",
            *(f"    print(it.{each})" for each in members),
            "    print(it)",
            "",
            "",
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("program", [USER, touching()], ids=["a user's program", "every public name"])
def test_pyright_knows_every_public_type(program: str, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(program, "utf-8")
    settings = {"typeCheckingMode": "strict", "reportUnusedVariable": False, "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(PYRIGHT.with_name("python")), str(PYRIGHT), "--pythonpath", sys.executable, "--outputjson", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    problems = json.loads(done.stdout)["generalDiagnostics"]
    lines = program.splitlines()
    found = [f"{lines[each['range']['start']['line']].strip()}: {each['message']}" for each in problems if each["severity"] == "error"]
    assert not found, "\n".join(found)
