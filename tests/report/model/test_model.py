"""What a report says about a search."""

from pathlib import Path

import pytest

from exact.config import Config, PolicyConfig, ValueConfig, dump
from exact.report.model.data import Report, Status, TreeState
from exact.report.model.model import report
from exact.runs.journal.store import Manifest, ResultLine, RunFolder
from exact.task import Score, Task
from tests.report.journals import SHOP, Page, Recorder, new_run, shop_run


@pytest.fixture(scope="module")
def told(shop: RunFolder) -> Report:
    return report(shop, shop.manifest.tasks[0], screenshots=False)


def of_status(told: Report, status: Status) -> list[TreeState]:
    return [node for node in told.nodes if node.status == status]


def test_an_action_is_described_in_words_beside_its_id(told: Report) -> None:
    assert [choice.words for choice in told.nodes[0].choices][:3] == [
        'click [4] link "Green tea"',
        "click [9]",
        'click [5] link "Black tea"',
    ]


def test_a_refused_action_has_its_reason_and_no_state(told: Report) -> None:
    refused = told.nodes[0].choices[1]
    assert (refused.status, refused.reason, refused.child) == ("refused", "there is no element [9]", None)


def test_every_kind_of_state_is_distinguished(told: Report) -> None:
    assert of_status(told, "blocked") and of_status(told, "no-op") and of_status(told, "terminal")
    statuses = {choice.status for node in told.nodes for choice in node.choices}
    assert {"drifted", "refused", "failed", "no-op", "open"} <= statuses


def test_a_foreseen_end_and_the_real_one_are_one_state(told: Report) -> None:
    last = next(node for node in told.nodes if node.current)
    twins = [node for node in told.nodes if (node.parent, node.via) == (last.parent, last.via)]
    assert twins == [last]
    assert last.status == "terminal" and last.routes and last.evaluation


def test_committed_states_are_marked_from_the_start_to_the_last(told: Report) -> None:
    path = [node for node in told.nodes if node.committed]
    assert [node.depth for node in path] == [0, 1, 2, 3, 4]
    assert [step.node for step in told.steps] == [node.id for node in path[:-1]]


def test_a_step_says_what_was_expected_and_what_came(told: Report) -> None:
    first = told.steps[0]
    assert first.words == 'click [4] link "Green tea"'
    assert first.name == 'click link "Green tea"' and first.key == "1"
    assert first.came == SHOP["green"].value
    assert first.alternatives[0].chosen and first.alternatives[0].value == first.value
    assert "as the search had seen it" in first.outcome


def test_drift_and_failures_are_reported_once_with_their_number(told: Report) -> None:
    reasons = {reason: times for _, reason, times in told.trouble}
    assert reasons["drifted: another state was there: its title differs"] == 1
    assert reasons["environment: the browser closed the connection"] == 3


def test_reflections_shown_and_written_have_their_provenance(told: Report) -> None:
    (shown,) = told.nodes[0].shown
    assert shown.reflections[0].source.startswith("from shop/coffee?seed=1, on shop.test, run monday, node 7, by the embedded reflector")
    assert told.reflections[0].tainted


def test_a_reflection_that_was_shown_says_where_and_how_the_attempt_ended(told: Report) -> None:
    (used,) = told.remembered
    assert (used.reflection, used.nodes, used.ending) == (told.nodes[0].shown[0].reflections[0], (0,), told.head.headline)


def test_a_model_call_has_its_prompt_answer_and_cost(told: Report) -> None:
    call = next(call for call in told.nodes[0].calls if call.role == "policy")
    assert told.texts[call.request[0].text or 0] == "You are the policy."
    assert told.texts[call.request[1].text or 0].endswith("[picture abababababab]")
    assert told.texts[call.answers[0].text or 0].startswith("click [4]")
    assert call.usage == "812 tokens in, 64 out, $0.0021"


def test_the_head_counts_what_was_spent(told: Report) -> None:
    facts = {fact.label: (fact.value, fact.note) for fact in told.head.facts}
    assert told.head.brief == "4 of 15 actions · 30.5 s · $0.0168"
    assert facts["Model calls"][1].endswith("512 out")
    assert facts["Own evaluation"][0] == "0.95"
    assert facts["Drift"][0] == "1"


@pytest.mark.parametrize(
    ("policy", "value", "labels"),
    [
        ("lexical", "learned", ("Built-in agent: not a language model",)),
        ("llm", "lexical", ("Built-in value function: not a language model",)),
        ("learned", "llm", ("Built-in policy: not a language model",)),
        ("llm", "llm", ()),
    ],
)
def test_a_part_that_is_no_language_model_is_labelled(tmp_path: Path, policy: str, value: str, labels: tuple[str, ...]) -> None:
    config = Config(policy=PolicyConfig(kind=policy), value=ValueConfig(kind=value))
    run = RunFolder.create(tmp_path, Manifest(tasks=(Task(id="shop/tea", instruction="Buy tea."),), agent=config.name), dump(config))
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP)
    recorder.begin()
    recorder.journal.close()
    assert report(run, run.manifest.tasks[0], screenshots=False).head.labels == labels


@pytest.mark.parametrize(
    ("score", "ending", "by"),
    [
        (Score(value=1.0, success=True), "solved", "The evaluator found what the goal asks for: score 1.00."),
        (Score(value=0.0, success=False, reason="one pack"), "unsolved", "The evaluator did not find what the goal asks for: score 0.00."),
        (None, "judged", "The site ended the task. No evaluator has checked the result."),
    ],
)
def test_the_head_says_what_came_out_and_by_whom(tmp_path: Path, score: Score | None, ending: str, by: str) -> None:
    run = shop_run(tmp_path / "run", score=score)
    head = report(run, run.manifest.tasks[0], screenshots=False).head
    assert head.ending == ending
    assert head.sentence.endswith(by)
    assert head.reason == (score.reason if score else "")


def test_oracle_values_are_labelled(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    run.add_result(ResultLine(task=run.manifest.tasks[0].id, seed=1, agent="oracle", status="scored", oracle=True))
    assert any(label.startswith("Oracle values") for label in report(run, run.manifest.tasks[0], screenshots=False).head.labels)


def test_a_commit_that_led_elsewhere_shows_both_states(tmp_path: Path) -> None:
    run, config = new_run(tmp_path / "run", "shop/tea")
    recorder = Recorder(run, run.manifest.tasks[0], config, {**SHOP, "closed": Page("Closed", value=0.1)})
    recorder.begin()
    recorder.commit(otherwise="closed")
    recorder.journal.close()
    told = report(run, run.manifest.tasks[0], screenshots=False)
    (foreseen,) = of_status(told, "unlike")
    real = next(node for node in told.nodes if node.current)
    assert (foreseen.parent, foreseen.via) == (real.parent, real.via) and foreseen.title == "Green tea" and real.title == "Closed"
    assert told.steps[0].trouble and "another state than foreseen" in told.steps[0].outcome


def test_a_decision_without_its_commit_is_uncertain(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    path = run.task_folder(run.manifest.tasks[0]) / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    decided = next(place for place, line in enumerate(lines) if b'"decided"' in line)
    path.write_bytes(b"\n".join(lines[: decided + 1]) + b"\n")
    (step,) = report(run, run.manifest.tasks[0], screenshots=False).steps
    assert step.child is None and step.trouble and step.outcome.startswith("uncertain")


def test_the_seconds_and_the_money_of_the_steps_are_those_of_the_attempt(told: Report) -> None:
    assert sum(step.money for step in told.steps) == pytest.approx(0.0168)
    assert 0 < sum(step.seconds for step in told.steps) <= 30.5 and all(step.seconds > 0 for step in told.steps)


def test_an_exhausted_action_says_that_it_left_the_mean(tmp_path: Path) -> None:
    run, config = new_run(tmp_path / "run", "shop/tea", iterations=40, revisit="exhaust")
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP, screenshots=False)
    recorder.begin()
    recorder.search()
    recorder.journal.close()
    told = report(run, run.manifest.tasks[0], screenshots=False)
    reasons = {choice.reason for node in told.nodes for choice in node.choices if choice.status == "exhausted"}
    assert any(reason.endswith("it left the mean, and Q is its best continuation") for reason in reasons)
