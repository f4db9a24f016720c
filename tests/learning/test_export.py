"""What an export holds, what it leaves out, and that it is whole or not there."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exact.cli.main import main
from exact.environments.base import Outcome
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.known import deceptive_chain, maze
from exact.learning.export import replay
from exact.models.script import Question, Reply
from exact.runs.journal.store import RunFolder
from exact.secrecy.values import Secret
from tests.learning.runs import answers, model_run, task_of, toy_run
from tests.runs.toys import config


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two solved toy tasks. Do not change it."""
    return asyncio.run(toy_run(tmp_path_factory.mktemp("searched") / "run"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of one toy task by a language model that gives token ids. Do not change it."""
    return asyncio.run(model_run(tmp_path_factory.mktemp("asked") / "run"))


def exported(kind: str, run: Path, out: Path, *args: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    assert main(["export", kind, str(run), "--out", str(out), *args]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()], json.loads(Path(f"{out}.manifest.json").read_text())


def journals(run: Path) -> list[Path]:
    folder = RunFolder.open(run)
    return [folder.task_folder(task) / "journal.jsonl" for task in folder.manifest.tasks]


def answers_of(line: dict[str, Any]) -> list[str]:
    return [turn["content"] for turn in line["messages"] if turn["role"] == "assistant"]


@pytest.mark.parametrize("kind", ["imitation", "exploratory"])
@pytest.mark.parametrize("form", ["conversational", "verifiers"])
async def test_a_conversation_replays_to_its_recorded_end(searched: Path, tmp_path: Path, kind: str, form: str) -> None:
    lines, _ = exported(kind, searched, tmp_path / "out.jsonl", "--format", form)
    assert len(lines) == 2
    for line, (seed, graph) in zip(lines, enumerate((maze(), deceptive_chain())), strict=True):
        about = line["meta"] if "meta" in line else line["info"]
        async with ToyFactory(graph).open(simulation=False) as environment:
            found = await replay(line, environment, task_of(graph, seed))
        assert (found.end, found.terminated) == (about["end"], about["terminated"])


def test_an_exploratory_conversation_steps_back_from_the_corridor_that_deceives(searched: Path, tmp_path: Path) -> None:
    lines, _ = exported("exploratory", searched, tmp_path / "out.jsonl", "--task", "toy/deceptive?seed=1")
    said = answers_of(lines[0])
    back = next(i for i, each in enumerate(said) if each.endswith(("step_back", "restart")))
    assert any('go "left"' in each for each in said[:back]) and any('go "right"' in each for each in said[back:])
    straight, _ = exported("imitation", searched, tmp_path / "other.jsonl", "--task", "toy/deceptive?seed=1")
    assert not any("left" in each or "step_back" in each for each in answers_of(straight[0]))


def test_a_thought_before_a_step_back_names_the_action_that_the_explorer_goes_back_for(searched: Path, tmp_path: Path) -> None:
    said = [answers_of(line) for line in exported("exploratory", searched, tmp_path / "out.jsonl")[0]]
    backs = 0
    for spoken in said:
        actions = [each.rpartition("Action: ")[2] for each in spoken]
        for at, action in enumerate(actions):
            if action not in ("step_back", "restart"):
                continue
            backs += 1
            following = next(each for each in actions[at:] if each not in ("step_back", "restart"))
            assert following in spoken[at].splitlines()[-2]
            if "looks like" in spoken[at]:
                assert "worse than before" in spoken[at]
    assert backs > 1 and any("worse than before" in each for each in itertools.chain(*said))


def test_what_an_oracle_knew_is_no_part_of_a_conversation(tmp_path: Path) -> None:
    told: dict[str, list[str]] = {}
    for kind in ("builtin", "oracle"):
        run = asyncio.run(toy_run(tmp_path / kind, deceptive_chain(), settings=config(value={"kind": kind})))
        lines, _ = exported("exploratory", run, tmp_path / f"{kind}.jsonl")
        told[kind] = answers_of(lines[0])
    assert any("looks like" in each for each in told["builtin"])
    assert not any("looks like" in each for each in told["oracle"])
    assert [each.splitlines()[-1] for each in told["oracle"]] == [each.splitlines()[-1] for each in told["builtin"]]


async def test_an_answer_that_is_no_action_counts_as_refused() -> None:
    graph = maze()
    line = {"messages": [{"role": "assistant", "content": "I would rather not."}]}
    async with ToyFactory(graph).open(simulation=False) as environment:
        found = await replay(line, environment, task_of(graph, 0))
    assert found.refused == 1


def test_chat_lines_have_weights_and_nothing_that_a_provider_refuses(searched: Path, tmp_path: Path) -> None:
    lines, manifest = exported("imitation", searched, tmp_path / "out.jsonl", "--format", "chat")
    for line in lines:
        assert line.keys() == {"messages"}
        for turn in line["messages"]:
            assert turn.keys() == ({"role", "content", "weight"} if turn["role"] == "assistant" else {"role", "content"})
    weights = sum(turn.get("weight", 0) for line in lines for turn in line["messages"])
    assert weights == manifest["answers"]


def test_the_manifest_counts_and_hashes_what_is_in_the_file(searched: Path, tmp_path: Path) -> None:
    lines, manifest = exported("value", searched, tmp_path / "out.jsonl")
    data = (tmp_path / "out.jsonl").read_bytes()
    assert manifest["sha256"] == hashlib.sha256(data).hexdigest() and manifest["bytes"] == len(data) and manifest["records"] == len(lines)
    named = [each["journal"] for run in manifest["runs"] for each in run["attempts"]]
    assert named == [hashlib.sha256(path.read_bytes()).hexdigest() for path in journals(searched)]
    assert sum(each["records"] for run in manifest["runs"] for each in run["attempts"]) == len(lines)
    assert {line["meta"]["task"] for line in lines} == {task["id"] for task in json.loads((searched / "run.json").read_text())["tasks"]}


def test_equal_runs_are_exported_once_and_the_same_bytes_each_time(searched: Path, tmp_path: Path) -> None:
    shutil.copytree(searched, tmp_path / "again")
    one, _ = exported("policy", searched, tmp_path / "one.jsonl")
    assert main(["export", "policy", str(searched), str(tmp_path / "again"), "--out", str(tmp_path / "two.jsonl")]) == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    manifest = json.loads((tmp_path / "two.jsonl.manifest.json").read_text())
    assert manifest["duplicates"] >= len(one) and [len(run["attempts"]) for run in manifest["runs"]] == [2, 2]


def test_values_on_the_committed_path_are_scores_and_others_those_of_the_search(searched: Path, tmp_path: Path) -> None:
    lines, _ = exported("value", searched, tmp_path / "out.jsonl")
    assert {line["target"] for line in lines if line["source"] == "score"} == {1.0}
    assert all(0 <= line["target"] <= 1 for line in lines) and any(line["source"] == "search" for line in lines)


def test_a_preference_is_between_siblings_whose_values_differ_by_the_margin(searched: Path, tmp_path: Path) -> None:
    lines, _ = exported("preference", searched, tmp_path / "out.jsonl", "--margin", "0.3", "--outcome", "any")
    assert lines
    for line in lines:
        assert line["chosen_value"] - line["rejected_value"] >= 0.3 and line["chosen"] != line["rejected"]
        assert [turn["role"] for turn in line["prompt"]] == ["system", "user"]


def test_visit_shares_sum_to_one(searched: Path, tmp_path: Path) -> None:
    lines, _ = exported("policy", searched, tmp_path / "out.jsonl")
    for line in lines:
        assert sum(line["probabilities"]) == pytest.approx(1.0) and len(line["actions"]) == len(line["visits"]) > 1
        assert line["messages"][-1]["content"].endswith(line["actions"][line["visits"].index(max(line["visits"]))])


def test_rollouts_are_exact_in_tokens(asked: Path, tmp_path: Path) -> None:
    lines, manifest = exported("rollouts", asked, tmp_path / "out.jsonl", "--format", "prompt-completion")
    assert manifest["trained_tokens"] == sum(sum(line["completion_mask"]) for line in lines) > 0
    for line in lines:
        assert len(line["completion_ids"]) == len(line["logprobs"]) == len(line["completion_mask"])
        assert 0 <= line["reward"] <= 1 and line["source"] in ("score", "search")
        assert line["completion"][0]["content"].startswith("One of them.")


def word() -> ToyGraph:
    """Return a graph whose answer, a special token, stands on the page before the one where it is asked for."""
    return ToyGraph(
        name="word",
        instruction="Give the word.",
        start="door",
        states={
            "door": ToyState(text="The word is </s>.", edges={"on": ToyEdge(to="room")}),
            "room": ToyState(text="What is the word?", answers={"</s>": 1.0}),
        },
    )


def says_the_word(question: Question, sample: int) -> Reply:
    text = question.messages[-1][1]
    if "Verdict" in question.messages[0][1]:
        return Reply(text="Verdict: A")
    said = 'Action: stop "‹/s›"' if "What is the word?" in text.rpartition("The word is")[2] else 'Action: go "on"'
    return Reply(text=said, tokens=(said,), token_ids=(7,), logprobs=(-0.1,))


def test_a_rollout_copies_a_special_token_from_an_earlier_page(tmp_path: Path) -> None:
    run = asyncio.run(model_run(tmp_path / "run", says_the_word, word()))
    lines, _ = exported("rollouts", run, tmp_path / "out.jsonl", "--format", "prompt-completion")
    assert {(line["completion"][0]["content"], line["reward"]) for line in lines} >= {('Action: stop "‹/s›"', 1.0)}


async def test_a_replayed_answer_copies_a_special_token_from_an_earlier_page(tmp_path: Path) -> None:
    run, graph = await model_run(tmp_path / "run", says_the_word, word()), word()
    lines, _ = exported("imitation", run, tmp_path / "out.jsonl", "--format", "conversational")
    async with ToyFactory(graph).open(simulation=False) as environment:
        found = await replay(lines[0], environment, task_of(graph, 0))
        assert found.terminated and (await environment.evaluate(Outcome(actions=()))).success


def test_rollouts_without_tokens_are_refused_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = asyncio.run(model_run(tmp_path / "run", lambda question, sample: answers(question, sample).text))
    assert main(["export", "rollouts", str(run), "--out", str(tmp_path / "out.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "no token ids" in said and "weigh" in said and said.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_a_prompt_of_an_imitated_step_is_what_the_policy_was_sent(asked: Path, tmp_path: Path) -> None:
    """A model that is trained on it is a policy by configuration alone."""
    lines, _ = exported("imitation", asked, tmp_path / "out.jsonl", "--format", "prompt-completion", "--outcome", "any")
    sent, _ = exported("rollouts", asked, tmp_path / "sent.jsonl", "--format", "prompt-completion")
    known = {line["meta"]["node"]: line["prompt"] for line in sent}
    same = [line["prompt"][0] == known[line["meta"]["node"]][0] for line in lines if line["meta"]["node"] in known]
    assert same and all(same)
    assert all(line["completion"][0]["content"].startswith("One of them.\nAction: go ") for line in lines)


def test_an_answer_has_no_thought_if_the_prompt_asks_for_none(asked: Path, tmp_path: Path) -> None:
    (tmp_path / "view.yaml").write_text("policy: {kind: llm, thoughts: false}\nmodels: {policy: {model: scripted}}\n")
    shown = ("--outcome", "any", "--format", "prompt-completion", "--view", str(tmp_path / "view.yaml"))
    lines, _ = exported("imitation", asked, tmp_path / "out.jsonl", *shown)
    assert lines and all(line["completion"][0]["content"].startswith("Action: go ") for line in lines)
    assert not any("Thought: <" in turn["content"] for line in lines for turn in line["prompt"])


def test_a_prompt_shows_no_thought_that_no_language_model_had(searched: Path, tmp_path: Path) -> None:
    """The reasons of other policies are figures, and a model that is trained will see its own thoughts in their place."""
    told = ""
    for kind in ("imitation", "policy", "preference"):
        exported(kind, searched, tmp_path / f"{kind}.jsonl", "--format", "prompt-completion" if kind == "imitation" else "conversational")
        told += (tmp_path / f"{kind}.jsonl").read_text()
    assert "Steps so far" in told and "   thought: " not in told


# --- damage


@pytest.mark.parametrize("kind", ["value", "policy", "preference"])
def test_a_damaged_journal_gives_what_is_before_the_damage(
    searched: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(searched, tmp_path / "run"))
    path = journals(run)[0]
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[: len(lines) * 2 // 3], b'{"event":"to', *lines[len(lines) * 2 // 3 :]]))
    whole, _ = exported(kind, searched, tmp_path / "whole.jsonl")
    found, manifest = exported(kind, run, tmp_path / "out.jsonl")
    of_first = [line for line in found if "maze" in line["meta"]["task"]]
    assert 0 < len(of_first) <= len([line for line in whole if "maze" in line["meta"]["task"]])
    assert manifest["damaged"] == 1 and f":{len(lines) * 2 // 3 + 1} does not read" in manifest["runs"][0]["attempts"][0]["damage"]
    assert "damaged: " in capsys.readouterr().out


def test_a_conversation_needs_a_whole_journal_and_the_others_are_exported(searched: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(searched, tmp_path / "run"))
    path = journals(run)[0]
    path.write_bytes(path.read_bytes()[:-30])
    lines, manifest = exported("imitation", run, tmp_path / "out.jsonl")
    assert [line["meta"]["task"] for line in lines] == ["toy/deceptive?seed=1"]
    assert manifest["left_out"] == {"damaged": 1} and "torn" in manifest["runs"][0]["attempts"][0]["damage"]


def test_a_missing_blob_costs_only_what_needs_it(searched: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(searched, tmp_path / "run"))
    before, _ = exported("value", run, tmp_path / "before.jsonl")
    found = {path: path.read_bytes() for path in (run / "blobs").glob("*/*")}
    rooms = [path for path, data in found.items() if b"of a maze" in data and b"Room 0,0" not in data]
    for path in rooms:
        path.unlink()
    after, manifest = exported("value", run, tmp_path / "after.jsonl")
    assert 0 < len(after) < len(before) and any("is missing" in reason for reason in manifest["skipped"])


def test_an_error_leaves_no_file_and_keeps_the_older_one(searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.jsonl"
    exported("value", searched, out)
    old = out.read_bytes()

    def full(self: object, line: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("exact.learning.export.LineWriter.write", full)
    assert main(["export", "policy", str(searched), "--out", str(out)]) == 1
    assert out.read_bytes() == old and sorted(each.name for each in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.manifest.json"]


def test_nothing_to_export_is_an_error_with_the_reason(searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "imitation", str(searched), "--out", str(tmp_path / "out.jsonl"), "--outcome", "failed"]) == 2
    assert "2 x solved" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("imitation", "RUN"), "--out imitation.jsonl"),
        (("imitation", "RUN", "--out", "OUT", "--format", "chatt"), "did you mean 'chat'?"),
        (("imitation", "RUN", "--out", "OUT", "--task", "toy/maize?seed=0"), "did you mean 'toy/maze?seed=0'?"),
        (("imitation", "elsewhere", "--out", "OUT"), "there is no run folder"),
        (("svg", "RUN", "--out", "OUT"), "2 tasks match"),
    ],
)
def test_a_mistake_is_one_line(
    searched: Path, tmp_path: Path, args: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"RUN": str(searched), "OUT": str(tmp_path / "out.jsonl")}
    assert main(["export", *(named.get(each, each) for each in args)]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and not list(tmp_path.iterdir())


# --- filters


@pytest.mark.parametrize("line", ["toy/maze", "toy/maze?seed=0", "toy/ma*", "  reach the   EXIT. "])
def test_tasks_of_a_test_are_left_out(searched: Path, tmp_path: Path, line: str) -> None:
    listed = tmp_path / "test.txt"
    listed.write_text(f"# held out\n\n{line}\n")
    lines, manifest = exported("imitation", searched, tmp_path / "out.jsonl", "--exclude", str(listed))
    assert [each["meta"]["task"] for each in lines] == ["toy/deceptive?seed=1"] and manifest["left_out"] == {"a test's task": 1}


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("--max-steps", "3"), "too many steps"),
        (("--max-tokens", "10"), "too many tokens"),
        (("--min-steps", "4"), "too few steps"),
        (("--max-backtracking", "0"), "too much backtracking"),
    ],
)
def test_a_filter_leaves_out_and_says_so(searched: Path, tmp_path: Path, args: tuple[str, ...], reason: str) -> None:
    assert main(["export", "exploratory", str(searched), "--out", str(tmp_path / "all.jsonl")]) == 0
    code = main(["export", "exploratory", str(searched), "--out", str(tmp_path / "out.jsonl"), *args])
    if code == 0:
        assert reason in json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["left_out"]
    assert code in (0, 2)
    assert (tmp_path / "out.jsonl").exists() == (code == 0)


def test_a_cap_for_each_site_keeps_the_first(tmp_path: Path) -> None:
    run = asyncio.run(toy_run(tmp_path / "run", maze(), maze(seed=1), maze(seed=2)))
    lines, manifest = exported("imitation", run, tmp_path / "out.jsonl", "--per-site", "2")
    assert len(lines) == 2 and manifest["left_out"] == {"enough of its site": 1}


# --- secrets


def corridor(name: str, says: str) -> ToyGraph:
    start = ToyState(text=says, edges={"on": ToyEdge(to="end"), "off": ToyEdge(to="lost")})
    return ToyGraph(
        name=name, instruction=f"Go on, {name}.", start="start", states={"start": start, "end": ToyState(reward=1.0), "lost": ToyState()}
    )


def test_known_secrets_are_replaced_and_what_has_the_shape_of_one_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is known only where it is exported: the run was made where it was not."""
    graphs = corridor("plain", "The word is swordfish-sesame"), corridor("token", "It is ghp_0123456789abcdefghijklmnopqrstuv01")
    key = config(models={"policy": {"model": "m", "api_key_env": "TEST_EXPORT_KEY"}})
    run = asyncio.run(toy_run(tmp_path / "run", *graphs, settings=key))
    monkeypatch.setenv("TEST_EXPORT_KEY", "swordfish-sesame")
    lines, manifest = exported("imitation", run, tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text()
    assert len(lines) == 1 and manifest["left_out"] == {"the shape of a secret": 1} and manifest["scrubbed"] == 1
    assert "swordfish" not in text and "ghp_" not in text and "<secret:" in text


@pytest.mark.parametrize("kind", ["imitation", "exploratory", "preference", "value", "policy"])
@pytest.mark.parametrize("form", ["conversational", "prompt-completion"])
def test_no_kind_of_training_data_holds_a_known_secret_in_any_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    """The secret stands in texts of states and in names of actions, as a password that was typed before it was known does."""
    states = {
        "start": ToyState(
            text="The word is swordfish-sesame",
            edges={"swordfish-sesame": ToyEdge(to="half"), "off": ToyEdge(to="lost"), "c3dvcmRmaXNoLXNlc2FtZQ==": ToyEdge(to="lost")},
        ),
        "half": ToyState(text="Half SWORDFISH-SESAME", edges={"on": ToyEdge(to="end"), "off": ToyEdge(to="lost")}),
        "end": ToyState(reward=1.0),
        "lost": ToyState(text="swordfish%2Dsesame"),
    }
    graph = ToyGraph(name="word", instruction="Go on.", start="start", states=states)
    key = config(models={"policy": {"model": "m", "api_key_env": "TEST_EXPORT_KEY"}})
    run = asyncio.run(toy_run(tmp_path / "run", graph, settings=key))
    monkeypatch.setenv("TEST_EXPORT_KEY", "swordfish-sesame")
    lines, manifest = exported(kind, run, tmp_path / "out.jsonl", "--format", form)
    whole = ((tmp_path / "out.jsonl").read_text() + (tmp_path / "out.jsonl.manifest.json").read_text()).lower()
    assert lines and manifest["scrubbed"] >= 1 and "<secret:" in whole
    for written in ("swordfish", "c3dvcmrm"):
        assert written not in whole


def test_a_rollout_whose_text_holds_a_secret_is_left_out_for_its_tokens_say_it_too(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from exact.learning import export

    monkeypatch.setattr(export, "known_secrets", lambda *_: [Secret("word", "One of them.")])
    assert main(["export", "rollouts", str(asked), "--out", str(tmp_path / "out.jsonl"), "--format", "prompt-completion"]) == 2
    assert "16 x a secret in its token ids" in capsys.readouterr().err


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1))
def test_a_journal_cut_anywhere_exports_or_says_why_not(searched: Path, tmp_path_factory: pytest.TempPathFactory, cut: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    run = Path(shutil.copytree(searched, folder / "run"))
    path = journals(run)[0]
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])
    lines, manifest = exported("value", run, folder / "out.jsonl")
    assert len(lines) == manifest["records"] > 0
