"""The workflows and the devcontainer: they parse, and what they run is there."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEVCONTAINER = ROOT / ".devcontainer"


def commands() -> list[str]:
    found = [json.loads((DEVCONTAINER / "devcontainer.json").read_text("utf-8"))["postCreateCommand"]]
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            found += [step["run"] for step in job["steps"] if "run" in step]
    return found


@pytest.mark.parametrize("command", commands())
def test_a_command_parses_and_its_scripts_exist(command: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for script in re.findall(r"(?:shells|\.ci)/[\w.]+", command):
        assert (ROOT / script).is_file(), script
    for module in re.findall(r"python -m (tests\.\w+)", command):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_workflows_ask_for_no_more_rights_than_they_need() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path
        rights = [right for job in workflow["jobs"].values() for right in job.get("permissions", {})]
        assert rights == (["id-token"] if path.stem == "release" else [])


def test_the_devcontainer_is_built_from_a_file_that_is_there() -> None:
    settings = json.loads((DEVCONTAINER / "devcontainer.json").read_text("utf-8"))
    assert (DEVCONTAINER / settings["build"]["dockerfile"]).read_text("utf-8").splitlines()[1].startswith("FROM ")
