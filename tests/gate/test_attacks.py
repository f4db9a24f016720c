"""Attacks on what leaves a browser, is stored, or harms a neighbour. They were written from docs/security.md alone, before the gate."""

from __future__ import annotations

import asyncio
import html
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from PIL import Image

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.config import LoginConfig, parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.page import timeouts
from exact.environments.sites.site import Outside
from exact.errors import ActionError, EnvironmentFailure
from exact.report import build_report
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.safety.attack import CONFIG, Campaign, sampled

from .attack import SECRET, Attack, leaked, put
from .attacks_files import ATTACKS as FILES
from .attacks_files import Spelling
from .attacks_neighbours import ATTACKS as NEIGHBOURS
from .attacks_secrets import ATTACKS as SECRETS
from .attacks_writes import ATTACKS as WRITES
from .attacks_writes import PLAIN
from .neighbour import QUIET, Came, begun, suffer
from .sites import NAMES, Sites, sites

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOT_PROMISED = {
    "reaches another site": "chunks_of_a_script_host script_after_a_reload",
    "stands in files": """
        pairs_backwards_in_cells lookalikes braille_in_the_title every_second_letter name_of_a_download dialog address_of_the_page
        letters_in_another_order
    """,
}
"""Attacks that succeed, and that docs/security.md does not promise to stop. Each is expected to fail, strictly."""
SLOW_TODAY = "frames_of_other_sites_churned refused_from_workers popups streams_without_end blobs"
"""Heavy pages that delay the neighbour today, more or less by how busy the machine is. These are expected to fail, but not strictly."""
EVERY = 3
"""One attack out of so many is carried out with each change, and all of them where EXACT_ALL_ATTACKS is set."""
AT_ONCE = 3
PAGE = 5.0
"""Time limit of a page in seconds."""


def written(attack: Attack, made: Sites) -> str:
    """Return the write that reached the own site."""
    for each in made.of(attack.name):
        if each.site == "own" and re.search(attack.sign, each.raw.decode("latin-1")):
            return f"{each.method} {each.target[:90]}"
    return ""


async def carry_out(attack: Attack, made: Sites, factory: EnvironmentFactory, *, simulation: bool) -> Came:
    """Open an attack's page in an environment, act, and wait until the page says that it is over. Return what came."""
    start, judge, refused = put(attack, made), written if attack.sign else leaked, ""
    origins = tuple(made.origins[name] for name in NAMES[1:])
    try:
        async with factory.open(simulation=simulation) as environment:
            seen = await environment.reset(Task(id=f"gate/{attack.name}", instruction="Sign in.", start=start, origins=origins))
            for act in attack.acts:
                address = re.search(re.escape(made.origins["other"]) + r"/[\w/]+", seen.text)
                text = made.filled(act.replace("{seen}", address[0] if address else made.origins["other"]), attack.name)
                verb, _, name = text.partition(" ")
                if name.startswith("["):
                    element, _, rest = name[1:].partition("]")
                    shown = [each.id for each in seen.elements if each.name == element]
                    if not shown:
                        refused = f"no {element!r} is shown"
                        break
                    text = f"{verb} [{shown[0]}]{rest}"
                try:
                    seen = (await environment.step(environment.actions.parse(text))).observation or seen
                except ActionError as error:
                    refused = str(error)
            end = time.monotonic() + attack.seconds
            while not judge(attack, made) and time.monotonic() < end:
                if any(each.path.endswith("/done") for each in made.of(attack.name)):
                    end = min(end, time.monotonic() + 0.7)
                await asyncio.sleep(0.05)
    except EnvironmentFailure as error:
        refused = str(error)
    return Came(begun(attack, made), judge(attack, made), refused)


async def carry_out_all(attacks: tuple[Attack, ...], made: Sites, *, simulation: bool) -> dict[str, Came]:
    """Carry out attacks, some at the same time. A log-in script's attack has a browser of its own."""
    login, free, found = LoginConfig(secrets={"password": "$GATE_PASSWORD"}), asyncio.Semaphore(AT_ONCE), dict[str, Came]()

    async def one(attack: Attack, factory: EnvironmentFactory) -> None:
        async with free:
            found[attack.name] = await carry_out(attack, made, factory, simulation=simulation)

    for harmless in {each.harmless for each in attacks if not each.login}:
        config = msgspec.structs.replace(CONFIG, login=login)
        async with launch(config) as browser:
            factory = BrowserFactory(browser, PageSetup(), config, isolated=False, outside=Outside(harmless=harmless))
            await asyncio.gather(*(one(each, factory) for each in attacks if each.harmless == harmless and not each.login))
    for each in attacks:
        if each.login:
            url = f"{made.origins['own']}/{each.name}/{each.login}"
            script = ('fill [textbox "Password"] "<password>"', 'click [button "Go"]')
            config = msgspec.structs.replace(CONFIG, login=msgspec.structs.replace(login, url=url, script=script))
            async with launch(config) as browser:
                await one(each, BrowserFactory(browser, PageSetup(), config, isolated=False, outside=Outside()))
    return found


@pytest.fixture(scope="module")
def made() -> Iterator[Sites]:
    with sites() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATE_PASSWORD", SECRET)
        patch.setattr(timeouts, "PAGE_TIMEOUT", PAGE)
        yield running


def chosen(attacks: tuple[Any, ...]) -> list[Any]:
    """Return the attacks of this run. Those that break today are expected to, so that their repair takes them off the list."""

    def one(attack: Any) -> Any:
        marks = [pytest.mark.xfail(strict=True, reason=harm) for harm, names in NOT_PROMISED.items() if attack.name in names.split()]
        marks += [pytest.mark.xfail(strict=False, reason="delays")] if attack.name in SLOW_TODAY.split() else []
        return pytest.param("process", attack, id=attack.name, marks=marks)

    return list(map(one, sampled(attacks, EVERY)))


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, made: Sites) -> Campaign[Came]:
    """Carry out the attacks of this run: those that send a secret in live environments, those that write in ones of a search."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Came]:
        found = await carry_out_all(tuple(each for each in SECRETS if each.name in names), made, simulation=False)
        return found | await carry_out_all(tuple(each for each in (*WRITES, PLAIN) if each.name in names), made, simulation=True)

    return Campaign(request, all_of)


async def suffer_all(attacks: tuple[Attack, ...], made: Sites) -> dict[str, Came]:
    """Carry out heavy pages one after the other. A browser that suffered is replaced."""
    found, left = dict[str, Came](), list(attacks)
    while left:
        async with launch(CONFIG) as browser:
            factory = BrowserFactory(browser, PageSetup(), CONFIG, isolated=False, outside=Outside())
            async with factory.open(simulation=True) as beside:
                seen = await beside.reset(Task(id="gate/quiet", instruction="Look around.", start=put(QUIET, made)))
                while left:
                    attack = left.pop(0)
                    found[attack.name] = await suffer(attack, made, factory, beside, seen)
                    if found[attack.name].harm:
                        break
    return found


@pytest.fixture(scope="module")
def neighbours(request: pytest.FixtureRequest, executable: str, made: Sites) -> Campaign[Came]:
    """Carry out the heavy pages."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Came]:
        return await suffer_all(tuple(each for each in NEIGHBOURS if each.name in names), made)

    return Campaign(request, all_of)


@pytest.mark.parametrize(("kind", "attack"), chosen(NEIGHBOURS))
async def test_a_page_harms_no_neighbour(neighbours: Campaign[Came], kind: str, attack: Attack) -> None:
    came = await neighbours.result(kind, attack)
    assert came.acted or came.refused
    assert came.harm == ""


class TypesTheSecret:
    """Fill in the secret, press Go, and stop."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        ids = {each.name: each.id for each in context.observation.elements}
        done = [step.action.name for step in context.history]
        text = 'stop "done"'
        if "Password" in ids and "fill" not in done:
            text = f'fill [{ids["Password"]}] "{self._text}"'
        elif "Go" in ids and "click" not in done:
            text = f"click [{ids['Go']}]"
        return (Proposal(action=actions.parse(text), prior=1.0),)

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=min(0.9, 0.1 + 0.2 * len(context.history)))


async def run(spellings: tuple[Spelling, ...], made: Sites, folder: Path, *, known: bool = True) -> dict[str, Came]:
    """Attempt a task at each page in one run, and look for the secret in the files. `known`: whether it is known to be one."""
    tasks = []
    for each in spellings:
        attack = Attack(each.name, each.page)
        tasks.append(Task(
            id=f"gate/{each.name}", instruction="Sign in.", start=put(attack, made), origins=(made.origins["other"],),
            metadata={"outside": "{}"},
        ))  # fmt: skip
    login = {"secrets": {"password": "$GATE_PASSWORD"}} if known else {}
    config = parse({
        "search": {"algorithm": "mcts", "iterations": 2, "k": 1, "depth": 3}, "reflection": {"kind": "none"}, "limits": {"actions": 3},
        "browser": {"sandbox": "never", "login": login, "html": True, "width": 700, "height": 400, "settle_seconds": 1.0},
    })  # fmt: skip
    policy = TypesTheSecret("<password>" if known else SECRET)
    kept = create(folder, tuple(tasks), config)
    runner = Runner(
        folder=kept, config=config, open_environments=lambda task: open_environments(task, config, benchmark=False),
        build_agent=lambda *_: Agent(policy=policy, value=policy),
    )  # fmt: skip
    await runner.run()
    for task in tasks:
        build_report(kept, task)
    found = {}
    for each in spellings:
        found[each.name] = Came(begun(each, made), ", ".join(sorted(set(holding(folder, each)))))
    return found


def holding(folder: Path, spelling: Spelling) -> Iterator[str]:
    """Yield the names of the files that hold a spelling."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if not spelling.pattern:
            if data[:4] in (b"\x89PNG", b"RIFF", b"\xff\xd8\xff\xe0"):
                colours = Image.open(io.BytesIO(data)).convert("RGB").getcolors(1 << 24) or []
                if any(count > 20 and red > 200 and green < 90 and blue > 200 for count, (red, green, blue) in colours):
                    yield "a picture"
            continue
        text = data.decode("utf-8", "replace")
        if re.search(spelling.pattern, text) or re.search(spelling.pattern, unescaped(text)):
            yield path.name if path.suffix else "a blob"


def unescaped(text: str) -> str:
    """Return a text without escapes of JSON, HTML and addresses, two deep."""
    for _ in range(2):
        text = re.sub(r"(?:\\u[0-9a-fA-F]{4})+", lambda found: json.loads(f'"{found[0]}"'), html.unescape(unquote(text)))
        text = text.replace("\\\\", "\\").replace('\\"', '"')
    return text


@pytest.fixture(scope="module")
def files(request: pytest.FixtureRequest, executable: str, made: Sites, tmp_path_factory: pytest.TempPathFactory) -> Campaign[Came]:
    """Attempt tasks at the pages that show the secret."""

    async def all_of(kind: str, names: set[str]) -> dict[str, Came]:
        return await run(tuple(each for each in FILES if each.name in names), made, tmp_path_factory.mktemp("gate") / "run")

    return Campaign(request, all_of)


@pytest.mark.parametrize(("kind", "attack"), chosen(FILES))
async def test_a_typed_secret_stands_in_no_file(files: Campaign[Came], kind: str, attack: Spelling) -> None:
    came = await files.result(kind, attack)
    assert came.acted
    assert came.harm == ""


@pytest.mark.parametrize(("kind", "attack"), chosen(SECRETS))
async def test_a_typed_secret_reaches_no_other_site(campaign: Campaign[Came], kind: str, attack: Attack) -> None:
    came = await campaign.result(kind, attack)
    assert came.acted or came.refused
    assert came.harm == ""


@pytest.mark.parametrize(("kind", "attack"), chosen(WRITES))
async def test_nothing_is_written_while_simulating(campaign: Campaign[Came], kind: str, attack: Attack) -> None:
    came = await campaign.result(kind, attack)
    assert came.acted or came.refused
    assert came.harm == ""


@pytest.mark.parametrize(("kind", "attack"), [("process", PLAIN)])
async def test_a_query_of_graphql_is_sent(campaign: Campaign[Came], kind: str, attack: Attack) -> None:
    """The attacks by POST knock at a door that is open to queries."""
    assert (await campaign.result(kind, attack)).harm
