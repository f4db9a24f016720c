"""A policy is asked in the conversations that exports of searches teach."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.cli.main import main
from exact.config import Config, ViewConfig, parse
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.known import deceptive_chain, maze
from exact.models.base import ChatModel
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from exact.runs import runner
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen
from tests.learning.runs import task_of, toy_run, with_task
from tests.views.test_view import png


def with_rows(graph: ToyGraph) -> ToyGraph:
    """Return the graph with unlikely edges in common, so that its states have more lines than a step changes."""

    def longer(name: str, state: ToyState) -> ToyState:
        rows = {f"row {number}": ToyEdge(to=name, prior=1e-6) for number in range(12)}
        return state if state.reward is not None else msgspec.structs.replace(state, edges={**state.edges, **rows})

    return msgspec.structs.replace(graph, states={name: longer(name, state) for name, state in graph.states.items()})


GRAPHS = with_rows(maze()), deceptive_chain()
_MARK = re.compile(r"(⟦/?\w+) [g-z]+⟧")


def explorer(**policy: Any) -> Config:
    return parse(
        {
            "search": {"algorithm": "explorer", "k": 1},
            "policy": {"kind": "llm", "form": "conversation", "samples": 1, "history": 100, **policy},
            "value": {"kind": "constant"},
            "reflection": {"kind": "none"},
            "models": {"policy": {"model": "scripted"}},
            "limits": {"actions": 100},
        }
    )


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two solved toy tasks."""
    return asyncio.run(toy_run(tmp_path_factory.mktemp("searched") / "run", *GRAPHS))


def exported(kind: str, run: Path, out: Path, *options: str) -> list[list[dict[str, str]]]:
    """Return the messages of each exported conversation, without the drawn part of the fences' marks."""
    assert main(["export", kind, str(run), "--out", str(out), *options]) == 0
    lines = [json.loads(line)["messages"] for line in out.read_text().splitlines()]
    return [[{**turn, "content": _MARK.sub(r"\1⟧", turn["content"])} for turn in messages] for messages in lines]


async def answered(folder: Path, config: Config, graph: ToyGraph, seed: int, answers: list[str]) -> tuple[list[Question], list[ResultLine]]:
    """Attempt a task with a model that gives these answers in turn. Return what it was asked, and the lines of the results."""
    task, left, asked = task_of(graph, seed), iter(answers), list[Question]()

    def reply(question: Question, _: int) -> str:
        asked.append(question)
        return next(left)

    def models(config: Config, opened: object) -> dict[str, ChatModel]:
        return {"policy": ScriptedModel(reply)}

    create(folder, (task,), config)
    run, settings = reopen(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_models", models)
        lines = await Runner(folder=with_task(run, task), config=settings, open_environments=lambda _: nullcontext(ToyFactory(graph))).run()
    return asked, lines


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize(("kind", "algorithm"), [("exploratory", "explorer"), ("imitation", "react")])
async def test_a_model_that_answers_as_a_conversation_teaches_is_asked_that_conversation(
    searched: Path, tmp_path: Path, kind: str, algorithm: str, changes: bool, seed: int
) -> None:
    config = explorer(changes=changes)
    (tmp_path / "view.yaml").write_text(json.dumps({"policy": {"kind": "llm", "form": "conversation", "changes": changes}}))
    messages = exported(kind, searched, tmp_path / "out.jsonl", "--view", str(tmp_path / "view.yaml"))[seed]
    assert any("The state changed" in turn["content"] for turn in messages) == (
        changes and seed == 0
    )  # the states of the other graph are short
    answers = [turn["content"] for turn in messages if turn["role"] == "assistant"]
    config = msgspec.structs.replace(config, search=msgspec.structs.replace(config.search, algorithm=algorithm))
    asked, lines = await answered(tmp_path / "run", config, GRAPHS[seed], seed, answers)
    assert [line.score for line in lines] == [1.0]
    for place, question in enumerate(asked):
        shown = [{"role": role, "content": _MARK.sub(r"\1⟧", text)} for role, text in question.messages]
        assert shown == messages[: 2 * place + 2]
    assert len(asked) == len(answers)


@pytest.mark.parametrize("thoughts", [True, False])
async def test_a_conversation_asks_for_thoughts_as_its_setting_says(tmp_path: Path, thoughts: bool) -> None:
    config = msgspec.structs.replace(explorer(), policy=msgspec.structs.replace(explorer().policy, thoughts=thoughts))
    asked, _ = await answered(tmp_path / "run", config, GRAPHS[0], 0, ['Action: go "south"'])
    assert ("think if you need to" in asked[0].messages[0][1]) == thoughts


async def test_a_screenshot_that_was_shown_is_neither_sent_again_nor_exported_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both say which picture it is, so that a model is asked as it was trained."""
    look = ToyEnvironment._observe
    monkeypatch.setattr(
        ToyEnvironment, "_observe", lambda self, at: msgspec.structs.replace(look(self, at), screenshot=png(40, len(at.state)))
    )
    graph = deceptive_chain()
    settings = {"policy": {"kind": "llm", "form": "conversation"}, "view": {"images": True}}
    (tmp_path / "view.yaml").write_text(json.dumps(settings))
    run = await toy_run(tmp_path / "searched", graph)
    out = tmp_path / "out.jsonl"
    assert main(["export", "exploratory", str(run), "--out", str(out), "--view", str(tmp_path / "view.yaml"), "--pictures"]) == 0
    (line,) = map(json.loads, out.read_text().splitlines())
    told = [[part["text"] for part in turn["content"]] for turn in line["messages"] if turn["role"] != "system"]
    answers = [text for turn, (text, *_) in zip(line["messages"][1:], told, strict=True) if turn["role"] == "assistant"]
    config = msgspec.structs.replace(explorer(), view=ViewConfig(images=True))
    asked, lines = await answered(tmp_path / "run", config, graph, 0, answers)
    assert [each.score for each in lines] == [1.0] and len(asked) == len(answers)
    shown = [_MARK.sub(r"\1⟧", text) for _, text in asked[-1].messages[1:]]
    assert shown == [_MARK.sub(r"\1⟧", "\n".join(text for text in parts if text is not None)) for parts in told[: len(shown)]]
    assert "[Picture 3 is the same as picture 1.]" in shown[4] and len(set(asked[-1].images)) == len(asked[-1].images)
    assert len(set(line["images"])) == len(line["images"])


async def test_steps_beyond_the_history_are_summarised(tmp_path: Path) -> None:
    graph = maze()
    moves = [f'Action: go "{name}"' for name in graph.states[graph.start].edges]
    asked, _ = await answered(tmp_path / "run", explorer(history=1), graph, 0, [moves[0], "Action: step_back", moves[0], 'Action: stop ""'])
    last = asked[-1].messages
    assert [role for role, _ in last] == ["system", "user", "assistant", "user"]
    assert "Steps before this state: 1 go, 1 step_back" in last[1][1] and "The goal" in last[1][1]
