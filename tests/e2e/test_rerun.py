"""The way of yesterday, today: carried out again without an agent, healed where pages differ, and no write is sent twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import exact
from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.cli.main import main
from exact.context import Context, Proposal
from exact.environments.base import PersonQuestion
from exact.runs.journal import events as ev
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, reopen
from tests.e2e.rerunning import Registrar, work, yes
from tests.e2e.sites.register import Register, serve_register
from tests.runs.test_resume import journal

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORDS = {"Forms": "Papers", "Send": "Submit", "News": "Latest"}


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[Register, str]]:
    with serve_register() as served:
        yield served


@pytest.fixture(scope="module")
def earlier(site: tuple[Register, str], executable: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return the folder of a run that added Ann, and how often its agent was asked."""
    folder, agent = tmp_path_factory.mktemp("earlier") / "run", Registrar()
    solution = asyncio.run(work(site[1], agent, out=folder))
    assert solution.answer == "done" and len(solution.actions) == 4
    return folder, agent.asked


@pytest.fixture
def register(site: tuple[Register, str]) -> Iterator[Register]:
    yield from site[0].as_new()


class Asked:
    """A person who agrees to the writes of the earlier run, and to nothing else."""

    def __init__(self) -> None:
        self.questions = list[PersonQuestion]()

    async def __call__(self, text: str, question: PersonQuestion) -> bool:
        self.questions.append(question)
        return question.kind == "way"


async def test_an_unchanged_site_needs_no_agent_and_one_yes(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path
) -> None:
    agent, person = Registrar(), Asked()
    solution = await work(site[1], agent, replay=earlier[0], approve=person, out=tmp_path / "run")
    assert (register.names, solution.answer, agent.asked) == (["Ann"], "done", 0)
    assert (solution.result.followed, solution.result.healed, solution.result.touched) == (4, (), 0)
    [question] = person.questions
    assert question.text == f'POST {site[1]}send with name, by step 3: click button "Send"'
    answered = [each for each in journal(tmp_path / "run") if isinstance(each, ev.PersonAnswered)]
    assert [(each.answer, each.by) for each in answered] == [("yes", "the yes to the writes of the earlier run")]


async def test_without_a_yes_nothing_is_done(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(exact.UsageError, match="nobody agreed to that again: give approve, which is asked about POST"):
        await work(site[1], replay=earlier[0])
    assert main(["run", "--from", str(earlier[0]), "--config", "rmcts_builtin", "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert f'  POST {site[1]}send with name, by step 3: click button "Send"' in told and "--yes agrees to those that are listed" in told
    assert register.names == [] and not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", ["relabelled", "inserted"])
async def test_a_changed_site_is_healed_with_few_questions_and_the_healed_way_is_kept(
    change: str, register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path
) -> None:
    register.words, register.notice = WORDS if change == "relabelled" else {}, "/seen" if change == "inserted" else ""
    agent = Registrar()
    solution = await work(site[1], agent, replay=earlier[0], approve=yes, out=tmp_path / "one")
    assert (register.names, solution.answer) == (["Ann"], "done")
    assert 0 < agent.asked < earlier[1] / 2
    assert len(solution.result.healed) == (2 if change == "relabelled" else 1)
    agent = Registrar()
    again = await work(site[1], agent, replay=tmp_path / "one", approve=yes)
    assert (register.names, again.answer, agent.asked, again.result.healed) == (["Ann", "Ann"], "done", 0, ())


async def test_an_inserted_step_that_may_write_needs_its_own_yes_and_does_not_stand_for_the_write_behind_it(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int]
) -> None:
    register.notice = "/accept"
    solution = await work(site[1], replay=earlier[0], approve=yes)
    assert (register.names, solution.answer) == (["Ann"], "done")
    assert solution.result.healed[0].startswith('before step 2, fill textbox "Name" "Ann": click link "To the form"')


class Waiting(Registrar):
    """Waits on a filled form until it has sent itself."""

    def __init__(self, register: Register) -> None:
        super().__init__()
        self._register = register

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        if any(each.value for each in context.observation.elements):
            await asyncio.to_thread(self._register.saved.wait, 30)
        return await super().propose(context, actions, k)


async def test_what_a_page_sent_by_itself_is_listed_and_sent_as_often_again(
    register: Register, site: tuple[Register, str], tmp_path: Path
) -> None:
    register.drafts, person = [], Asked()
    await asyncio.wait_for(work(site[1], Waiting(register), depth=1, out=tmp_path / "run"), 60)
    sent = len(register.drafts)
    register.names.clear()
    register.words, register.drafts = WORDS, []
    register.saved.clear()
    solution = await asyncio.wait_for(work(site[1], Waiting(register), depth=1, replay=tmp_path / "run", approve=person), 60)
    assert sent and (register.names, solution.answer, solution.result.touched) == (["Ann"], "done", 0)
    assert [each.kind for each in person.questions] == ["way"] and 0 < len(register.drafts) <= sent
    assert f"POST {site[1]}draft with name, by step 2" in person.questions[0].text


async def test_another_request_than_the_one_that_was_agreed_to_is_not_sent(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int]
) -> None:
    register.action, person = "/delete", Asked()
    solution = await work(site[1], replay=earlier[0], approve=person)
    assert register.names == []
    assert [each.kind for each in person.questions][:2] == ["way", "write"] and person.questions[1].url == f"{site[1]}delete"
    assert solution.result.touched


@pytest.mark.parametrize(
    ("change", "forgets"), [("same", "emptied"), ("relabelled", "emptied"), ("inserted", "emptied"), ("same", "moved")]
)
async def test_a_form_that_lost_what_was_typed_is_not_sent(
    change: str, forgets: str, register: Register, site: tuple[Register, str], earlier: tuple[Path, int]
) -> None:
    register.forgets = forgets
    register.words, register.notice = WORDS if change == "relabelled" else {}, "/seen" if change == "inserted" else ""
    solution = await work(site[1], replay=earlier[0], approve=Asked())
    assert register.names == [] and solution.answer != "done"


async def test_another_text_of_the_agent_does_not_stand_for_that_of_the_way(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int]
) -> None:
    register.words, agent = {"Name ": "Full name "}, Registrar("Eve")
    solution = await work(site[1], agent, replay=earlier[0], approve=yes)
    assert (register.names, solution.answer) == (["Ann"], "done") and agent.asked > 0
    assert solution.result.healed[0].startswith('in place of step 2, fill textbox "Name" "Ann": fill textbox "Full name" "Ann"')


async def test_another_text_is_typed_and_expected(register: Register, site: tuple[Register, str], earlier: tuple[Path, int]) -> None:
    solution = await work(site[1], replay=earlier[0], approve=yes, variables={"name": "Bob"})
    assert register.names == ["Bob"] and solution.result.followed >= 3
    with pytest.raises(exact.UsageError, match="unknown variable 'Nam': did you mean 'Name'"):
        await work(site[1], replay=earlier[0], approve=yes, variables={"Nam": "Bob"})


async def test_a_shell_lists_what_a_way_writes_and_types_and_types_another_text(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["run", "--from", str(earlier[0]), "--config", "rmcts_builtin"]
    assert await asyncio.to_thread(main, [*again, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert f"POST {site[1]}send with name" in told and "variable          Name=Ann" in told and register.names == []
    more = ["--var", "Name=Bob", "--yes", "--out", str(tmp_path / "run")]
    assert await asyncio.to_thread(main, [*again, *more]) == 0
    assert register.names == ["Bob"]
    assert next(each for each in journal(tmp_path / "run") if isinstance(each, ev.Guided)).match == "same"


async def resumed(folder: Path) -> ResultLine:
    """Resume a run in this process."""
    run, config = reopen(folder)
    agent = Registrar()
    runner = Runner(
        folder=run, config=config, open_environments=lambda task: open_environments(task, config, benchmark=False),
        build_agent=lambda *_: Agent(policy=agent, value=agent),
    )  # fmt: skip
    [line] = await runner.run()
    return line


def killed(earlier: Path, out: Path, url: str, register: Register, *, hangs: bool) -> None:
    """Kill a process that carries a way out again: as soon as its agent is asked, or when a name has come."""
    environ = {**os.environ, **({"EXACT_TEST_HANGS": "1"} if hangs else {})}
    command = (sys.executable, "-m", "tests.e2e.rerunning", str(earlier), str(out), url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"asked\n" if hangs else register.came.wait(60)
        finally:
            process.kill()


async def test_a_kill_during_a_healed_step_loses_and_repeats_nothing(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path
) -> None:
    register.notice = "/seen"
    await asyncio.to_thread(killed, earlier[0], tmp_path / "run", site[1], register, hangs=True)
    assert register.names == []
    line = await resumed(tmp_path / "run")
    assert (register.names, line.answer, line.status) == (["Ann"], "done", "judged")
    assert line.followed >= 3 and len(line.healed) == 1


async def test_a_kill_during_the_write_of_a_way_does_not_send_it_twice(
    register: Register, site: tuple[Register, str], earlier: tuple[Path, int], tmp_path: Path
) -> None:
    register.held.clear()
    await asyncio.to_thread(killed, earlier[0], tmp_path / "run", site[1], register, hangs=False)
    register.held.set()
    line = await resumed(tmp_path / "run")
    assert (register.names, line.status, line.missing) == (["Ann"], "failed", "commit")
