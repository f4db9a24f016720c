"""The likeliest of the offered actions, from a server that lists the likeliest next tokens."""

import math
from collections.abc import Mapping
from contextlib import nullcontext

import pytest

from exact.action import ActionSpace, Parameter, Verb
from exact.agents.agent import build_agent
from exact.agents.policy import likeliest
from exact.agents.policy.likeliest import LikeliestPolicy, Offer, Offers, offers_of
from exact.agents.policy.llm import LLMPolicy
from exact.config import ModelConfig, PolicyConfig, ViewConfig, parse
from exact.context import Taken
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze
from exact.errors import AnswerError, ModelError, UsageError
from exact.models.base import Sampling, TokenChance
from exact.models.meter import metered
from exact.models.openai import OpenAIModel
from exact.models.scripted import Reply, ScriptedModel, ScriptedServer
from exact.observation import Element
from exact.runs import runner
from exact.runs.runner import Runner, check_models, create, reopen
from tests.learning.runs import task_of, with_task
from tests.prompts.states import ACTIONS, SHOE, context, page

VERBS = {"": {" click": 0.6, " fill": 0.3, " enter": 0.05, " scroll": 0.04}}
ELEMENTS = {" click": {" [": 0.9, " the": 0.1}, " click [": {"2": 0.8, "1": 0.15, "3": 0.05}}
TEXT = {' fill [3] "': '42" because'}
Tokens = Mapping[str, Mapping[str, float] | str]
"""Likeliest tokens after each beginning, or what is written there."""


def server(tokens: Tokens, *, echo: bool = True):
    """Return a script that continues an answer. `echo`: with the beginning in its text, as llama.cpp writes it."""

    def answers(question, sample):
        role, begun = question.messages[-1]
        assert role == "assistant" and begun.startswith("Action:")
        more = tokens[begun.removeprefix("Action:")]
        if isinstance(more, str):
            return Reply(text=begun + more if echo else more)
        chances = tuple(TokenChance(text, math.log(share)) for text, share in more.items())
        return Reply(text=(begun if echo else "") + chances[0].text, finish="length", top_logprobs=(chances,))

    return answers


async def proposed(tokens: Tokens, k: int = 3, given=None, actions: ActionSpace = ACTIONS, *, echo: bool = True, **config):
    model = ScriptedModel(server(tokens, echo=echo))
    policy = LikeliestPolicy(model, PolicyConfig(form="likeliest", **config))
    return await policy.propose(given or context(), actions, k), model


@pytest.mark.parametrize("echo", [True, False])
async def test_the_likeliest_come_out_in_order_and_priors_are_their_probabilities(echo):
    got, _ = await proposed(VERBS | ELEMENTS | TEXT, echo=echo)
    weights = {"click [2]": 0.6 * 0.9 * 0.8, 'fill [3] "42"': 0.3, "click [1]": 0.6 * 0.9 * 0.15}
    assert [each.action.key for each in got] == list(weights)
    assert [each.prior for each in got] == pytest.approx([each / sum(weights.values()) for each in weights.values()])


async def test_each_question_begins_alike_and_asks_for_one_token():
    _, model = await proposed(VERBS | ELEMENTS, k=1)
    first, *_, last = model.requests
    assert [each.messages[-1].parts[0].text for each in model.requests] == ["Action:", "Action: click", "Action: click ["]
    assert first.messages[:-1] == last.messages[:-1] and first.prompt.startswith("policy@")
    assert "Thought:" not in first.messages[0].parts[0].text
    assert (last.sampling.max_tokens, last.sampling.n, last.sampling.logprobs, last.sampling.top_logprobs) == (1, 1, True, 20)
    assert (last.sampling.temperature, last.node, last.role, last.form) == (1.0, 3, "policy", None)


async def test_a_text_is_written_up_to_its_quotation_mark():
    got, model = await proposed({"": {" fill": 1.0}, ' fill [3] "': 'a \\"b\\" [2]" and more'}, k=1)
    assert [each.action.args for each in got] == [("3", 'a "b" [2]')]
    written = model.requests[-1]
    assert (written.sampling.temperature, written.sampling.logprobs) == (0.0, False) and written.grammar.startswith("root ::=")


async def test_a_number_is_written_up_to_the_end_of_the_line():
    points = ActionSpace([Verb(name="move", form=(Parameter.NUMBER, Parameter.NUMBER)), Verb(name="wait")])
    got, _ = await proposed({"": {" move": 0.9, " wait": 0.1}, " move ": "40 30\nAction: wait"}, actions=points)
    assert [each.action.key for each in got] == ["move 40 30", "wait"]


async def test_a_token_may_straddle_two_parts_of_an_action():
    seen = page(("button", "a"), ("button", "b"), ("textbox", "c"))
    tokens = {"": {' click "': 0.7, " fill": 0.3}, ' click "': {'b"': 0.9, 'a" button': 0.1}, ' fill "c" textbox [3] "': '4"'}
    got, _ = await proposed(tokens, given=context(seen), elements="label")
    assert [each.action.key for each in got] == ["click [2]", 'fill [3] "4"', "click [1]"]
    tokens = {"": {" click": 1.0}, " click": {" [1": 0.6, " [3]\n": 0.4}}
    got, _ = await proposed(tokens, k=2)
    assert [each.action.key for each in got] == ["click [1]", "click [3]"]


async def test_a_token_may_straddle_the_quotation_mark_of_a_text():
    tokens = {"": {" stop": 0.9, " fill": 0.1}, ' stop "': 'done"', ' fill [3] "': '4"'}
    offered = Offers([Offer(' fill [3] "', free=True, quoted=True), Offer(' fill [4] "', free=True, quoted=True)])
    assert offered.shares(" fill [", [TokenChance('3] "4', 0.0)]) == {(' fill [3] "4', True): 1.0}
    assert [each.action.key for each in (await proposed(tokens))[0]] == ['stop "done"', 'fill [3] "4"']


async def test_a_text_that_a_token_closes_is_not_written_on():
    tokens = {"": {" fill": 1.0}, " fill": {' [3] ""': 0.6, ' [4] "7"\n': 0.4}}
    got, model = await proposed(tokens, k=2, given=context(page(("button", "a"), ("link", "b"), ("textbox", "c"), ("textbox", "d"))))
    assert [each.action.key for each in got] == ['fill [3] ""', 'fill [4] "7"'] and len(model.requests) == 2


def test_tokens_that_lead_to_one_action_add_up_and_others_are_left_out():
    offered = Offers([Offer(" click [1]"), Offer(" click [12]")])
    listed = [TokenChance(text, math.log(share)) for text, share in {"]": 0.4, "2": 0.3, "]\n\n": 0.2, "3": 0.06, "": 0.04}.items()]
    assert offered.shares(" click [1", listed) == pytest.approx({(" click [1]", True): 0.6, (" click [12]", True): 0.3})


def test_what_goes_on_with_no_offer_ends_an_action_that_begins_another():
    offered = Offers([Offer(" wait"), Offer(" wait long")])
    listed = [TokenChance(text, math.log(share)) for text, share in {"": 0.5, " long": 0.3, ".": 0.2}.items()]
    assert offered.shares(" wait", listed) == pytest.approx({(" wait", True): 0.7, (" wait long", True): 0.3})


async def test_fewer_actions_than_k_are_all_that_are_offered():
    two = ActionSpace([Verb(name="wait"), Verb(name="go")])
    got, model = await proposed({"": {" go": 0.7, " wait": 0.2}}, k=9, actions=two)
    assert [(each.action.key, each.prior) for each in got] == [("go", pytest.approx(7 / 9)), ("wait", pytest.approx(2 / 9))]
    assert len(model.requests) == 1
    assert (await proposed({}, actions=ActionSpace([])))[0] == ()


async def test_what_was_refused_here_is_not_offered():
    refused = Taken(observation=SHOE, action=ACTIONS.parse("click [2]"), error="it is covered")
    got, _ = await proposed(VERBS | ELEMENTS | TEXT, k=1, given=context(tried=(refused,)))
    assert [each.action.key for each in got] == ['fill [3] "42"']


async def test_after_many_beginnings_only_as_many_are_followed_as_are_wanted(monkeypatch):
    seen = page(*[("button", f"b{number}") for number in range(1, 100)])
    digits = {str(digit): 0.1 for digit in range(1, 10)}
    tokens = {
        "": {" click": 1.0},
        " click": {" [": 1.0},
        " click [": digits,
        **{f" click [{each}": {"]": 0.1, **digits} for each in digits},
    }
    monkeypatch.setattr(likeliest, "MANY", 1)
    got, model = await proposed(tokens, k=2, given=context(seen))
    assert len(got) == 2 and len(model.requests) == 5


async def test_a_model_that_begins_nothing_that_is_offered_is_an_answer_error():
    with pytest.raises(AnswerError, match="begins no offered action for the policy"):
        await proposed({"": {" enter": 0.9, " type": 0.1}})
    with pytest.raises(AnswerError, match="cannot read"):
        await proposed({"": {" fill": 1.0}, ' fill [3] "': "\n"}, k=1)


async def test_a_server_without_log_probabilities_is_a_usage_error():
    model = ScriptedModel(lambda question, sample: "Action: click [2]")
    with pytest.raises(UsageError, match=r"scripted/model lists no likeliest tokens, .* or set policy.form: samples"):
        await LikeliestPolicy(model, PolicyConfig()).propose(context(), ACTIONS, 3)


@pytest.mark.parametrize("listed", [{"Action": 0.9, " click": 0.1}, {"I": 0.9}])
async def test_a_server_that_does_not_continue_an_answer_is_a_usage_error(listed):
    with pytest.raises(UsageError, match=r"does not continue the answer 'Action:'.* continue_final_message"):
        await proposed({"": listed}, echo=False)


async def test_an_answer_that_does_not_come_is_a_model_error():
    model = ScriptedModel(lambda question, sample: Reply(text="", finish="empty"))
    with pytest.raises(ModelError, match="gave nothing for the policy"):
        await LikeliestPolicy(model, PolicyConfig()).propose(context(), ACTIONS, 3)


async def test_every_request_is_counted_with_its_tokens():
    async with ScriptedServer(server(VERBS | ELEMENTS | TEXT)) as served:
        model = OpenAIModel(ModelConfig(model="local", base_url=served.base_url))
        with metered() as exchanges:
            got = await LikeliestPolicy(model, PolicyConfig(), sampling=Sampling(max_tokens=9)).propose(context(), ACTIONS, 3)
        await model.close()
    assert len(got) == 3 and len(exchanges) == len(served.bodies) == 4
    assert sum(each.usage.input_tokens for each in exchanges) == served.input_tokens
    assert [body["max_tokens"] for body in served.bodies] == [1, 1, 1, 9]


async def test_a_run_counts_every_request(tmp_path, monkeypatch):
    model = ScriptedModel(server({"": {" go": 0.7, " stop": 0.3}, ' go "': 'east"', ' stop "': 'no"'}))
    given = {"policy": {"kind": "llm", "form": "likeliest"}, "value": {"kind": "constant"}, "reflection": {"kind": "none"}}
    search = {"search": {"algorithm": "react", "k": 2}, "limits": {"actions": 1}, "models": {"policy": {"model": "scripted"}}}
    graph = maze()
    task = task_of(graph, 0)
    create(tmp_path / "run", (task,), parse(given | search))
    run, settings = reopen(tmp_path / "run")
    monkeypatch.setattr(runner, "open_models", lambda config, opened: {"policy": model})
    [line] = await Runner(folder=with_task(run, task), config=settings, open_environments=lambda _: nullcontext(ToyFactory(graph))).run()
    assert line.policy == "llm" and line.calls == len(model.requests) == 2


def given(**policy):
    """Return a configuration of the policy."""
    own = policy.pop("policy", {})
    return parse({"policy": {"kind": "llm", "form": "likeliest", **own}, "models": {"policy": {"model": "m", **policy}}})


def made(**policy):
    """Return the policy of a configuration."""
    return build_agent(given(**policy), lambda role: ScriptedModel(lambda question, sample: "")).policy


def test_the_configuration_makes_it():
    assert isinstance(made(base_url="http://127.0.0.1:1/v1"), LikeliestPolicy)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"provider": "anthropic"}, "m lists no likeliest tokens"),
        ({"provider": "anthropic_messages"}, "api: messages"),
        ({"base_url": "http://127.0.0.1:1/v1", "policy": {"actions": "computer"}}, "computer"),
    ],
)
def test_a_provider_that_cannot_do_it_is_a_usage_error(own, told):
    with pytest.raises(UsageError, match=told):
        made(**own)
    with pytest.raises(UsageError, match=told):  # and before a run writes anything
        check_models(given(**own))


async def test_code_and_another_policys_class_are_usage_errors():
    code = ActionSpace([Verb(name="python", form=(Parameter.TEXT,), code="python")])
    with pytest.raises(UsageError, match="offers no code, which python takes"):
        await proposed({}, actions=code)
    with pytest.raises(UsageError, match="LikeliestPolicy"):
        LLMPolicy(ScriptedModel(lambda question, sample: ""), PolicyConfig(form="likeliest"), ViewConfig())


def written(verb: str, *elements: Element, **more) -> list[str]:
    named = {each.id: f"[{each.id}]" for each in elements}
    return [offer.text for offer in offers_of(BROWSER_ACTIONS.verbs[verb], elements, named, **more)]


def test_offers_are_of_what_a_verb_has_a_use_for():
    country, spain = Element(id="1", role="combobox", name="Country"), Element(id="2", role="option", name="Spain", depth=1)
    ok, name = Element(id="3", role="button", name="OK"), Element(id="4", role="textbox", name="Name")
    some = (country, spain, ok, name)
    assert written("select", *some) == [' select [1] "Spain"'] and written("fill", *some) == [' fill [4] "']
    assert written("upload", *some, files=["a.txt"]) == [' upload [3] "a.txt"']
    assert written("scroll_in", ok) == [f" scroll_in [3] {way}" for way in ("up", "down", "left", "right")]
    assert [offer.text for offer in offers_of(Verb(name="select", form=(Parameter.TEXT,)), some, {})] == [' select "']
    assert written("type", *some) == [] and written("drag_at") == [" drag_at "]
    assert written("drag", ok, name)[:2] == [" drag [3] to [3]", " drag [3] to [4]"]
    assert written("drag", *(Element(id=str(number), role="button") for number in range(41)))[:2] == [" drag [0] to ", " drag [1] to "]
