import asyncio

import pytest

from exact.errors import ModelError
from exact.models.base import Price, ToolCall
from exact.models.openai import OpenAIModel
from exact.models.scripted import Question, Reply, ScriptedModel, ScriptedServer, Status, table

from .test_openai import Waits

SCRIPT = table({"Which?": ("red", "blue"), "What?": ("nothing",)})


async def test_a_sample_has_its_own_answer(ask):
    answer = await ScriptedModel(SCRIPT).complete(ask("Which?", n=3))
    assert [choice.text for choice in answer.choices] == ["red", "blue", "red"]


async def test_a_question_that_is_not_in_the_script_is_a_model_error(ask, configured):
    with pytest.raises(ModelError, match="no entry of the script"):
        await ScriptedModel(SCRIPT).complete(ask("Who?"))
    async with ScriptedServer(SCRIPT) as server:
        model = OpenAIModel(configured(server.base_url))
        with pytest.raises(ModelError, match="no entry of the script"):
            await model.complete(ask("Who?"))
        await model.close()


async def test_model_and_server_give_the_same_answer_to_the_same_question(ask, configured):
    request = ask("What?", n=2, images=(b"png",))
    here = await ScriptedModel(SCRIPT).complete(request)
    async with ScriptedServer(SCRIPT) as server:
        model = OpenAIModel(configured(server.base_url))
        there = await model.complete(request)
        await model.close()
    assert (here.choices, here.usage) == (there.choices, there.usage)


async def test_the_order_of_questions_does_not_change_answers(ask, configured):
    def answers(question: Question, sample: int) -> str:
        return f"{question.messages[-1][1]}/{sample}"

    async with ScriptedServer(answers) as server:
        model = OpenAIModel(configured(server.base_url))
        got = await asyncio.gather(*(model.complete(ask(f"q{i}", n=2)) for i in range(30)))
        await model.close()
    assert [[choice.text for choice in answer.choices] for answer in got] == [[f"q{i}/0", f"q{i}/1"] for i in range(30)]


async def test_a_price_gives_a_cost(ask):
    answer = await ScriptedModel(SCRIPT, price=Price(input=1e6, output=1e6)).complete(ask())
    assert answer.usage.cost == answer.usage.input_tokens + answer.usage.output_tokens


async def test_the_server_ends_with_its_context_while_a_client_waits():
    async with ScriptedServer(SCRIPT) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Le")
        await writer.drain()
    with pytest.raises(ConnectionError):
        await reader.readexactly(1) if not reader.at_eof() else (_ for _ in ()).throw(ConnectionError)
    writer.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_server_leaves_no_task():
    started = asyncio.Event()

    async def serve() -> None:
        async with ScriptedServer(SCRIPT):
            started.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(serve())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": [{}]}', b'{"model": "m", "messages": [{"role": "user", "content": 5}]}'])
async def test_a_request_that_is_none_gets_a_400(body):
    async with ScriptedServer(SCRIPT) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


@pytest.mark.parametrize("api", ["responses", "messages"])
async def test_the_native_apis_are_served_too(configured, ask, api):
    def answers(question, sample):
        if sample == 2:
            return Reply(calls=(ToolCall(name="computer", arguments={"action": "wait", "type": "wait"}),))
        return f"{question.messages[0][1]} {question.messages[-1][1]} {len(question.images)} {sample}"

    faults = lambda question, times: Status(529) if times == 0 else None  # noqa: E731
    async with ScriptedServer(answers, faults=faults) as server:
        model = OpenAIModel(configured(server.base_url, api=api), sleep=Waits())
        first = await model.complete(ask("Which?", images=(b"png",)))
        second = await model.complete(ask("Which?", images=(b"png",)))
        await model.close()
    assert first.choices[0].text == "Be brief. Which? 1 1" and second.choices[0].calls[0].name == "computer"
    assert first.usage.input_tokens + second.usage.input_tokens == server.input_tokens > 170 and server.paths[0] == f"/v1/{api}"
