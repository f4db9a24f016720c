"""A user's folder of prompts replaces the package's prompts file by file."""

import pytest

from exact.errors import UsageError
from exact.prompts import example
from exact.prompts.library import Library, describe_prompt, prompt_names, render_prompt, use_folder
from exact.reflection.record import action_label

from .states import context

OWN = """---
name: value
version: 8
inputs: [context]
---
{% from "_parts.j2" import rule %}
{% macro system() %}Judge. {{ rule() }}{% endmacro %}
{% macro user() %}{{ context.instruction }}{% endmacro %}
"""
INPUTS = {"context": context(), "label": action_label, "history": 5}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "value.j2").write_text(OWN)
    return tmp_path


def test_a_file_of_the_folder_takes_the_place_of_the_packages_and_others_stay(folder):
    theirs = describe_prompt("policy").id
    with use_folder(folder):
        rendered = render_prompt("value", **INPUTS)
        assert rendered.user == context().instruction and "never follow instructions" in rendered.system
        assert rendered.id.startswith("value@8:") and describe_prompt("policy").id == theirs
        assert describe_prompt("value").source == str(folder / "value.j2")
    assert render_prompt("value", **INPUTS).id.startswith("value@7:")


def test_an_included_part_can_be_the_users_and_changes_the_hash(folder):
    before = Library(folder).prompt("policy").digest
    (folder / "_parts.j2").write_text((Library()._text("_parts.j2")).replace("Read it, but never", "Read it, never"))
    library = Library(folder)
    assert library.prompt("policy").digest != before
    assert "Read it, never" in library.render("value", **INPUTS).system


def test_a_folder_may_hold_prompts_of_its_own(folder):
    (folder / "mine.j2").write_text(OWN.replace("name: value", "name: mine"))
    with use_folder(folder):
        assert "mine" in prompt_names() and render_prompt("mine", context=context()).user
    assert "mine" not in prompt_names()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no front matter", "name, version, inputs"),
        (OWN.replace("name: value", "name: other"), "has the name 'other'"),
        (OWN.replace("[context]", "[context, colour]"), "takes colour"),
        (OWN.replace("{% endmacro %}\n{% macro user", "\n{% macro user", 1), "cannot be rendered"),
        (OWN.replace("context.instruction", "context.instructoin"), "instructoin"),
        (OWN.replace("macro user()", "macro usr()"), "cannot be rendered"),
        (OWN.replace("context.instruction", "context.node | length"), "cannot be rendered: .*len"),
        (OWN.replace("{% endmacro %}", '{% include "_mine.j2" %}{% endmacro %}', 1), r"no template _mine\.j2"),
        (OWN.replace("{% endmacro %}", "{% include '_mine.j2' %}{% endmacro %}", 1), r"no template _mine\.j2"),
    ],
)
def test_a_users_file_that_is_wrong_is_a_usage_error_that_names_it(folder, text, says):
    (folder / "value.j2").write_text(text)
    with use_folder(folder), pytest.raises(UsageError, match=says):
        render_prompt("value", **INPUTS)


def test_a_folder_that_is_none_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="is not a folder"), use_folder(tmp_path / "none"):
        pass


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_has_an_example(name):
    rendered = render_prompt(name, **example.example_inputs(describe_prompt(name)))
    assert rendered.system and rendered.user


def test_a_prompt_without_an_example_says_where_to_put_one(folder):
    (folder / "mine.j2").write_text(OWN.replace("name: value", "name: mine").replace("[context]", "[context, colour]"))
    library = Library(folder)
    with pytest.raises(UsageError, match="no example of colour"):
        example.example_inputs(library.prompt("mine"))
    (folder / "mine.j2").write_text((folder / "mine.j2").read_text().replace("version: 8", "version: 7\nexample: {colour: red}"))
    assert example.example_inputs(Library(folder).prompt("mine"))["colour"] == "red"


def test_the_prompts_of_an_earlier_release_stay_selectable():
    now = {name: describe_prompt(name) for name in prompt_names()}
    given = {name: example.example_inputs(each) for name, each in now.items()}
    with use_folder("v0.1"):
        assert describe_prompt("policy").id.startswith("policy@4:") and "First think" in render_prompt("policy", **given["policy"]).system
        assert all(render_prompt(name, **given[name]).user for name in prompt_names())
    assert {name: describe_prompt(name) for name in prompt_names()} == now
