import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.policy.llm import LLMPolicy
from exact.agents.policy.prior import floor_priors
from exact.config import ModelConfig, PolicyConfig
from exact.context import Taken
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import AnswerError, ModelError, PromptRefused, UsageError
from exact.models.base import Image, Sampling, Text
from exact.models.openai import OpenAIModel
from exact.models.scripted import Reply, ScriptedModel, ScriptedServer
from tests.prompts.states import ACTIONS, SHOE, apart, context, page


def samples(*texts: str | Reply) -> ScriptedModel:
    return ScriptedModel(lambda question, sample: texts[sample % len(texts)])


async def proposed(model, k=6, given=None, **config):
    own, view = apart(config)
    return await LLMPolicy(model, PolicyConfig(**own), view).propose(given or context(), ACTIONS, k)


async def test_priors_are_the_share_of_the_answers():
    model = samples("Action: click [2]", 'size!\nAction: fill [3] "42"', 'Action: fill [3] "42"', "Action: fill [3] '42'")
    got = await proposed(model, samples=4)
    assert [(p.action.key, p.prior) for p in got] == [('fill [3] "42"', 0.75), ("click [2]", 0.25)]
    assert got[0].rationale == "size!" and len(model.requests) == 1


async def test_at_most_k_actions_are_proposed_and_their_priors_sum_to_1():
    got = await proposed(samples("Action: click [1]", "Action: click [2]", "Action: click [2]", "Action: click [3]"), k=2, samples=4)
    assert [p.action.key for p in got] == ["click [2]", "click [1]"]
    assert sum(p.prior for p in got) == pytest.approx(1) and got[0].prior == pytest.approx(2 / 3)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.floats(0, 0.3))
def test_no_prior_is_below_the_floor_and_they_sum_to_1(weights, floor):
    priors = floor_priors(weights, floor)
    assert sum(priors) == pytest.approx(1)
    assert min(priors) >= min(floor, 1 / len(weights)) - 1e-12
    assert all(p <= q + 1e-12 for (v, p) in zip(weights, priors, strict=True) for (w, q) in zip(weights, priors, strict=True) if v <= w)


async def test_a_rare_action_gets_the_floor():
    got = await proposed(samples("Action: click [1]", *["Action: click [2]"] * 99), samples=100)
    assert [p.prior for p in got] == pytest.approx([0.98, 0.02])


async def test_when_nothing_parses_the_error_is_sent_back_and_the_answer_too():
    def answers(question, sample):
        return "Action: click [9]" if len(question.messages) == 2 else "Action: click [2]"

    model = ScriptedModel(answers)
    got = await proposed(model, samples=2)
    first, second = model.requests
    assert [p.action.key for p in got] == ["click [2]"]
    assert (first.attempt, second.attempt) == (0, 1) and first.messages == second.messages[:2]
    said, told = second.messages[2:]
    assert (said.role, said.parts) == ("assistant", (Text("Action: click [9]"),))
    assert told.role == "user" and "no element [9]" in told.parts[0].text


async def test_after_two_more_questions_it_is_an_answer_error():
    model = samples("I cannot decide.")
    with pytest.raises(AnswerError, match=r"asked 3 times: there is no line that begins with `Action:`"):
        await proposed(model)
    assert [request.attempt for request in model.requests] == [0, 1, 2]
    assert all(len(request.messages) <= 4 for request in model.requests)


@pytest.mark.parametrize(("finish", "told"), [("length", "cut off"), ("content_filter", "withheld")])
async def test_an_answer_that_did_not_end_by_itself_is_not_taken(finish, told):
    with pytest.raises(AnswerError, match=told):
        await proposed(samples(Reply(text="Action: click [2]", finish=finish)))


@pytest.mark.parametrize(("withheld", "kind"), [((0, 1, 2), PromptRefused), ((0, 2), AnswerError)])
async def test_answers_that_are_withheld_each_time_are_a_prompt_that_is_refused(withheld, kind):
    def answers(question, sample):
        return Reply(text="", finish="content_filter") if len(model.requests) - 1 in withheld else "I cannot decide."

    model = ScriptedModel(answers)
    with pytest.raises(AnswerError) as raised:
        await proposed(model)
    assert type(raised.value) is kind


@pytest.mark.parametrize("silent", [(0,), (2,), (0, 1, 2)])
async def test_a_server_that_gives_no_answer_is_not_the_models_fault(silent):
    def answers(question, sample):
        return Reply(text="", finish="empty") if len(model.requests) - 1 in silent else "I cannot decide."

    model = ScriptedModel(answers)
    with pytest.raises(ModelError, match="gave no answer") as raised:
        await proposed(model)
    assert not isinstance(raised.value, AnswerError)


async def test_an_action_that_was_refused_here_is_not_proposed_again():
    refused = Taken(observation=SHOE, action=ACTIONS.parse("click [2]"), error="it is covered")
    got = await proposed(samples("Action: click [2]", "Action: click [3]"), given=context(tried=(refused,)), samples=2)
    assert [p.action.key for p in got] == ["click [3]"]


async def test_the_request_tells_where_it_belongs_and_how_it_is_sampled():
    model = samples("Action: click [2]")
    policy = LLMPolicy(model, PolicyConfig(samples=3), sampling=Sampling(temperature=0.7, max_tokens=99, logprobs=True))
    await policy.propose(context(node=12), ACTIONS, 4)
    (request,) = model.requests
    assert (request.role, request.node, request.attempt) == ("policy", 12, 0) and request.prompt.startswith("policy@6:")
    sampling = request.sampling
    assert (sampling.n, sampling.temperature, sampling.max_tokens, sampling.logprobs) == (3, 0.7, 99, True)


async def test_the_sampling_seed_is_keyed_by_run_node_and_attempt():
    async def seeds(**fields: int) -> list[int | None]:
        model = samples("none")
        with pytest.raises(AnswerError):
            await proposed(model, given=context(**fields))
        return [request.sampling.seed for request in model.requests]

    same, again, other_node, other_run = [await seeds(node=n, seed=s) for n, s in ((1, 1), (1, 1), (2, 1), (1, 2))]
    assert same == again and len({*same, *other_node, *other_run}) == 9
    assert same[0] == 2093472640


@pytest.mark.parametrize(("images", "screenshot", "sent"), [(True, b"png", 1), (False, b"png", 0), (True, None, 0)])
async def test_the_screenshot_is_sent_if_it_is_wanted_and_there(images, screenshot, sent):
    model = samples("Action: click [2]")
    await proposed(model, given=context(msgspec.structs.replace(SHOE, screenshot=screenshot)), images=images)
    assert [part for part in model.requests[0].messages[1].parts if isinstance(part, Image)] == [Image(b"png")] * sent


async def test_a_model_that_fails_is_not_asked_by_the_policy_again():
    calls = []

    def answers(question, sample):
        calls.append(question)
        raise LookupError("gone")

    with pytest.raises(ModelError, match="gone"):
        await proposed(ScriptedModel(answers))
    assert len(calls) == 1


async def test_over_http_the_policy_is_the_same():
    texts = ("buy\nAction: click [2]", 'Action: fill [3] "42"', 'Action: fill [3] "42"')
    async with ScriptedServer(lambda question, sample: texts[sample]) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url))
        over_http = await proposed(model, samples=3)
        await model.close()
    assert over_http == await proposed(samples(*texts), samples=3)


async def test_answers_that_cannot_be_used_go_back_once():
    def answers(question, sample):
        return "Action: click [1]" if len(question.messages) > 2 else ("Action: click [2]", "Action: click [9]", "none")[sample]

    model = ScriptedModel(answers)
    got = await proposed(model, samples=3)
    assert [(p.action.key, p.prior) for p in got] == [("click [1]", pytest.approx(2 / 3)), ("click [2]", pytest.approx(1 / 3))]
    assert [request.sampling.n for request in model.requests] == [3, 2]


async def test_answers_that_remain_unusable_are_left_out():
    model = samples("Action: click [2]", "Action: click [9]")
    assert [p.action.key for p in await proposed(model, samples=2)] == ["click [2]"]
    assert len(model.requests) == 2


async def test_answers_can_count_what_their_tokens_were_worth():
    texts = (Reply(text="Action: click [1]", logprobs=(-0.1, -0.1)), Reply(text="Action: click [2]", logprobs=(-2.0, -2.0)))
    got = await proposed(samples(*texts), samples=2, weigh="logprobs")
    assert got[0].action.key == "click [1]" and got[0].prior == pytest.approx(0.8699, abs=1e-3)


async def test_a_list_is_one_call_and_its_confidences_are_the_priors():
    model = samples('Think.\nBuy it.\nAction (60%): click [2]\nOr the size.\n2. Action (30%): fill [3] "42"\nAction (5%): click [9]')
    got = await proposed(model, form="list")
    assert [(p.action.key, pytest.approx(p.prior), p.rationale) for p in got] == [
        ("click [2]", 2 / 3, "Think.\nBuy it."),
        ('fill [3] "42"', 1 / 3, "Or the size."),
    ]
    assert len(model.requests) == 1 and model.requests[0].prompt.startswith("policy_list@5:")


async def test_a_list_without_one_usable_action_goes_back():
    model = samples("Action (60%): click [9]", "Action: click [2]")
    with pytest.raises(AnswerError, match=r"no element \[9\]"):
        await proposed(model, form="list")


async def test_examples_are_data_that_each_prompt_shows(tmp_path):
    file = tmp_path / "examples.yaml"
    file.write_text("- {goal: Buy a hat., observation: '[4] button \"Buy\"', thought: Only this is left., action: 'click [4]'}\n")
    model = samples("Action: click [2]")
    await proposed(model, samples=1, examples=str(file))
    assert "Goal: Buy a hat." in model.requests[0].messages[0].parts[0].text


@pytest.mark.parametrize("style", ["plain", "explorative"])
async def test_an_explorative_agent_is_asked_to_try_uncertain_ways(style):
    model = samples("Action: click [2]")
    await proposed(model, samples=1, style=style)
    assert ("try one and look" in model.requests[0].messages[0].parts[0].text) == (style == "explorative")


async def test_examples_that_are_none_are_named(tmp_path):
    file = tmp_path / "examples.yaml"
    for text, why in (("- {goal: x}\n", "holds no list of examples"), ("{\n", "is not YAML")):
        file.write_text(text)
        with pytest.raises(UsageError, match=why):
            await proposed(samples("Action: click [2]"), examples=str(file))


LINES = (
    ("It is the blue one.\nAction", -0.1), (" (70%): ", -3.0), ("click", -0.2), (" [2]", -0.4), ("\nOr the size.\nAction (90%):", -0.1),
    (" fill [", -1.0), ("3] ", -2.0), ('"4', -1.0), ('2"', -2.0),
)  # fmt: skip


def listing(*tokens, **fields):
    """Return a list of actions as the tokens of an answer."""
    text = b"".join(token if isinstance(token, bytes) else token.encode() for token, _ in tokens).decode()
    return Reply(**{"text": text, "tokens": tuple(t for t, _ in tokens), "logprobs": tuple(each for _, each in tokens), **fields})


async def test_listed_actions_are_weighed_by_the_tokens_of_their_lines():
    model = samples(listing(*LINES))
    got = await proposed(model, form="list", weigh="logprobs")
    first, second = math.exp(-0.3), math.exp(-1.5)
    assert [p.action.key for p in got] == ["click [2]", 'fill [3] "42"']
    assert [p.prior for p in got] == pytest.approx([first / (first + second), second / (first + second)])
    assert model.requests[0].sampling.logprobs


@pytest.mark.parametrize("lacks", [{"logprobs": None}, {"tokens": None}, {"logprobs": (-1.0,), "tokens": ("Action",)}])
async def test_stated_confidences_weigh_where_the_tokens_are_not_known(lacks):
    got = await proposed(samples(listing(*LINES, **lacks)), form="list", weigh="logprobs")
    assert [(p.action.key, p.prior) for p in got] == [('fill [3] "42"', 0.9 / 1.6), ("click [2]", 0.7 / 1.6)]


async def test_reasoning_and_parts_of_characters_do_not_shift_the_tokens():
    tokens = [
        ("<think>Action (9%): click [1]</think>", -9.0),
        ("Gr\u00f6\u00dfe".encode()[:3], -9.0),
        ("Gr\u00f6\u00dfe".encode()[3:], -9.0),
        *LINES,
    ]
    got = await proposed(samples(listing(*tokens)), form="list", weigh="logprobs")
    assert [p.action.key for p in got] == ["click [2]", 'fill [3] "42"'] and got[0].prior == pytest.approx(1 / (1 + math.exp(-1.2)))


async def test_impossible_tokens_leave_a_weight_above_zero():
    got = await proposed(samples(listing(("Action (5%): ", -1.0), ("click [2]", -9999.0))), form="list", weigh="logprobs")
    assert [(p.action.key, p.prior) for p in got] == [("click [2]", 1.0)]


async def test_weighing_by_log_probabilities_requests_them():
    model = samples("Action: click [2]")
    await proposed(model, samples=1, weigh="logprobs")
    assert model.requests[0].sampling.logprobs


async def test_listed_actions_are_weighed_by_tokens_over_http():
    async with ScriptedServer(lambda question, sample: listing(*LINES)) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url))
        got = await proposed(model, form="list", weigh="logprobs")
        await model.close()
    assert got[0].prior == pytest.approx(1 / (1 + math.exp(-1.2)))


WENT_BACK = msgspec.structs.replace(context().history[0], action=BROWSER_ACTIONS.parse("go_back"))


def page_with(*elements, **more):
    return context(page(*elements), **more)


@pytest.mark.parametrize(
    ("seen", "offered", "left_out"),
    [
        (page_with(("button", "Send")), {"click", "press", "stop"}, {"fill", "select", "upload", "accept", "tab"}),
        (page_with(("button", "Send")), {"hover"}, {"click_at", "drag_at", "wheel", "type", "go_back", "go_forward"}),
        (page_with(("button", "Send"), history=(WENT_BACK,)), {"go_forward"}, set()),
        (page_with(("Canvas", "Board")), {"click_at", "drag_at", "wheel"}, set()),
        (page_with(("textbox", "Name")), {"click", "fill"}, {"select", "type"}),
        (page_with(("combobox", "Size")), {"select"}, {"upload"}),
        (page_with(("alertdialog", "Sure?"), ("button", "OK")), {"accept", "dismiss"}, {"fill"}),
        (context(msgspec.structs.replace(SHOE, tabs=("http://shop.test/2",))), {"tab", "close_tab"}, {"select"}),
        (context(msgspec.structs.replace(SHOE, elements=())), {"fill", "select", "accept", "tab"}, set()),
    ],
)
async def test_verbs_that_a_state_has_no_use_for_are_not_offered(seen, offered, left_out):
    model = samples("Action: wait")
    await LLMPolicy(model, PolicyConfig()).propose(seen, BROWSER_ACTIONS, 2)
    listed = {line.split()[0] for line in model.requests[0].messages[0].parts[0].text.partition("has a use for")[2].splitlines()[1:]}
    assert offered <= listed and not left_out & listed


@pytest.mark.parametrize(("reasons", "settings"), [(True, {}), (False, {"thoughts": False})])
async def test_a_model_that_reasons_or_is_small_is_asked_for_the_action_alone(reasons, settings):
    model = samples("Action: click [2]")
    model.reasons = reasons
    await proposed(model, **settings)
    [request] = model.requests
    assert "Thought:" not in str(request.messages) and "thought" not in request.form.example
