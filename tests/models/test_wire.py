import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.models import wire
from exact.models.base import ChatRequest, Message, Sampling, Text, TokenChance, Usage
from exact.models.classify import answer as classified
from exact.models.decode import FailedAnswer, MalformedAnswer, unstreamed
from exact.models.messages import answer as messaged
from exact.models.providers import ModelCapabilities
from exact.models.responses import answer as responded
from exact.models.wire import answer, body, embedded


def read(message=None, *, usage=None, **choice):
    data = {"choices": [{"message": message, **choice}], "usage": usage, "model": "m"}
    return answer(json.dumps(data))


@pytest.mark.parametrize(
    "content",
    [
        "Buy it.",
        [{"type": "text", "text": "Buy it."}],
        [{"type": "text", "text": "Buy "}, {"type": "text", "text": "it."}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Sell?"}]}, {"type": "text", "text": "Buy it."}],
        [{"type": "reasoning", "text": "Sell?"}, {"type": "output_text", "text": "Buy it."}],
        ["Buy it."],
        [{"text": "Buy it."}, {"type": "text", "text": None}],
    ],
)
def test_the_text_is_read_from_a_string_or_parts(content):
    assert read({"content": content, "reasoning_content": "Sell?"}).choices[0].text == "Buy it."


@pytest.mark.parametrize("message", [None, {}, {"content": None}, {"content": 3}, {"content": None, "tool_calls": []}, "Buy"])
def test_a_message_without_text_is_an_empty_choice(message):
    assert read(message).choices[0].text == ""


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (None, Usage()),
        ({"prompt_tokens": None, "completion_tokens": None}, Usage()),
        ({"prompt_tokens": 12.0, "completion_tokens": 3.0, "queue_time": 0.1}, Usage(input_tokens=12, output_tokens=3)),
        (
            {"prompt_tokens": 12, "completion_tokens": 3, "prompt_cache_hit_tokens": 8},
            Usage(input_tokens=12, cached_tokens=8, output_tokens=3),
        ),
        ({"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(input_tokens=12, output_tokens=3)),
        ({"prompt_tokens": "many"}, Usage()),
        ([], Usage()),
        ({"input_tokens": 12, "output_tokens": 3}, Usage(input_tokens=12, output_tokens=3)),
        ({"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}, Usage(input_tokens=12, output_tokens=3)),
        ({"prompt_tokens": 12, "total_tokens": 15}, Usage(input_tokens=12, output_tokens=3)),
        ({"completion_tokens": 3, "total_tokens": 15}, Usage(input_tokens=12, output_tokens=3)),
        ({"total_tokens": 15}, Usage(input_tokens=14, output_tokens=1)),
        ({"total_tokens": -15}, Usage()),
    ],
)
def test_usage_is_read_as_far_as_it_reads(usage, read_as):
    assert read({"content": "a"}, usage=usage).usage == read_as


def test_usage_beside_the_choices_is_read():
    told = {"choices": [{"message": {"content": "a"}}], "prompt_eval_count": 12, "eval_count": 3}
    assert answer(json.dumps(told)).usage == Usage(input_tokens=12, output_tokens=3)


@pytest.mark.parametrize(("logprobs", "tokens"), [(False, 5), (True, 7)])
def test_the_tokens_of_all_choices_count_where_a_server_reports_the_first_ones(logprobs, tokens):
    choices = [
        {"message": {"content": text}, "logprobs": {"content": [{"token": "x", "logprob": -0.1}] * many if logprobs else []}}
        for text, many in (("Buy it", 2), ("Buy it now", 5))
    ]
    data = {"choices": choices, "timings": {"predicted_n": 2}}
    assert answer(json.dumps(data | {"usage": {"prompt_tokens": 9, "completion_tokens": 2}})).usage.output_tokens == tokens
    assert answer(json.dumps(data | {"usage": {"prompt_tokens": 9, "completion_tokens": 8}})).usage.output_tokens == 8


def test_choices_without_an_index_stay_in_order():
    data = {"choices": [{"message": {"content": each}, "index": None} for each in "ab"]}
    assert [choice.text for choice in answer(json.dumps(data)).choices] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "finish"),
    [("stop", "stop"), ("MAX_TOKENS", "length"), ("model_length", "length"), ("SAFETY", "content_filter"), (None, ""), (3, "")],
)
def test_how_an_answer_ended_is_in_the_apis_words(given, finish):
    assert read({"content": "a"}, finish_reason=given).choices[0].finish == finish


@pytest.mark.parametrize(
    ("tokens", "logprobs", "ids"),
    [
        ([{"token": "a", "logprob": -0.5, "id": 7}, {"token": "b", "logprob": -1, "id": 8}], (-0.5, -1), (7, 8)),
        ([{"token": "token_id:17", "logprob": -0.5}], (-0.5,), (17,)),
        ([{"token": "a", "logprob": None}], None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_logprobs_and_token_ids_are_kept_where_they_are_whole(tokens, logprobs, ids):
    choice = read({"content": "a"}, logprobs={"content": tokens}).choices[0]
    assert (choice.logprobs, choice.token_ids) == (logprobs, ids)


@pytest.mark.parametrize("raw", ["", "{", "[]", "null", '{"choices": null}', '{"error": {"message": "busy", "code": 429}}'])
def test_an_answer_without_choices_is_malformed_and_shown(raw):
    with pytest.raises(MalformedAnswer, match=r"busy|''|null|\[\]|\{"):
        answer(raw)


@pytest.mark.parametrize("raw", ['{"data": "x"}', '{"data": true}', '{"data": [{"probs": [0.1, 0.2, 0.7]}]}'])
def test_a_classifier_that_gives_no_probability_is_malformed(raw):
    with pytest.raises(MalformedAnswer):
        classified(raw)


@pytest.mark.parametrize("raw", ['{"data": []}', '{"data": [{"embedding": ["x"]}]}', '{"data": [3]}', '{"data": null}'])
def test_vectors_that_are_no_numbers_are_malformed(raw):
    with pytest.raises(MalformedAnswer):
        embedded(raw)


def test_vectors_without_an_index_stay_in_order():
    assert embedded('{"data": [{"embedding": [1, 2]}, {"embedding": [3.5, 4]}], "usage": null}').vectors == ((1.0, 2.0), (3.5, 4.0))


FIELDS = (
    *("choices", "message", "content", "text", "type", "index", "usage", "prompt_tokens", "completion_tokens", "logprobs", "token"),
    *("logprob", "id", "data", "embedding", "probs", "finish_reason", "model", "prompt_tokens_details", "cached_tokens", "token_ids"),
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(ANYTHING)
@pytest.mark.parametrize("read_any", [answer, classified, embedded])
def test_any_json_is_an_answer_with_counts_or_malformed(read_any, data):
    tokens = [data, position(data, data, bytes=data, top_logprobs=data), position("a", top_logprobs=[position(data, data)])]
    choice = {"message": data, "index": data, "logprobs": {"content": tokens}, "finish_reason": data, "token_ids": data}
    for each in (data, {"choices": [data], "usage": data, "data": [data]}, {"choices": [choice], "usage": data}):
        try:
            usage = read_any(json.dumps(each)).usage
        except MalformedAnswer:
            continue
        assert usage.output_tokens >= 0 and 0 <= usage.cached_tokens <= usage.input_tokens


@pytest.mark.parametrize(
    ("takes", "sent"),
    [
        (None, {"grammar": "root ::= x"}),
        ("grammar", {"grammar": "root ::= x"}),
        ("structured_outputs", {"structured_outputs": {"grammar": "root ::= x"}}),
        ("ebnf", {"ebnf": "root ::= x"}),
        (False, {}),
    ],
)
def test_a_grammar_is_sent_in_the_field_that_the_server_reads(ask, takes, sent):
    request = msgspec.structs.replace(ask(), grammar="root ::= x")
    plain, _ = wire.body(ask(), "m", n=1, index=0, takes=ModelCapabilities())
    written, notes = wire.body(request, "m", n=1, index=0, takes=ModelCapabilities(grammar=takes))
    assert written == plain | sent and notes == (() if sent else ("grammar",))


def test_a_cap_below_the_least_one_is_raised_to_it(ask):
    caps = [wire.body(ask(max_tokens=cap), "m", n=1, index=0, takes=ModelCapabilities(least_tokens=16))[0]["max_tokens"] for cap in (1, 99)]
    assert caps == [16, 99]


def position(token, logprob=-0.5, **fields):
    return {"token": token, "logprob": logprob, **fields}


@pytest.mark.parametrize(
    ("text", "tokens", "ends"),
    [
        ("Buy it.", [position("Buy"), position(" it"), position(".")], (3, 6, 7)),
        ("Buy it.", [position("\n"), position("Buy"), position(" it."), position("<|im_end|>")], (0, 3, 7, 7)),
        ("Kauf für 5€", [position("Kauf"), position(" f"), position("?", bytes=[0xC3]), position("?", bytes=[0xBC]), position("r 5€")],
         (4, 6, 6, 7, 11)),
        ("it", [position("Buy <think>it</think>"), position("it")], (0, 2)),
        ("Buy", [position("token_id:5"), position("token_id:6")], None),
        ("", [position("Buy")], None),
    ],
)  # fmt: skip
def test_the_ends_of_tokens_are_positions_in_the_text(text, tokens, ends):
    assert read({"content": text}, logprobs={"content": tokens}).choices[0].ends == ends


def test_the_likeliest_tokens_are_kept_with_their_bytes_in_order():
    tops = [
        {"token": "No", "logprob": -2.0, "bytes": [78, 111]},
        {"token": "\u0120Yes", "logprob": -0.25, "bytes": [32, 89, 101, 115]},
        {"token": "Maybe", "logprob": -99999, "bytes": None},
        {"token": "bad", "logprob": "low"},
        "bad",
    ]
    choice = read({"content": "Yes"}, logprobs={"content": [position("Yes", top_logprobs=tops)]}).choices[0]
    assert choice.top_logprobs == ((TokenChance(" Yes", -0.25), TokenChance("No", -2.0), TokenChance("Maybe", -9999.0)),)


@pytest.mark.parametrize("listed", [[], None, {}, "none", [3]])
def test_a_server_that_lists_no_likeliest_tokens_gives_none(listed):
    found = read({"content": "Yes"}, logprobs={"content": [position("Yes", top_logprobs=listed)]}).choices[0]
    assert found.top_logprobs is None and found.logprobs == (-0.5,)


def sent(takes=None, **sampling):
    asked = ChatRequest(messages=(Message("user", (Text("Done?"),)),), sampling=Sampling(**sampling), role="value")
    return body(asked, "m", n=1, index=0, takes=takes or ModelCapabilities())


def test_likeliest_tokens_are_requested_as_far_as_the_server_lists_them():
    wanted = {"logprobs": True, "top_logprobs": 20}
    assert sent(**wanted)[0]["top_logprobs"] == 20 and "top_logprobs" not in sent(logprobs=True)[0]
    assert sent(ModelCapabilities(top_logprobs=5), **wanted)[0]["top_logprobs"] == 5
    few, notes = sent(ModelCapabilities(top_logprobs=0), **wanted)
    assert few["logprobs"] and "top_logprobs" not in few and notes == ("top_logprobs",)
    none, notes = sent(ModelCapabilities(logprobs=False), **wanted)
    assert not {"logprobs", "top_logprobs"} & set(none) and notes == ("logprobs",)


def test_sampling_without_likeliest_tokens_is_encoded_as_it_always_was():
    assert b"top_logprobs" not in msgspec.json.encode(Sampling())
    assert b'"top_logprobs":5' in msgspec.json.encode(Sampling(top_logprobs=5))


ARGUMENTS = '{"verdict": "B"}'


@pytest.mark.parametrize("arguments", [ARGUMENTS, {"verdict": "B"}])
@pytest.mark.parametrize("content", [None, "I use the tool.", ""])
def test_an_answer_by_a_tool_is_its_parameters(content, arguments):
    called = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": arguments}}
    message = {"content": content, "tool_calls": [{"function": {"name": "other", "arguments": "{}"}}, called]}
    assert json.loads(read(message, finish_reason="tool_calls").choices[0].text) == json.loads(ARGUMENTS)


@pytest.mark.parametrize("calls", [None, [], [None], [{"function": {"name": "answer"}}], [{"function": {"name": "x", "arguments": "{}"}}]])
def test_other_calls_of_tools_are_no_answer(calls):
    assert read({"content": "Buy it.", "tool_calls": calls}).choices[0].text == "Buy it."


def events(*data, lines="\n", between="\n", end="data: [DONE]\n\n"):
    return "".join(f"data: {json.dumps(each)}{lines}{between}" for each in data) + end


def chunk(delta, finish=None, index=0, **more):
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish, **more}], "model": "m", "usage": None}


CHUNKS = (
    chunk({"role": "assistant", "content": None}),
    chunk({"content": "Sell ", "reasoning_content": "Hm"}, index=1),
    chunk({"content": "Buy "}, logprobs={"content": [{"token": "Buy ", "logprob": -0.5}]}),
    chunk({"content": "it\u2028now."}, logprobs={"content": [{"token": "it\u2028now.", "logprob": -0.25}]}),
    chunk({"content": "it."}, "length", index=1),
    chunk({}, "stop"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
)


@pytest.mark.parametrize(
    "stream",
    [
        events(*CHUNKS),
        events(*CHUNKS, end=""),
        events(*CHUNKS, lines="\r\n", between="\r\n"),
        events(*CHUNKS, between=""),
        ": processing\n\nevent: message\nid: 1\n" + events(*CHUNKS),
    ],
)
def test_the_events_of_a_stream_are_one_answer(stream):
    found = answer(unstreamed(stream))
    assert [(each.text, each.finish) for each in found.choices] == [("Buy it\u2028now.", "stop"), ("Sell it.", "length")]
    assert found.choices[0].logprobs == (-0.5, -0.25) and found.choices[0].ends == (4, 11)
    assert found.usage == Usage(input_tokens=3, output_tokens=4) and found.model == "m"
    assert json.loads(found.raw)["usage"] == {"prompt_tokens": 3, "completion_tokens": 4}


def test_a_tool_call_in_a_stream_is_read_whole():
    said = [
        {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "answer", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"action": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"click [3]"}'}}]},
    ]
    assert answer(unstreamed(events(*map(chunk, said)))).choices[0].text == '{"action": "click [3]"}'


def test_a_streamed_response_is_its_last_event():
    text = {"type": "message", "content": [{"type": "output_text", "text": "Buy it."}]}
    stream = events(
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "delta": "Buy"},
        {"type": "response.completed", "response": {"status": "completed", "output": [text]}},
        end="",
    )
    assert responded(unstreamed(stream)).choices[0].text == "Buy it."


def piece(kind, text, index=0, name=""):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name or kind.removesuffix("_delta"): text}}


def block(index=0, **content):
    return {"type": "content_block_start", "index": index, "content_block": content}


BEGUN = {
    "type": "message_start",
    "message": {"type": "message", "model": "c", "content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}},
}
DONE = ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}, {"type": "message_stop"})


def test_a_streamed_message_is_joined_from_its_blocks():
    thought = (
        block(type="thinking", thinking=""),
        piece("thinking_delta", "The "),
        piece("thinking_delta", "price."),
        piece("signature_delta", "s"),
    )
    said = block(1, type="text", text=""), piece("text_delta", "Buy ", 1), {"type": "ping"}, piece("text_delta", "it\u2028now.", 1)
    stop = {"type": "content_block_stop", "index": 1}
    found = messaged(unstreamed("event: message_start\n" + events(BEGUN, *thought, *said, stop, *DONE, end="")))
    assert (found.choices[0].text, found.choices[0].finish, found.model) == ("Buy it\u2028now.", "stop", "c")
    assert found.usage == Usage(input_tokens=9, output_tokens=7)
    assert found.choices[0].items[0] == {"type": "thinking", "thinking": "The price.", "signature": "s"}


def test_a_streamed_message_calls_a_tool_with_all_its_parameters():
    call = block(type="tool_use", id="1", name="computer", input={})
    parts = [piece("input_json_delta", text, name="partial_json") for text in ("", '{"action": "left_', 'click", "coordinate": [1, 2]}')]
    found = messaged(unstreamed(events(BEGUN, call, *parts, *DONE, end="")))
    assert found.choices[0].calls[0].arguments == {"action": "left_click", "coordinate": [1, 2]}


@pytest.mark.parametrize(
    "rest",
    [
        (),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},),
        (block(type="tool_use"), piece("input_json_delta", "{", name="partial_json"), *DONE),
    ],
)
def test_a_streamed_message_that_breaks_off_is_no_answer(rest):
    with pytest.raises((MalformedAnswer, FailedAnswer)):
        messaged(unstreamed(events(BEGUN, block(type="text", text=""), piece("text_delta", "Buy"), *rest, end="")))


@pytest.mark.parametrize(
    "stream",
    [
        events(*CHUNKS[:4], end=""),
        events(*CHUNKS)[:400],
        events(*CHUNKS[:4], {"error": {"message": "overloaded"}}),
        events(),
        "data: nothing\n\n",
        "data: " + "[" * 5000,
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(stream):
    with pytest.raises(MalformedAnswer):
        answer(unstreamed(stream))


@pytest.mark.parametrize("said", ["Action: click [3]", "data: [DONE]", "\ufeffdata: x\n\ndata: [DONE]"])
@pytest.mark.parametrize("around", ["{}", "\ufeff{}", "{}\n\ndata: [DONE]\n\n", "data: {}\n\n"])
def test_an_answer_that_a_stream_holds_as_a_whole_is_read(around, said):
    whole = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})
    assert answer(unstreamed(around.format(whole))).choices[0].text == said
