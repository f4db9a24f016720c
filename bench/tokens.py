"""Count the prompt tokens of a search: what our agents send for each state, and what ExACT's layout would send for the same states.

A random policy with the built-in value function searches tasks (20 iterations, 5 actions a state). The policy of each row is then asked at
every expanded state, and its value function at every evaluated one, by a model that answers in the right form and counts. Judgements are
simulated (bench/_simulated_judge.py), so adaptive value functions ask as often as the spread of their answers wants.

ExACT's rows follow its settings for VisualWebArena: the policy is shown the text (at most 3,840 tokens) and the screenshot of each state
of the path; a debate has two debaters and two judges, which are shown the first screenshot, at most four in the middle and the last. A
screenshot of 1280 x 2048 pixels has 1,105 tokens. Its instructions and examples count nothing, so the rows are lower bounds. In the row
"text" there are no screenshots but the texts in their place.

Rows of pictures: a policy that is asked in a conversation, and a judge that compares a state with the one before it, are shown screenshots.
A screenshot that stood in the request before is named, and not sent again.

Tokens are estimated by one rule for all rows. The cacheable share is that of prompt tokens in a beginning that an earlier request of
the run had too.

    python bench/tokens.py [--quick] [--run FOLDER] [--json FILE]
"""

from __future__ import annotations

import asyncio
import bisect
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import _common
import msgspec
from _simulated_judge import SimulatedJudge

from exact.action import ActionSpace
from exact.agents.agent import build_agent
from exact.calibration.collect import Source, open_source
from exact.config import parse
from exact.context import Context
from exact.errors import AnswerError
from exact.learning.attempts import attempts
from exact.learning.states import action_space
from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Message, Text, Usage
from exact.models.tokens import count, picture, size
from exact.runs.journal.store import RunFolder
from exact.text import use_fence_key

MINIWOB = (
    "click-tab-2", "login-user", "navigate-tree", "click-checkboxes-large", "email-inbox", "book-flight", "search-engine", "choose-list",
    "use-autocomplete", "social-media", "click-collapsible-2", "enter-date",
)  # fmt: skip
SITES = ("trac/1", "trac/5", "trac/9", "wagtail/1", "wagtail/5", "wagtail/9")
QUICK = 3
ITERATIONS, K = 20, 5
AGENTS: dict[str, dict[str, object]] = {
    "default": {},
    "debate": {"value": {"kind": "debate"}},
    "logprob": {"value": {"kind": "logprob"}},
    "default, changes": {"value": {"kind": "cascade", "changes": True}},
    "debate, changes": {"value": {"kind": "debate", "changes": True}},
    "logprob, changes": {"value": {"kind": "logprob", "changes": True}},
}
PICTURES: dict[str, dict[str, object]] = {
    "conversation, pictures": {"policy": {"kind": "llm", "form": "conversation"}, "view": {"images": True}},
    "comparative, pictures": {"value": {"kind": "comparative"}, "view": {"images": True}},
}
TEXT_TOKENS, SCREEN, MIDDLE, ARGUMENT = 3840, (1280, 2048), 4, 130
"""ExACT's tokens of a state's text, pixels of a screenshot, screenshots in the middle of a judged path, and tokens of an argument."""


class Asked(NamedTuple):
    """One state of a search, and who is asked there."""

    context: Context
    actions: ActionSpace
    answers: tuple[str, ...]
    """Actions of the state, as a policy's answers."""
    expanded: bool
    evaluated: bool
    value: float


class Row(NamedTuple):
    """The requests of one agent."""

    name: str
    calls: int
    policy: int
    value: int
    """Prompt tokens of the policy and of the value function."""
    cacheable: float | None
    shown: int = 0
    pictures: int = 0
    """Tokens of all pictures that the requests show, and of those that are sent."""

    @property
    def total(self) -> int:
        return self.policy + self.value


class Counting:
    """A ChatModel that answers in the right form, and keeps what it was sent."""

    name, price = "simulated/counting", None

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._answers = [each.answers for each in asked]
        self._judge = SimulatedJudge([each.value for each in asked])
        self.sent: list[tuple[str, str, int]] = []
        """Role, text and tokens of each request."""
        self.shown = self.pictures = 0
        """As in `Row`."""

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        sent = request.sent()
        text = "\n".join(part.text for message in sent for part in message.parts if isinstance(part, Text))
        pictures = priced(sent)
        if not request.attempt:  # an action that changes nothing is refused: a policy of ours would name another one
            self.sent.append((request.role, text, count(text) + pictures))
            self.shown += priced(request.messages)
            self.pictures += pictures
        compares = request.prompt.startswith("compare@")
        if request.role != "policy" and not compares:
            return await self._judge.complete(request)
        answers = ("Better: first",) if compares else self._answers[request.node]
        choice = Choice(text=answers[request.attempt % len(answers)], finish="stop")
        return ChatAnswer(choices=(choice,) * request.sampling.n, usage=Usage(), model=self.name, raw="")

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def priced(messages: Sequence[Message]) -> int:
    """Return the tokens of the pictures in messages."""
    return sum(picture(*size(part.data)) for message in messages for part in message.parts if isinstance(part, Image))


def record(folder: Path, tasks: Sequence[str], transitions: int) -> None:
    """Search tasks with a random policy and the built-in value function, into a folder."""
    settings = [
        f"search.iterations={ITERATIONS}",
        f"search.k={K}",
        "limits.actions=3",
        f"limits.transitions={transitions}",
        "limits.seconds=900",
        "policy.kind=random",  # the built-in policy names one action where it is sure
        "value.kind=lexical",
        "browser.screenshots=true",
    ]
    config = _common.ROOT / "shells" / "configs" / "rmcts_builtin.yaml"
    command = [sys.executable, "-m", "exact.cli", "run", *tasks, "--config", str(config), "--out", str(folder)]
    subprocess.run([*command, *(part for each in settings for part in ("--set", each))], check=False, stdout=sys.stderr)


def states(source: Source) -> Iterator[Asked]:
    """Yield the states of a run's searches in the order in which they were made."""
    for attempt in attempts(source.folder, [task for task, _ in source.attempts]):
        actions = action_space(attempt)
        for node in attempt.state.search.tree.nodes:
            judged = node.evaluation is not None and not node.evaluation.unjudged
            if not (node.edges or judged):
                continue
            seen = attempt.context(node)
            chosen = tuple(f"Thought.\nAction: {edge.action.key}" for edge in node.edges)
            yield Asked(seen, actions, chosen, bool(node.edges), judged, node.evaluation.value if node.evaluation else 0.5)


async def ours(name: str, settings: dict[str, object], asked: Sequence[Asked]) -> Row:
    """Ask the policy and the value function of one configuration at all states."""
    named: dict[str, object] = {"policy": {"kind": "llm"}, "models": {"policy": {"model": "simulated"}}, "reflection": {"kind": "none"}}
    model = Counting(asked)
    agent = build_agent(parse(named | settings), lambda role: model)
    for index, each in enumerate(asked):
        context = msgspec.structs.replace(each.context, node=index)
        if each.evaluated:
            await agent.value.evaluate(context)
        if each.expanded:
            with suppress(AnswerError):  # each action of a random policy may change nothing; the request is counted
                await agent.policy.propose(context, each.actions, K)
    policy = sum(tokens for role, _, tokens in model.sent if role == "policy")
    total = sum(tokens for _, _, tokens in model.sent)
    return Row(name, len(model.sent), policy, total - policy, cacheable([text for _, text, _ in model.sent]), model.shown, model.pictures)


def cacheable(texts: Sequence[str]) -> float:
    """Return the share of the tokens of prompts that stand in a beginning which an earlier prompt has too."""
    earlier: list[str] = []
    shared = total = 0
    for text in texts:
        at = bisect.bisect_left(earlier, text)
        near = earlier[max(0, at - 1) : at + 1]
        beginning = max((common(text, each) for each in near), default=0)
        shared += count(text[:beginning])
        total += count(text)
        earlier.insert(at, text)
    return shared / total if total else 0.0


def common(first: str, second: str) -> int:
    """Return the length of the beginning that two texts share."""
    return next((at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), min(len(first), len(second)))


def exact_layout(name: str, asked: Sequence[Asked], *, pictures: bool) -> Row:
    """Count what ExACT would send at the same states."""
    calls = policy = value = 0
    screen = picture(*SCREEN)
    for each in asked:
        path = [*(step.observation for step in each.context.history), each.context.observation]
        texts = [min(TEXT_TOKENS, count(observation.text)) for observation in path]
        goal, acted = count(each.context.instruction), sum(count(step.action.key) for step in each.context.history)
        if each.expanded:
            calls += 1
            policy += goal + acted + sum(texts) + (screen * len(path) if pictures else 0)
        if each.evaluated:
            calls += 4
            judged = path[:1] + path[1:-1][-MIDDLE:] + path[-1:] if len(path) > 1 else path
            shown = sum(screen if pictures else min(TEXT_TOKENS, count(one.text)) for one in judged)
            value += 4 * (goal + acted + shown) + 2 * 2 * ARGUMENT
    return Row(name, calls, policy, value, None)


async def main() -> int:
    parser, noise = _common.parser(__doc__ or ""), _common.Noise()
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="ask at the states of this run, which is made if it does not exist")
    options = parser.parse_args()
    noise.probe()
    tasks = [f"miniwob/{name}?seed=20" for name in (MINIWOB[:QUICK] if options.quick else MINIWOB)]
    with tempfile.TemporaryDirectory(prefix="exact-bench-") as folder:
        run = options.run or Path(folder) / "run"
        if not run.exists():
            record(run, tasks if options.quick else [*tasks, *SITES], 25 if options.quick else 300)
        source = open_source(RunFolder.open(run))
        asked = list(states(source))
    noise.probe()
    with use_fence_key(secrets.token_hex(16)):  # as an attempt does
        rows = [await ours(name, settings, asked) for name, settings in (AGENTS | PICTURES).items()]
    rows += [exact_layout("ExACT", asked, pictures=True), exact_layout("ExACT, text", asked, pictures=False)]
    expanded, evaluated = sum(each.expanded for each in asked), sum(each.evaluated for each in asked)
    depth = statistics.fmean(len(each.context.history) for each in asked)
    print(f"{len(source.attempts)} searches: {expanded} states expanded, {evaluated} evaluated, at a mean depth of {depth:.1f}\n")
    _common.table(
        ["agent", "calls", "tokens of the policy", "of the value function", "in all", "a state", "cacheable", "pictures shown", "sent"],
        [
            [
                row.name, str(row.calls), str(row.policy), str(row.value), str(row.total), f"{row.total / len(asked):.0f}",
                "-" if row.cacheable is None else f"{row.cacheable:.0%}", str(row.shown or "-"), str(row.pictures or "-"),
            ]
            for row in rows
        ],
    )  # fmt: skip
    by_name = {row.name: row for row in rows}
    figures = [_common.Figure("states", len(asked))]
    for name in PICTURES:
        row = by_name[name]
        figures.append(_common.Figure(f"pictures_sent_of_shown_{name.partition(',')[0]}", row.pictures / row.shown))
    if not options.quick:  # the three tasks of the quick form are small pages, whose shares are others
        figures += [
            _common.Figure("cacheable_share_changes", by_name["default, changes"].cacheable or 0.0),
            _common.Figure("tokens_vs_exact", by_name["default"].total / by_name["ExACT"].total, goal=0.4, at_least=False),
            _common.Figure("tokens_vs_exact_text", by_name["default"].total / by_name["ExACT, text"].total),
            _common.Figure("debate_tokens_vs_exact", by_name["debate"].total / by_name["ExACT"].total),
            _common.Figure("cacheable_share", by_name["default"].cacheable or 0.0, goal=0.75),
        ]
    details = {"tasks": [task.id for task, _ in source.attempts], "states": len(asked), "rows": [row._asdict() for row in rows]}
    _common.finish(options, figures, noise, _common.versions("exact-agent"), details)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
