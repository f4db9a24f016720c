"""Journals of made-up searches: the real algorithm, fold, journal and blobs over an environment that is a table."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageDraw

from exact.action import ActionSpace, Parameter, Verb
from exact.config import Config, SearchConfig, dump
from exact.context import Argument, Evaluation, Proposal, Reflection
from exact.environments.base import SideEffect
from exact.models.base import ChatAnswer, Choice, Sampling, Usage
from exact.observation import Box, Element, Observation
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Manifest, ResultLine, RunFolder
from exact.search.base import Done, Failure, Proposed, Result, Selection, Stepped, Valued, Wait
from exact.search.tree import Node
from exact.task import Score, Task

E, T = Parameter.ELEMENT, Parameter.TEXT
ACTIONS = ActionSpace([Verb(name="click", form=(E,)), Verb(name="fill", form=(E, T)), Verb(name="stop", form=(T,), final=True)])
SIZE = (332, 214)


@dataclass
class Page:
    """One state of a made-up environment: what is on it, how good it is, and what its actions do."""

    title: str
    elements: tuple[tuple[str, str, str], ...] = ()
    """Id, role and name."""
    value: float = 0.5
    rationale: str = "Part of the instruction is still open."
    moves: dict[str, str] = field(default_factory=dict)
    """Action text -> where it leads: a page's name, or END, HELD, REFUSED, DRIFTED, BROKEN."""
    text: str = ""

    def observe(self, *, screenshot: bool = True) -> Observation:
        elements = tuple(
            Element(id=id, role=role, name=name, box=Box(16.0, 40.0 + 34 * place, 140.0, 26.0))
            for place, (id, role, name) in enumerate(self.elements)
        )
        text = self.text or "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements)
        return Observation(
            text=text,
            fingerprint=hashlib.sha256((self.title + text).encode()).hexdigest()[:16],
            url=f"http://shop.test/{self.title.lower().replace(' ', '-')[:40]}",
            title=self.title,
            elements=elements,
            screenshot=_drawn(self, elements) if screenshot else None,
        )


def _drawn(page: Page, elements: tuple[Element, ...]) -> bytes:
    image = Image.new("RGB", SIZE, "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, SIZE[0], 26), fill="#29435c")
    pen.text((10, 7), page.title[:40].encode("latin-1", "replace").decode("latin-1"), fill="white")
    for element in elements:
        assert element.box is not None
        x, y, width, height = element.box.x, element.box.y, element.box.width, element.box.height
        pen.rectangle((x, y, x + width, y + height), outline="#7d8894", fill="#eef2f6" if element.role == "button" else "white")
        pen.text((x + 8, y + 7), element.name[:22].encode("latin-1", "replace").decode("latin-1"), fill="#222222")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


SHOP: dict[str, Page] = {
    "start": Page(
        "Tea shop",
        (("3", "textbox", "Search"), ("4", "link", "Green tea"), ("5", "link", "Black tea"), ("6", "button", "Help")),
        0.4,
        "The shop is open, nothing is in the basket. The instruction names green tea, and a link with these words is visible.",
        {"click [4]": "green", "click [9]": "REFUSED", "click [5]": "black", 'fill [3] "green tea"': "typed", "click [6]": "start"},
    ),
    "typed": Page("Tea shop: green tea", (("3", "textbox", "Search"), ("7", "button", "Go")), 0.45, moves={"click [7]": "green"}),
    "green": Page(
        "Green tea",
        (("8", "spinbutton", "Quantity"), ("10", "button", "Add to basket"), ("11", "link", "Back")),
        0.62,
        "The right tea is shown; the quantity is not yet 2.",
        {'fill [8] "2"': "two", "click [10]": "basket1", "click [11]": "start"},
    ),
    "black": Page("Black tea", (("8", "spinbutton", "Quantity"), ("10", "button", "Add to basket")), 0.55, "A tea, but it is not green.",
                  {'fill [8] "2"': "DRIFTED", "click [10]": "HELD"}),
    "two": Page("Green tea, 2 packs", (("8", "spinbutton", "Quantity"), ("10", "button", "Add to basket")), 0.78,
                "Green tea, quantity 2: only the basket is missing.", {"click [10]": "basket2", 'fill [8] "3"': "BROKEN"}),
    "basket1": Page("Basket: 1 pack", (("12", "button", "Pay"),), 0.3, "One pack instead of two.", {"click [12]": "END"}),
    "basket2": Page("Basket: 2 packs", (("12", "button", "Pay"), ("13", "button", "Empty")), 0.9, "Two packs are in the basket.",
                    {"click [12]": "END", "click [13]": "HELD"}),
}  # fmt: skip

LESSON = Reflection(
    id="a1",
    kind="policy",
    text='On a page titled "Coffee shop": after click button "Add" the quantity was still 1. Set the quantity first.',
    instruction="Buy two packs of coffee.",
    state='[8] spinbutton "Quantity"',
    action="click [10]",
    action_label='click button "Add to basket"',
    expected="success with probability 0.70",
    real="one pack; success with probability 0.20",
    surprise=-0.5,
    task="shop/coffee?seed=1",
    site="shop.test",
    run="monday",
    node=7,
    outcome=0.2,
    outcome_source="judge",
)


class Recorder:
    """Drives one search over a table of pages and journals it, as the real driver does."""

    def __init__(self, run: RunFolder, task: Task, config: Config, environment: dict[str, Page], *, screenshots: bool = True) -> None:
        ticks = itertools.count()
        self.run, self.environment, self.task, self.screenshots = run, environment, task, screenshots
        self.state = AttemptState(config)
        self.journal = Journal(run.task_folder(task) / "journal.jsonl", clock=lambda: next(ticks) * 0.25)
        self.pages: dict[int, Page] = {}
        self.called: set[tuple[str, int]] = set()
        self.broken = 0

    def write(self, event: Any) -> None:
        self.state.apply(self.journal.write(event))

    def begin(self) -> None:
        self.write(ev.Opened(schema=ev.SCHEMA, task=self.task, seed=0, config="c0ffee", versions={"exact": "0.1.0", "python": "3.11"}))
        page = self.environment["start"]
        blob, shot = self.run.blobs.put_observation(page.observe(screenshot=self.screenshots))
        self.write(ev.Reset(instruction=self.task.instruction, fingerprint=page.observe().fingerprint, observation=blob, screenshot=shot))
        self.pages[0] = page

    def search(self) -> str:
        while True:
            answer = self.ask()
            if isinstance(answer, Done):
                return answer.reason
            assert isinstance(answer, Selection)
            self._fulfil(answer)

    def ask(self) -> Selection | Wait | Done:
        answer = self.state.search.algorithm.ask(self.state.search.tree)
        self.write(ev.Asked(answer=answer))
        return answer

    def _fulfil(self, selection: Selection) -> None:
        node = self.state.search.tree.nodes[selection.node]
        for need in selection.needs:
            if need == "step":
                result = self._step(node, selection.edge or 0)
            elif need == "value":
                child = node.edges[selection.edge].child if selection.edge is not None else node
                assert child is not None
                result = self._value(child)
            else:
                result = self._propose(node)
            if isinstance(result, Failure) and result.kind in ("environment", "model"):
                self.write(ev.Failed(what=result.kind, node=node.id, reason=result.reason))
            self.write(ev.Told(selection=selection.id, result=result))
            if selection.id not in self.state.search.tree.open:
                return

    def _step(self, node: Node, edge: int) -> Result:
        action = node.edges[edge].action
        leads = self.pages[node.id].moves.get(action.key, "REFUSED")
        if leads == "BROKEN":
            return Failure(kind="environment", reason="the browser closed the connection")
        drifted = leads == "DRIFTED"
        self.write(
            ev.Arrived(
                node=node.id, route="replay", match="drifted" if drifted else "exact", transitions=node.depth, resets=1, seconds=0.21,
                reason="another state was there: its title differs" if drifted else "",
            )
        )  # fmt: skip
        if drifted:
            return Failure(kind="drifted", reason="another state was there: its title differs")
        if leads == "REFUSED":
            refused = f"there is no element [{action.elements[0]}]"
            self.write(ev.Acted(node=node.id, edge=edge, action=action.key, refused=refused))
            return Failure(kind="action", reason=refused)
        seen, held = self._seen(leads), leads == "HELD"
        effects = (SideEffect(kind="blocked", method="POST", url="http://shop.test/basket", detail="write held back"),) if held else ()
        self.write(ev.Acted(node=node.id, edge=edge, action=action.key, effects=effects, seconds=0.18, **seen))
        if leads in self.environment:
            self.pages[len(self.state.search.tree.nodes)] = self.environment[leads]
        seen.pop("effects", None)
        return Stepped(blocked=held, **({"fingerprint": ""} | seen))

    def _seen(self, leads: str) -> dict[str, Any]:
        if leads in ("END", "HELD"):
            return {"terminated": leads == "END"}
        observation = self.environment[leads].observe(screenshot=self.screenshots)
        blob, shot = self.run.blobs.put_observation(observation)
        return {"fingerprint": observation.fingerprint, "observation": blob, "screenshot": shot}

    def _value(self, node: Node) -> Result:
        if node.id == 0 and not self.broken:
            self.broken += 1
            return Failure(kind="model", reason="the model did not answer: 500 Internal Server Error")
        page = self.pages.get(node.id)
        if page is None:
            before = self.pages[node.parent.id] if node.parent else self.environment["start"]
            value = min(1.0, before.value + 0.05) if node.terminated else before.value / 2
            return Valued(evaluation=Evaluation(value=value, rationale=f"Judged from {before.title!r} and the last action."))
        samples = tuple(round(min(1.0, max(0.0, page.value + delta)), 2) for delta in (-0.1, 0.0, 0.1))
        self._call("value", node, page.observe(screenshot=False).text, f"Value: {page.value}")
        return Valued(evaluation=Evaluation(value=page.value, rationale=page.rationale, samples=samples, disagreement=0.082))

    def _propose(self, node: Node) -> Result:
        page, k = self.pages[node.id], self.state.search.algorithm.k  # type: ignore[attr-defined]
        if node.id == 0:
            self.write(ev.Recalled(node=0, kind="policy", memory="v1", reflections=(LESSON,)))
        self._call("policy", node, page.observe(screenshot=False).text, "\n".join(page.moves))
        moves = list(page.moves)[:k] or ['stop "done"']
        weights = [1 / (place + 1) for place in range(len(moves))]
        return Proposed(
            proposals=tuple(
                Proposal(
                    action=ACTIONS.parse(move), prior=weight / sum(weights), rationale=f"Option {place + 1}: its words are in the goal."
                )
                for place, (move, weight) in enumerate(zip(moves, weights, strict=True))
            )
        )

    def _call(self, role: str, node: Node, prompt: str, said: str) -> None:
        if (role, node.id) in self.called or node.id > 3:
            return
        self.called.add((role, node.id))
        usage = Usage(input_tokens=812, output_tokens=64, cost=0.0021)
        answer = ChatAnswer(
            choices=(Choice(text=said, finish="stop"),), usage=usage, model="made-up-1", raw='{"object": "chat.completion"}'
        )
        content = [
            {"role": "system", "parts": [{"text": f"You are the {role}."}]},
            {"role": "user", "parts": [{"text": prompt}, {"image": "ab" * 32}]},
        ]
        self.write(
            ev.Called(
                key=f"{role}{node.id}", role=role, node=node.id, attempt=0, prompt=f"{role}@1:3fa9c1", model="made-up-1",
                sampling=Sampling(), request=self.run.blobs.put(msgspec.json.encode(content)),
                answer=self.run.blobs.put(msgspec.json.encode(answer)), usage=usage, seconds=1.4,
            )
        )  # fmt: skip

    def commit(self, *, otherwise: str = "", blocked: str = "") -> bool:
        """Search, decide, do. Return True if the episode goes on.

        otherwise: the page that the real environment shows instead. blocked: why its write is not sent.
        """
        stopped = self.search()
        decision = self.state.search.algorithm.decide(self.state.search.tree)
        root, index = self.state.search.tree.root, decision.edges[0]
        action = root.edges[index].action
        self.write(ev.Decided(step=len(self.state.live.committed), action=action.key, decision=decision, stopped=stopped))
        leads = otherwise or self.pages[root.id].moves[action.key]
        seen, child = self._seen(leads), root.edges[index].child
        agrees = None if child is None or child.blocked else child.fingerprint == seen.get("fingerprint", "")
        effects = (SideEffect(kind="request", method="POST", url="http://shop.test/pay", status=201),) if leads == "END" else ()
        if blocked:
            effects = (SideEffect(kind="blocked", method="POST", url="http://shop.test/pay", write=False, detail=blocked),)
        self.write(
            ev.Committed(
                step=len(self.state.live.committed),
                edge=index,
                action=action.key,
                agrees=agrees,
                effects=effects,
                seconds=0.3,
                info={"declined": blocked} if blocked else {},
                **seen,
            )
        )
        if leads in self.environment:
            self.pages[self.state.search.tree.root.id] = self.environment[leads]
        return not self.state.search.tree.root.terminated

    def end(self, score: Score | None) -> None:
        self.write(ev.Ended(reason="the episode ended"))
        self.write(ev.Judged(evaluation=Evaluation(value=0.95, rationale="Paid for two packs of green tea.")))
        self.write(ev.Reflected(reflection=msgspec.structs.replace(LESSON, id="b2", run="today", task=self.task.id)))
        if score is not None:
            self.write(ev.Scored(score=score))
        self.write(ev.Finished(status="scored" if score else "judged", reason="the episode ended"))


def new_run(folder: Path, *ids: str, instruction: str = "Buy two packs of green tea.", **search: Any) -> tuple[RunFolder, Config]:
    found = {"iterations": 24, "k": 5, "c": 1.5, "revisit": "repeat", "final": "visits"} | search
    config = Config(name="rmcts_builtin", search=SearchConfig(**found))
    tasks = tuple(Task(id=id, instruction=instruction, start="http://shop.test/") for id in ids)
    return RunFolder.create(folder, Manifest(tasks=tasks, agent=config.name), dump(config)), config


def shop_run(
    folder: Path,
    *,
    score: Score | None = Score(value=1.0, success=True, raw=0.93),  # noqa: B008
    environment: dict[str, Page] = SHOP,
) -> RunFolder:
    """Write a finished run over the tea shop with every kind of state."""
    run, config = new_run(folder, "shop/tea?seed=1")
    recorder = Recorder(run, run.manifest.tasks[0], config, environment)
    recorder.begin()
    while recorder.commit() and len(recorder.state.live.committed) < 6:
        pass
    recorder.end(score)
    recorder.journal.close()
    return run


ANSWER = "Order 4711: two packs of green tea."


SOLVED = Score(value=1.0, success=True)
DOWN = "http://localhost:8000/v1 does not answer (connection refused): is the model server running?"


def solved_run(folder: Path) -> RunFolder:
    """Write a run that solves its task and answers."""
    return ended_run(folder, "the agent stopped", answer=ANSWER, score=SOLVED)


def failed_run(folder: Path) -> RunFolder:
    """Write a run whose model no longer answers after two steps."""
    return ended_run(folder, "", steps=2, finished=ev.Finished(status="failed", reason=DOWN, missing="model"))


def refused_run(folder: Path) -> RunFolder:
    """Write a run in which a person does not let the last write out."""
    return ended_run(folder, "no action is left: every action was tried", steps=3, blocked="a person refused it")


def long_run(folder: Path) -> RunFolder:
    """Write a run with more steps than a screen has room for, which ends because no action is left in its budget."""
    pages = Grown(lambda name: Page(name, (("3", "link", "Next"),), 0.5, "One of many pages.", {"click [3]": f"{name[:4]} {len(name)}+"}))
    return ended_run(folder, "the task's budget of 14 actions is used up", steps=14, pages=pages)


def ended_run(folder: Path, reason: str, **more: Any) -> RunFolder:
    """Write a run that ends after some steps for a reason."""
    run, config = new_run(folder, "shop/tea?seed=1", iterations=12)
    attempt(run, run.manifest.tasks[0], config, reason, **more)
    return run


def mixed_run(folder: Path) -> RunFolder:
    """Write a run with an attempt for each of several ends, and its results; the last task was not started."""
    run, config = new_run(folder, *(f"shop/tea?seed={seed}" for seed in range(1, 6)), iterations=12)
    solved, failed, refused, unsolved, _ = run.manifest.tasks
    attempt(run, solved, config, "the agent stopped", answer=ANSWER, score=SOLVED)
    attempt(run, failed, config, "", steps=2, finished=ev.Finished(status="failed", reason=DOWN, missing="model"))
    attempt(run, refused, config, "no action is left: every action was tried", steps=3, blocked="a person refused it")
    attempt(run, unsolved, config, "the task's budget of 3 actions is used up", steps=3, score=Score(value=0.0, success=False))
    spent, tried = "the task's budget of 3 actions is used up", "no action is left: every action was tried"
    lines = {
        solved.id: {"status": "scored", "score": 1.0, "answer": ANSWER, "reason": "the agent stopped"},
        failed.id: {"status": "failed", "reason": DOWN, "missing": "model"},
        refused.id: {"status": "judged", "value": 0.8, "reason": tried},
        unsolved.id: {"status": "scored", "score": 0.0, "reason": spent, "score_reason": "Nothing was paid."},
    }
    for id, more in lines.items():
        run.add_result(ResultLine(task=id, seed=0, agent=config.name, actions=3, calls=9, tokens=7_884, cost=0.0189, seconds=41.3, **more))  # type: ignore[arg-type]
    return run


def attempt(
    run: RunFolder, task: Task, config: Config, reason: str, *, steps: int = 4, answer: str | None = None, score: Score | None = None,
    blocked: str = "", finished: ev.Finished | None = None, pages: dict[str, Page] = SHOP,
) -> None:  # fmt: skip
    """Write an attempt that ends after some steps for a reason."""
    recorder = Recorder(run, task, config, pages)
    recorder.begin()
    for _ in range(steps):
        recorder.commit()
    if blocked:
        recorder.commit(otherwise="basket2", blocked=blocked)
    if finished is None:
        recorder.write(ev.Ended(reason=reason, answer=answer))
        recorder.write(ev.Judged(evaluation=Evaluation(value=0.8, rationale="Two packs of green tea.")))
        if score is not None:
            recorder.write(ev.Scored(score=score))
    recorder.write(finished or ev.Finished(status="scored" if score else "judged", reason=reason))
    recorder.journal.close()


def hostile_run(folder: Path, text: str) -> RunFolder:
    """Write a run in which every text of a page, a model and a task is `text`."""
    page = Page(text, (("3", "button", text),), 0.5, text, {f"fill [3] {msgspec.json.encode(text).decode()}": "other"}, text)
    other = Page(f"{text} 2", (("3", "button", text),), 0.9, text, {"click [3]": "END"}, f"{text}\n2")
    run, config = new_run(folder, "hostile", instruction=text, iterations=4)
    recorder = Recorder(run, run.manifest.tasks[0], config, {"start": page, "other": other})
    recorder.begin()
    recorder.commit()
    recorder.commit()
    recorder.end(None)
    recorder.journal.close()
    return run


DEBATED = Evaluation(
    value=0.6, rationale="More speaks for it.", samples=(0.7, 0.5), disagreement=0.1, order_effect=0.2, between=0.1,
    arguments=(Argument(side="for", text="The door is open."), Argument(side="against", text="The key is missing.")),
    judges=("judge-a: 0.70", "judge-b: 0.50"),
)  # fmt: skip


def debate_run(folder: Path) -> RunFolder:
    """Write an unfinished run whose first state was evaluated in a debate."""
    run, config = new_run(folder, "debate", iterations=1)
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP, screenshots=False)
    recorder._value = lambda node: Valued(evaluation=DEBATED)  # type: ignore[method-assign]
    recorder.begin()
    recorder.search()
    recorder.journal.close()
    return run


class Grown(dict[str, Page]):
    """An environment without end: each page has five links to pages never seen before."""

    def __init__(self, drawn: Callable[[str], Page]) -> None:
        super().__init__()
        self.drawn = drawn

    def __contains__(self, name: object) -> bool:
        return str(name) not in ("END", "HELD", "REFUSED", "DRIFTED", "BROKEN")

    def __missing__(self, name: str) -> Page:
        self[name] = self.drawn(name)
        return self[name]


def grown_run(folder: Path, states: int, *, drawn: Callable[[str], Page], screenshots: bool = True) -> RunFolder:
    """Write an unfinished run with about that many states."""
    run, config = new_run(folder, "grown", iterations=states, c=4.0, depth=5)
    recorder = Recorder(run, run.manifest.tasks[0], config, Grown(drawn), screenshots=screenshots)
    recorder.begin()
    recorder.search()
    recorder.journal.close()
    return run
