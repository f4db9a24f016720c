"""Nodes that lie: each lie is a failure of its own attempt, which is rerun, and no other attempt notices. The tests do not need Ray."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from exact.errors import InfrastructureError, JournalError
from exact.evaluation.remote import delivery, engine
from exact.evaluation.remote.delivery import DeliveryItem
from exact.evaluation.remote.engine import RayEngine
from exact.evaluation.remote.mailbox import AttemptMailbox, RateCounter
from exact.evaluation.schedule import Schedule
from exact.runs.journal.events import SCHEMA
from tests.evaluation.remote.lying import Lie, LyingNode, LyingRay
from tests.evaluation.toys import settings, toy_bench

OTHERS = b'{"event":"opened","t":0.0,"schema":%d,"task":{"id":"other","instruction":""},"seed":0,"config":""}\n' % SCHEMA
TOO_NEW = OTHERS.replace(b'"schema":%d' % SCHEMA, b'"schema":99')
ESCAPES = "\x1b]0;owned\x07" * 9000

ITEMS: dict[str, Any] = {
    "a number": 7,
    "a text": "journal",
    "items that are none": [7, None],
    "an unknown kind": [("evil", "", b"x")],
    "a text for bytes": [("journal", "", "aGk=")],
    "a name that is none": [("blob", b"ab", b"x")],
    "no JSON": [DeliveryItem("journal", data=b"\x00\xff nonsense\n")],
    "an unknown event": [DeliveryItem("journal", data=b'{"event":"owned","t":0.0}\n')],
    "deep JSON": [DeliveryItem("journal", data=b'{"event":"opened","task":' + b"[" * 200_000 + b"\n")],
    "half a line": [DeliveryItem("journal", data=OTHERS[:-1])],
    "a journal of another task": [DeliveryItem("journal", data=OTHERS)],
    "a newer journal": [DeliveryItem("journal", data=TOO_NEW)],
    "a blob of another name": [DeliveryItem("blob", hashlib.sha256(b"x").hexdigest(), b"y")],
    "a blob elsewhere": [DeliveryItem("blob", "../../../../owned", b"x")],
    "a file elsewhere": [DeliveryItem("file", "../../results.jsonl", b"x")],
    "a file at the root": [DeliveryItem("file", "/no-such-folder/owned", b"x")],
    "the journal as a file": [DeliveryItem("file", "journal.jsonl", b"x")],
    "a file with a long name": [DeliveryItem("file", "a" * 5000, b"x")],
    "a file with an empty name": [DeliveryItem("file", "", b"x")],
    "an endless log": [DeliveryItem("log", data=b"x" * 60_000)] * 20,
    "too many files": [DeliveryItem("file", f"a{number}", b"") for number in range(2000)],
    "a node with a long name": [DeliveryItem("begun", ESCAPES), DeliveryItem("journal", data=b"nonsense\n")],
}
"""What is put into the mailbox as the first batch."""

OUTCOMES: dict[str, Any] = {
    "nothing": None,
    "too little": ("done",),
    "other types": ("done", "{}", "1"),
    "no JSON": ("done", b"\xff", 0),
    "another result": ("done", b'{"task":"other","seed":0,"agent":"mcts","status":"scored","score":1.0}', 0),
    "a score above 1": ("done", b'{"task":"TASK","seed":0,"agent":"mcts","status":"scored","score":7}', 0),
    "a negative cost": ("done", b'{"task":"TASK","seed":0,"agent":"mcts","status":"scored","score":1,"cost":-9e9}', 0),
    "a status that is none": ("done", b'{"task":"TASK","seed":0,"agent":"mcts","status":"owned"}', 0),
    "a long answer": ("done", b'{"task":"TASK","seed":0,"agent":"mcts","status":"scored","score":1,"answer":"' + b"x" * 99_000 + b'"}', 0),
    "an error that is none": ("owned", b"x", 0),
    "an error of its journal": ("JournalError", b"the disk is full", 0),
    "a long error": ("EnvironmentFailure", ESCAPES.encode() + b"\xff", 0),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set bounds that attacks reach with little data."""
    monkeypatch.setattr(delivery, "BATCH", 2_000_000)
    monkeypatch.setattr(delivery, "MOST_ITEM", 100_000)
    monkeypatch.setattr(delivery, "MOST", 1_000_000)
    monkeypatch.setattr(engine, "MOST_OUTCOME", 50_000)


def files(path: Path) -> set[Path]:
    return set(path.rglob("*"))


async def lied(path: Path, *lies: Lie, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a benchmark of which the first attempts at the first tasks lie, and return the reasons why they failed."""
    folder = toy_bench(path / "benchmarks" / "bench", settings("mcts"), seeds=len(lies) + 1)
    tasks = [task.id for task in folder.plan.tasks]
    ray = LyingRay(dict(zip(tasks, lies, strict=False)))
    monkeypatch.setattr(engine, "ray_module", lambda: ray)
    before = files(path)
    async with RayEngine(folder.path, hang=120, make="tests.evaluation.toys:worker") as running:
        await Schedule(folder=folder, engine=running, parallel=4).run()
    failed = {each.task: each for each in folder.attempts() if each.status == "failed"}
    assert ray.lies == {} and failed.keys() == {*tasks[:-1]}
    assert [(each.number, each.hung) for each in failed.values()] == [(1, False)] * len(lies)
    assert [(each.attempts, each.status) for each in folder.results()] == [(2, "scored")] * len(lies) + [(1, "scored")]
    assert {each for each in files(path) if not each.is_relative_to(folder.path)} <= before
    assert not {each.name for each in files(path)} & {"owned", "errors.log"}
    reasons = [failed[task].reason for task in tasks[:-1]]
    assert all(len(reason) < 3000 and "\x1b" not in reason for reason in reasons)
    return reasons


def sending(items: Any) -> Lie:
    """Return what sends items, and then nothing."""

    async def lie(node: LyingNode) -> object:
        await node.put(node.token, 0, items)
        await asyncio.sleep(600)
        return None

    return lie


def answering(answer: Any) -> Lie:
    """Return what sends nothing, and answers."""

    async def lie(node: LyingNode) -> object:
        match answer:
            case (str(), bytes() as data, int()):
                return answer[0], data.replace(b"TASK", node.parcel.task.encode()), answer[2]
        return answer

    return lie


async def twice(node: LyingNode) -> object:
    async def send(number: int, items: Any) -> None:
        await node.put(node.token, number, items)
        await node.put(node.token, number, items)

    return await node.true(send)


async def in_other_names(node: LyingNode) -> object:
    for token in (*range(5), [1], None, b"x", "x" * 100_000, *(f"{number:032x}" for number in range(5))):
        await node.put(token, 0, [DeliveryItem("journal", data=b"nonsense\n")])
    return None


async def test_batches_that_no_attempt_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = await lied(tmp_path, twice, in_other_names, *map(sending, ITEMS.values()), monkeypatch=monkeypatch)
    assert "sent part 0 of its journal where 1 was expected" in reasons[0]
    assert "outcome" in reasons[1] and all(" sent " in reason for reason in reasons[2:])


async def test_outcomes_that_no_attempt_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await lied(tmp_path, *map(answering, OUTCOMES.values()), monkeypatch=monkeypatch)


async def test_more_or_fewer_parts_than_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "GRACE", 0.1)
    delivered = engine._Delivery(None, batches=3)
    running = RayEngine.__new__(RayEngine)
    running._receiving = None
    for count in (10**30, 4, 2, 0, -1):
        with pytest.raises(InfrastructureError, match=f"of {count} parts"):
            await running._arrived(delivered, count)


async def test_what_it_logs_has_no_effect_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lie(node: LyingNode) -> object:
        await node.put(node.token, 0, [DeliveryItem("log", data=b"caf\xc3"), DeliveryItem("log", data=b"\xa9 \x1b[2J\x9b\xff\n")])
        return None

    await lied(tmp_path, lie, monkeypatch=monkeypatch)
    log = (tmp_path / "benchmarks" / "bench" / "agents" / "mcts" / "guest.log").read_text()
    assert "café ␛[2J" in log and not set(log) & set("\x1b\x9b")


async def test_a_mailbox_that_is_lost_ends_the_benchmark_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(self: AttemptMailbox) -> object:
        raise LyingRay.RayError("the actor died")

    monkeypatch.setattr(AttemptMailbox, "take", lost)
    with pytest.raises(JournalError, match="the actor died"):
        await lied(tmp_path, sending([]), monkeypatch=monkeypatch)


async def test_a_large_batch_does_not_get_into_the_mailbox() -> None:
    mailbox = AttemptMailbox()
    with pytest.raises(ValueError, match="bytes"):
        await mailbox.put("x", 0, [DeliveryItem("log", data=b"x" * 3_000_000)])


@pytest.mark.parametrize("given", [(float("nan"), 0.0, 0.0), (0.0, float("inf"), 0.0), (0.0, 0.0, float("inf")), (0.0, 0.0, 1e9)])
async def test_an_amount_that_is_none_leaves_the_rates_of_others(given: tuple[float, float, float]) -> None:
    counter = RateCounter()
    with pytest.raises(ValueError, match="amount"):
        await counter.take("endpoint", (60.0, 1000.0), *given)
    assert await counter.take("endpoint", (60.0, 1000.0), 1.0, 1.0, 0.0) == 0.0
