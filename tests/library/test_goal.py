"""A goal in words: its agent, its cost at worst, its events, and several under one cap."""

from __future__ import annotations

import re
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

import exact
from exact.cli.main import main
from exact.config import Config
from exact.environments.base import PersonQuestion
from exact.library.goal import agent_for, as_served, estimated
from exact.models.scripted import Question, ScriptedServer
from tests.http_server import BriefServer
from tests.library.test_solve import CONFIG, OWN, TASK

PAGE = "<title>Museum</title><p>Open from nine to five</p><form method=post action=/book><button>Book</button></form>"


@pytest.mark.parametrize(
    ("model", "provider", "name", "address"),
    [
        ("gpt-4o", "", "gpt-4o", ""),
        ("anthropic/claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5", ""),
        ("vllm/Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B", ""),
        ("http://localhost:8080/v1", "", "local", "http://localhost:8080/v1"),
    ],
)
def test_a_model_is_a_name_a_provider_with_a_name_or_an_address(model: str, provider: str, name: str, address: str) -> None:
    found = agent_for(model).models.policy
    assert found is not None and (found.provider, found.model, found.base_url) == (provider, name, address)


@pytest.mark.parametrize(
    ("model", "effort", "algorithm", "think"),
    [("gpt-4o", None, "react", None), ("gpt-4o", "low", "react", None), ("gpt-4o", "medium", "mcts", 0.8), ("gpt-4o", "high", "mcts", None),
     ("", None, "mcts", None), ("", "low", "react", None)],
)  # fmt: skip
def test_effort_says_how_much_is_searched(model: str, effort: object, algorithm: str, think: float | None) -> None:
    config = agent_for(model, effort)  # type: ignore[arg-type]
    assert (config.search.algorithm, config.search.think) == (algorithm, think)


def test_overrides_of_one_agent_are_not_those_of_the_next() -> None:
    assert agent_for("gpt-4o", "high", overrides=["search.iterations=3"]).search.iterations == 3
    assert agent_for("gpt-4o", "high").search.iterations == 10


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": "http://"}, "is no address"),
        ({"model": "openai/"}, "names no model"),
        ({"model": "antropic/claude-sonnet-5-5"}, "unknown provider 'antropic': did you mean 'anthropic'"),
        ({"model": "Qwen/Qwen3-8B"}, "unknown provider 'Qwen'"),
        ({"model": "x", "agent": "rmcts_builtin"}, "model excludes agent"),
        ({"effort": "much"}, "write low, medium, high"),
        ({"task": TASK, "url": "http://127.0.0.1:9/"}, "url is for a goal in words"),
        ({"url": "museum"}, "invalid url"),
    ],
)
async def test_a_wrong_argument_of_a_goal_is_named(arguments: dict[str, object], says: str) -> None:
    given = {"task": "Find the hours", "url": "http://127.0.0.1:9/"} | arguments
    with pytest.raises(exact.UsageError, match=says):
        await exact.solve(**given)  # type: ignore[arg-type]


def test_an_estimate_holds_every_cap_and_what_search_was_shown_to_bring() -> None:
    low, high = exact.estimate("gpt-4o"), exact.estimate("gpt-4o", effort="high", money=2)
    assert (low.money, low.calls, low.search) == (1, 60, "") and "not established" in high.search and high.money == 2
    assert str(low) == "at most 60 calls, 400,000 tokens, $1, 20 actions, 3600 s"
    free = exact.estimate()
    assert (free.calls, free.money) == (0, 0)
    assert exact.estimate("made-up-model").money is None, "the price is unknown"
    assert exact.estimate("http://127.0.0.1:8080/v1").money == 1, "one's own machine costs nothing, and the cap holds"


async def test_a_server_at_a_bare_address_tells_the_name_and_the_context_of_its_model() -> None:
    server = BriefServer(host="127.0.0.1")
    server.expect_request("/v1/models").respond_with_json({"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 4096}]})
    with server:
        config = await as_served(agent_for(server.url_for("/v1")))
        named = await as_served(agent_for("gpt-4o"))
    assert config.models.policy is not None and config.models.policy.model == "qwen" and config.view.observation_tokens == 2048
    assert named.models.policy is not None and named.models.policy.model == "gpt-4o", "only a bare address is asked"


def test_what_search_was_shown_to_bring_is_printed_with_high_effort_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for effort, told in (("high", True), ("low", False)):
        main(["run", "--url", "http://127.0.0.1:9/", "--goal", "x", "--model", "gpt-4o", "--effort", effort, "--dry-run"])
        assert ("gain of search with this model: not established" in capsys.readouterr().err) is told


def test_a_model_and_a_configuration_exclude_each_other_in_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "miniwob/click-test", "--model", "gpt-4o", "--config", "rmcts_gpt-4o"]) == 2
    assert "--model excludes --config" in capsys.readouterr().err


async def test_a_goal_is_worked_at_with_a_server_of_ones_own_and_its_events_tell_of_it(tmp_path: Path) -> None:
    def answered(question: Question, sample: int) -> str:
        return 'Thought: it stands there.\nAction: stop "nine to five"'

    site = BriefServer(host="127.0.0.1")
    site.expect_request("/").respond_with_data(PAGE, content_type="text/html")
    with site:
        async with ScriptedServer(answered) as server:
            events = [
                event
                async for event in exact.solving("When is it open?", url=site.url_for("/"), model=server.base_url, out=tmp_path / "run")
            ]
    kinds = [event.kind for event in events]
    assert kinds[0] == "proposed" and kinds[-3:] == ["committed", "answered", "ended"]
    solution = events[-1].solution
    assert solution is not None and solution.answer == "nine to five" and solution.run is not None
    assert (solution.result.status, events[-1].calls) == ("judged", 1) and events[-1].tokens > 0


async def test_events_name_the_actions_that_are_tried_and_valued() -> None:
    events = [event async for event in exact.solving(TASK, config=CONFIG, **OWN)]
    tried = [event for event in events if event.kind == "simulated"]
    assert tried and all(event.actions[0] in ("one", "two") for event in tried)
    assert any(event.value is not None for event in events if event.kind == "valued")
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)
    assert events[-1].solution is not None and events[-1].solution.score == 1


async def test_a_reader_who_leaves_ends_the_attempt() -> None:
    closed = []

    class Watched(OWN["environments"]):  # type: ignore[misc,name-defined]
        async def close(self) -> None:
            closed.append(self)
            await super().close()

    async with aclosing(exact.solving(TASK, config=CONFIG, **OWN | {"environments": Watched})) as events:
        async for _ in events:
            break
    assert closed, "the environments are closed before the block is left"


@pytest.mark.parametrize(("allowed", "sent"), [(True, 1), (False, 0)])
async def test_a_request_that_writes_is_sent_if_it_is_approved(allowed: bool, sent: int) -> None:
    asked: list[tuple[str, str, str]] = []

    async def approve(action: str, request: PersonQuestion) -> bool:
        asked.append((action, request.method, request.url.rpartition("/")[2]))
        return allowed

    def answered(question: Question, sample: int) -> str:
        (button,) = set(re.findall(r"\[(\d+)\] button", str(question.messages))) or {""}
        return f"Action: click [{button}]" if button and not asked else 'Action: stop "booked"'

    site, booked = BriefServer(host="127.0.0.1"), []
    site.expect_request("/").respond_with_data(PAGE, content_type="text/html")
    site.expect_request("/book", method="POST").respond_with_handler(lambda request: booked.append(request) or _page())  # type: ignore[func-returns-value]
    with site:
        async with ScriptedServer(answered) as server:
            await exact.solve("Book a visit", url=site.url_for("/"), model=server.base_url, approve=approve)
    assert asked[0][1:] == ("POST", "book") and "Book" in asked[0][0] and len(booked) == sent


def _page() -> object:
    from werkzeug import Response

    return Response("<title>Booked</title>Thanks", content_type="text/html")


@pytest.mark.parametrize(("money", "answered"), [(2_500, 1), (8_000, 3), (0, 0)])
async def test_goals_share_one_cap(money: float, answered: int, tmp_path: Path) -> None:
    """At a dollar a token a call takes some 900 dollars, and 2,400 have to be at hand for it."""
    site = BriefServer(host="127.0.0.1")
    site.expect_request("/").respond_with_data(PAGE, content_type="text/html")
    with site:
        async with ScriptedServer(lambda question, sample: 'Action: stop "nine to five"') as server:
            config = msgspec.to_builtins(agent_for(server.base_url))
            config["models"]["policy"]["price"] = {"input": 1_000_000, "output": 1_000_000}
            config["limits"]["money"] = 2_500
            found = await exact.solve_many(
                ["When is it open?", "When does it close?", "Where is it?"], url=site.url_for("/"), parallel=2, money=money,
                agent=Config.parse(config), out=tmp_path / "all",
            )  # fmt: skip
    assert sum(each.answer is not None for each in found) == answered
    assert sum(each.result.cost or 0 for each in found) <= money
    if not money:
        assert all("used up" in each.result.reason for each in found) and not (tmp_path / "all").exists()


async def test_a_goal_that_fails_ends_none_of_the_others() -> None:
    class Broken(OWN["environments"]):  # type: ignore[misc,name-defined]
        async def evaluate(self, outcome: exact.Outcome) -> exact.Score:
            raise ValueError("no scale")

    found = await exact.solve_many([TASK, TASK], config=CONFIG, **OWN | {"environments": Broken})
    assert [each.result.status for each in found] == ["failed", "failed"] and "no scale" in found[0].result.reason


def test_a_configuration_without_a_cap_is_estimated_so() -> None:
    assert "no cap on time" in str(estimated(Config()))
