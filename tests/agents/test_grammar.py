"""Every sentence of a policy's grammar is an answer that parses."""

import random

import msgspec
import pytest

from exact.action import ActionSpace
from exact.agents.parse import parse_action, parse_actions
from exact.agents.policy.llm import LLMPolicy, answer_grammar
from exact.config import PolicyConfig
from exact.context import Taken
from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS, python
from exact.errors import ActionError
from exact.models.base import ChatRequest
from exact.models.scripted import ScriptedModel
from exact.observation import Observation
from exact.views.labels import made_names

from ..prompts.states import ACTIONS, SHOE, context, page
from .gbnf import Grammar

HARD = page(
    ("button", 'Say "hi"\\n'), ("textbox", ""), ("link", "été\t🙂\n[9]"), ("link", "y" * 200), ("button", "OK"), ("button", "OK"),
    ("combobox", 'The "size"'), ("option", 'a "b"'), ("option", "42"), ("textbox", "Late"), ("textbox", "Fixed"), ("combobox", "City"),
)  # fmt: skip
HARD = msgspec.structs.replace(
    HARD,
    elements=tuple(
        msgspec.structs.replace(
            each,
            depth=each.role == "option",
            states={"Fixed": ("readonly",), "Late": ("disabled",)}.get(each.name, ("focused",) if each.id == "2" else ()),
        )
        for each in HARD.elements
    ),
)
FILES = ('my "cv".pdf', "b.txt")
SPACES = {
    "browser": BROWSER_ACTIONS,
    "page": PAGE_ACTIONS,
    "desktop": ELEMENT_ACTIONS,
    "computer_13": COMPUTER_13,
    "pointing": BROWSER_ACTIONS.pointing(),
}


@pytest.mark.parametrize("labels", [False, True], ids=["ids", "labels"])
@pytest.mark.parametrize("thought", [False, True], ids=["action", "answer"])
@pytest.mark.parametrize("space", SPACES)
def test_every_sentence_is_an_answer_that_parses(space, thought, labels):
    grammar, rng = (
        Grammar(answer_grammar(SPACES[space], HARD.elements, labels=labels, thought=thought, made=made_names(HARD), files=FILES)),
        random.Random(1),
    )
    verbs = set()
    for _ in range(600):
        parsed = parse_action(grammar.sentence(rng), SPACES[space], HARD, labels=labels)
        assert not parsed.thought or thought
        verbs.add(parsed.action.name)
    assert verbs == set(SPACES[space].verbs)


@pytest.mark.parametrize("labels", [False, True], ids=["ids", "labels"])
def test_every_sentence_of_a_list_names_one_to_k_actions(labels):
    grammar, rng = Grammar(answer_grammar(BROWSER_ACTIONS, HARD.elements, labels=labels, thought=True, most=3)), random.Random(2)
    counts = [len(parse_actions(grammar.sentence(rng), BROWSER_ACTIONS, HARD, labels=labels)) for _ in range(200)]
    assert set(counts) == {1, 2, 3}


def test_only_elements_that_are_there_and_known_keys_are_in_the_grammar():
    grammar, rng = Grammar(answer_grammar(BROWSER_ACTIONS, SHOE.elements, labels=False, thought=False)), random.Random(3)
    assert {grammar.sentence(rng, "element") for _ in range(99)} == {"[1]", "[2]", "[3]"}
    with pytest.raises(ActionError, match="unknown key"):
        BROWSER_ACTIONS.parse('press "Submit"')
    assert '"Enter"' in answer_grammar(BROWSER_ACTIONS, (), labels=False, thought=False)


def test_without_elements_no_verb_needs_one():
    written = answer_grammar(BROWSER_ACTIONS, (), labels=True, thought=False)
    assert '"click"' not in written and '"press"' in written and "element" not in written


def test_code_has_no_grammar():
    space = ActionSpace([python("Runs it.")])
    assert answer_grammar(space, (), labels=False, thought=False) == ""


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({}, ""),
        ({"grammar": "action"}, 'root ::= "Action: " action\n'),
        ({"grammar": "answer"}, 'root ::= "Thought: "'),
        ({"grammar": "action", "form": "list"}, 'root ::= line ("\\n" line){0,2}\n'),
    ],
)
async def test_a_policy_sends_the_grammar_that_is_configured(settings, begins):
    answer = "Action (9%): click [2]" if "form" in settings else "Action: click [2]"
    model = ScriptedModel(lambda question, sample: answer)
    await LLMPolicy(model, PolicyConfig(samples=1, **settings)).propose(context(), ACTIONS, 3)
    (request,) = model.requests
    assert request.grammar.startswith(begins) and bool(request.grammar) is bool(begins)


@pytest.mark.parametrize("elements", ["id", "label"])
async def test_prompt_grammar_and_parser_name_elements_alike(elements):
    by_label = elements == "label"
    model = ScriptedModel(lambda question, sample: 'Action: click "Buy" button' if by_label else "Action: click [2]")
    policy = LLMPolicy(model, PolicyConfig(samples=1, grammar="action", elements=elements))
    (proposal,) = await policy.propose(context(), ACTIONS, 3)
    (request,) = model.requests
    system, user = (message.parts[0].text for message in request.messages)
    assert proposal.action.key == "click [2]"
    shown, other = ('"Buy" button [2]', '[2] button "Buy"') if by_label else ('[2] button "Buy"', '"Buy" button [2]')
    assert shown in user and other not in user
    assert ('"\\"Buy\\" button [2]"' if by_label else '"[2]"') in request.grammar
    assert ('click "name" role [id]' if by_label else "click [id]") in system
    assert ('click "Blue shoe" link [2]' if by_label else 'click link "Blue shoe"') in user, "steps so far"


def sentences(space: ActionSpace = BROWSER_ACTIONS, seen: Observation = HARD, **more: object) -> set[str]:
    grammar, rng = Grammar(answer_grammar(space, seen.elements, labels=False, thought=False, **more)), random.Random(4)  # type: ignore[arg-type]
    return {grammar.sentence(rng) for _ in range(1500)}


def sentences_of(written: str) -> set[str]:
    grammar, rng = Grammar(written), random.Random(4)
    return {grammar.sentence(rng) for _ in range(800)}


def named(written: set[str], verb: str) -> set[str]:
    return {line.split("[")[1].split("]")[0] for line in written if line.startswith(f"Action: {verb} [")}


def test_a_verb_names_only_the_elements_that_it_has_a_use_for() -> None:
    written = sentences(files=FILES)
    assert named(written, "click") == {each.id for each in HARD.elements}
    assert named(written, "fill") == {"2", "12"} and named(written, "select") == {"7", "12"}
    assert named(written, "upload") == {"1", "3", "4", "5", "6"}
    assert {line.partition("] ")[2] for line in written if "upload" in line} == {'"my \\"cv\\".pdf"', '"b.txt"'}
    assert {line.partition("] ")[2] for line in written if "select [7]" in line} == {'"a \\"b\\""', '"42"'}
    assert len({line.partition("] ")[2] for line in written if "fill [" in line}) > len(FILES), (
        "a field takes any text, not the files' names"
    )


def test_verbs_without_a_use_are_out() -> None:
    plain = page(("button", "OK"), ("textbox", "Name"))
    verbs = {line.split()[1] for line in sentences(seen=plain)}
    assert verbs == set(BROWSER_ACTIONS.verbs) - {"select", "upload", "type"}
    assert "type" in {line.split()[1] for line in sentences(seen=page(("button", "OK")))}, "what takes the text may not be in the tree"


def test_what_was_refused_in_this_state_is_out() -> None:
    def refused(text: str) -> Taken:
        return Taken(observation=HARD, action=BROWSER_ACTIONS.parse(text), error="it is covered")

    written = sentences(tried=(refused("click [1]"), refused('fill [2] "Ann"'), refused("go_back")))
    assert "1" not in named(written, "click") and "1" in named(written, "hover") and named(written, "fill") == {"12"}
    assert "Action: go_back" not in written and "Action: go_forward" in written


def test_an_element_without_a_name_is_as_easy_to_write_as_another() -> None:
    grammar = answer_grammar(BROWSER_ACTIONS, HARD.elements, labels=True, thought=False, made=made_names(HARD))
    assert r'"\"textbox under' not in grammar and r'"\"textbox\" textbox [2]"' in grammar


def fields(**held: str) -> Observation:
    seen = page(*(("combobox" if name == "City" else "textbox", name) for name in held), ("option", "Rome"), ("option", "Lima"))
    at = {name: value for name, value in held.items() if value}
    elements = [msgspec.structs.replace(each, value=at.get(each.name), depth=each.role == "option") for each in seen.elements]
    return msgspec.structs.replace(seen, elements=tuple(elements))


def taken(seen: Observation, *said: str) -> tuple[Taken, ...]:
    return tuple(Taken(observation=seen, action=BROWSER_ACTIONS.parse(each)) for each in said)


async def asked(seen: Observation, *history: Taken) -> ChatRequest:
    model = ScriptedModel(lambda question, sample: "Action: scroll up")
    await LLMPolicy(model, PolicyConfig(samples=1, grammar="action")).propose(context(seen, history=history), BROWSER_ACTIONS, 1)
    return model.requests[0]


async def test_a_field_is_out_as_long_as_it_holds_what_a_step_gave_it() -> None:
    empty, full, other = fields(Name=""), fields(Name="Ann"), fields(Name="Bo")
    (fill,) = taken(empty, 'fill [1] "Ann"')
    (press,) = taken(full, 'press "Delete"')
    for seen, history, out in ((full, (fill,), True), (full, (fill, press), True), (other, (fill, press), False), (full, (press,), False)):
        request = await asked(seen, *history)
        assert ('"fill"' not in request.grammar) is out
        assert "refused" not in request.messages[1].parts[0].text.lower(), "the state shows what the field holds"


async def test_what_twice_changed_nothing_that_can_be_seen_is_out() -> None:
    seen, other = page(("tab", "One"), ("tab", "Two")), page(("tab", "Three"))
    once, twice = taken(seen, "click [1]"), taken(seen, "click [1]", "click [2]", "click [1]")
    for history, out in ((once, False), (twice, True), ((*twice, *taken(other, "click [1]")), False)):
        request = await asked(seen, *history)
        assert ("done twice here" in request.messages[1].parts[0].text) is out
        assert named(sentences_of(request.grammar), "click") == ({"2"} if out else {"1", "2"})
    patient = await asked(seen, *taken(seen, "wait", "wait", "wait"))
    assert "Action: wait" in sentences_of(patient.grammar)


def test_an_answer_that_gives_a_field_what_it_holds_is_asked_again() -> None:
    seen = fields(Name="Ann")
    with pytest.raises(ActionError, match="holds this already"):
        parse_action('Action: fill [1] "Ann"', BROWSER_ACTIONS, seen)
    assert parse_action('Action: fill [1] "Bo"', BROWSER_ACTIONS, seen).action.key == 'fill [1] "Bo"'


async def test_a_grammar_has_the_verbs_that_the_prompt_lists() -> None:
    model = ScriptedModel(lambda question, sample: "Action: click [1]")
    seen = page(("button", "OK"), ("textbox", "Name"))
    await LLMPolicy(model, PolicyConfig(samples=1, grammar="action")).propose(context(seen, history=()), BROWSER_ACTIONS, 1)
    (request,) = model.requests
    assert '"click_at"' not in request.grammar and '"go_back"' not in request.grammar and '"fill"' in request.grammar
