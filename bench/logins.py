"""What the gate costs: log-ins of usual kinds, each with the default rules for typed secrets.

A real identity provider (Django with django-oauth-toolkit) signs in to an application of another host, by a redirect and by the page's own
script. Another one (pysaml2, which signs with pyXMLSecurity) signs in to a service by SAML's POST binding. Trac, Wagtail and MoinMoin have
forms of their own. Small sites on further loopback hosts stand for an application that loads its parts from a third origin after the
log-in, one whose pages hold a frame of a payment service and send to an analytics service, and one that posts the password itself to an API
at another host. That last one is asked about, or named in `browser.login.partner_origins`.

The applications are in virtual environments of their own: `shells/setup.sh --sites`, and for MoinMoin as bench/third_party.py says.

  logins               log-ins that were tried: all of the list, unless an application is not installed
  logins_broken        log-ins that fail by default although no rule had to be asked about
  logins_asked         log-ins whose refusal names the origin and the key
  logins_with_partner  of these, those that work once the key names the origin
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import third_party
from _common import ROOT, Figure, Noise, finish, parser, table, versions

import exact
from exact.benchmarks.sites.suite import SERVER, TRAC, WAGTAIL, Application, interpreter, seed
from exact.config import parse
from exact.errors import UsageError

BENCH = ROOT / "bench"
PASSWORD = "Heron+Basalt-71%k"
WELCOME = "<title>Home</title><h1>Welcome ann</h1>"
FORM = "<title>Sign in</title>{more}<form method=post action=/in><label>User <input name=user></label><label>Password <input name=password type=password></label><button>Log in</button></form>"  # noqa: E501
FILL = ('fill [textbox "User"] "<user>"', 'fill [textbox "Password"] "<password>"', 'click [button "Log in"]')
Page = str | Callable[[dict[str, str]], tuple[int, dict[str, str], str]]
"""A page, or a function of the fields of a request that returns status, headers and body."""


@dataclass
class Site:
    """A site on one loopback host."""

    host: str
    pages: dict[str, Page] = field(default_factory=dict)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve the pages while the block runs. All hosts are allowed by CORS."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urllib.parse.urlsplit(self.path)
                given = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                fields = dict(urllib.parse.parse_qsl(given or parts.query)) | {"cookie": self.headers.get("Cookie") or ""}
                page = site.pages.get(parts.path, "")
                status, headers, body = page(fields) if callable(page) else (200 if page else 404, {}, page)
                kind = "text/javascript" if parts.path.endswith(".js") else "text/html; charset=utf-8"
                self.send_response(status)
                for name, value in (
                    {"Content-Type": kind, "Access-Control-Allow-Origin": "*", "Content-Length": str(len(body.encode()))} | headers
                ).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer((self.host, 0), Handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()


@dataclass
class Case:
    """A log-in: where it starts, which other origins the task allows, and where the password is typed."""

    start: str
    others: tuple[str, ...]
    script: tuple[str, ...] = FILL
    typed_at: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    """Origins that a person names once they are asked about."""
    user: str = "ann"
    password: str = PASSWORD
    url: str = ""
    """Page of the log-in; empty if the start leads there."""
    proof: str = "Welcome ann"


class NotInstalledError(Exception):
    """An application that a log-in needs is not installed."""


def redirect(url: str, **headers: str) -> tuple[int, dict[str, str], str]:
    return 302, {"Location": url, **headers}, ""


def welcome(fields: dict[str, str]) -> tuple[int, dict[str, str], str]:
    return (200, {}, WELCOME) if "in=1" in fields["cookie"] else redirect("/in")


def checked(target: str = "/") -> Callable[[dict[str, str]], tuple[int, dict[str, str], str]]:
    """Return a page that shows the form, and signs in who posts the password."""
    return lambda fields: (
        redirect(target, **{"Set-Cookie": "in=1"}) if fields.get("password") == PASSWORD else (200, {}, FORM.format(more=""))
    )


def free_port(host: str) -> int:
    with socket.socket() as found:
        found.bind((host, 0))
        return int(found.getsockname()[1])


def python_of_sites() -> str:
    try:
        return str(interpreter())
    except UsageError as error:
        raise NotInstalledError(str(error)) from error


@contextmanager
def told(program: str, *arguments: str) -> Iterator[list[str]]:
    """Run a program of this folder with a folder and arguments. Give the words that it prints once it serves."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python_of_sites(), "-W", "ignore", str(BENCH / program), folder, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None and process.stderr is not None
            if not (words := process.stdout.readline().split()):
                raise NotInstalledError((process.stderr.read().strip().splitlines() or [program])[-1])
            yield words
        finally:
            process.kill()
            process.wait()


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[None]:
    """Run a server until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not third_party.serves(process, port):
            raise SystemExit(f"{' '.join(command)} does not serve")
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def provider(app: Site) -> Iterator[tuple[str, str, str]]:
    """Serve the identity provider for an application. Give its address, and the id and the secret of the application."""
    host, port = "127.0.0.2", free_port("127.0.0.2")
    with told("_identity.py", host, str(port), f"{app.url}/back", PASSWORD) as (id, secret):
        yield f"http://{host}:{port}", id, secret


@contextmanager
def single_sign_on(*, by_script: bool) -> Iterator[Case]:
    """An application that the identity provider signs in to, by a redirect or by the page's own script."""
    app = Site("127.0.0.1")
    with app.served(), provider(app) as (identity, id, secret):
        asked = urllib.parse.urlencode(
            {"response_type": "code", "client_id": id, "redirect_uri": f"{app.url}/back", "scope": "read", "state": "s1"}
        )
        authorize = f"{identity}/o/authorize/?{asked}"

        def back(fields: dict[str, str]) -> tuple[int, dict[str, str], str]:
            given = {
                "grant_type": "authorization_code",
                "code": fields["code"],
                "redirect_uri": f"{app.url}/back",
                "client_id": id,
                "client_secret": secret,
            }
            with urllib.request.urlopen(f"{identity}/o/token/", urllib.parse.urlencode(given).encode(), timeout=20) as answer:
                return redirect("/", **{"Set-Cookie": "in=1"}) if answer.status == 200 else (403, {}, "No")

        button = f"<button onclick='location.assign({authorize!r})'>Sign in</button>".replace("'http", '"http').replace("s1')", 's1")')
        way = button if by_script else "<a href=/begin>Sign in</a>"
        entry = f"<title>App</title>{way}"
        app.pages = {
            "/": lambda fields: (200, {}, WELCOME if "in=1" in fields["cookie"] else entry),
            "/begin": lambda fields: redirect(authorize), "/back": back,
        }  # fmt: skip
        press = 'click [button "Sign in"]' if by_script else 'click [link "Sign in"]'
        script = (press, 'fill [textbox "Username:"] "<user>"', 'fill [textbox "Password:"] "<password>"', 'click [button "Log in"]')
        yield Case(app.url, (identity,), script, typed_at=(identity,))


@contextmanager
def saml() -> Iterator[Case]:
    """A service whose identity provider's page posts a signed answer back to it."""
    with told("_saml.py", "127.0.0.1", "127.0.0.3", PASSWORD) as (service, identity):
        yield Case(service, (identity,), typed_at=(identity,))


@contextmanager
def real(application: Application, *, start: str, script: tuple[str, ...], proof: str) -> Iterator[Case]:
    """Trac or Wagtail, with its own form."""
    port = free_port("127.0.0.1")
    data = asyncio.run(seed(application.name, Path(python_of_sites())))
    with running([python_of_sites(), "-W", "ignore", "-I", str(SERVER), application.name, str(port), str(data)], port):
        url = f"http://127.0.0.1:{port}"
        yield Case(
            f"{url}{start}", (), script, user=application.users[0], password=application.word, url=application.form.path, proof=proof
        )


@contextmanager
def moin() -> Iterator[Case]:
    """MoinMoin, with its own form."""
    if not third_party.MOIN.interpreter().exists():
        raise NotInstalledError(f"there is no {third_party.MOIN.interpreter()}: see bench/third_party.py")
    port = free_port("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder, third_party.server(third_party.MOIN, Path(folder), port):
        script = ('fill [textbox "Username"] "<user>"', 'fill [textbox "Password"] "<password>"', 'click [button "Log in"]')
        yield Case(f"http://127.0.0.1:{port}/Home", (), script, password=third_party.PASSWORD, url="/+login", proof='[link "Logout"]')


@contextmanager
def parts() -> Iterator[Case]:
    """An application that loads its parts from a third origin, more of them after the log-in."""
    app, network = Site("127.0.0.1"), Site("127.0.0.3")
    with app.served(), network.served():
        network.pages = {"/lib.js": "export const a = 1", "/chunk-1f9e0c3a.js": "document.querySelector('h1').textContent = 'Welcome ann'"}
        lib = f"<script type=module src={network.url}/lib.js></script>"
        home = f"<title>Home</title>{lib}<h1>Loading</h1><script>import('{network.url}/chunk-1f9e0c3a.js')</script>"
        app.pages = {
            "/": lambda fields: (200, {}, home) if "in=1" in fields["cookie"] else redirect("/in"),
            "/in": lambda fields: (
                redirect("/", **{"Set-Cookie": "in=1"}) if fields.get("password") == PASSWORD else (200, {}, FORM.format(more=lib))
            ),
        }
        yield Case(app.url, (network.url,))


@contextmanager
def frame_and_analytics() -> Iterator[Case]:
    """A site whose pages hold a frame of a payment service and send to an analytics service."""
    app, pay, count = Site("127.0.0.1"), Site("127.0.0.3"), Site("127.0.0.4")
    with app.served(), pay.served(), count.served():
        pay.pages, count.pages = {"/frame": "<p>Card"}, {"/hit": "ok"}
        more = f"<iframe src={pay.url}/frame></iframe><script>navigator.sendBeacon('{count.url}/hit?id=' + Math.random())</script>"
        app.pages = {
            "/": lambda fields: (200, {}, WELCOME + more) if "in=1" in fields["cookie"] else redirect("/in"),
            "/in": lambda fields: (
                redirect("/", **{"Set-Cookie": "in=1"}) if fields.get("password") == PASSWORD else (200, {}, FORM.format(more=more))
            ),
        }
        yield Case(app.url, (pay.url, count.url))


@contextmanager
def own_form() -> Iterator[Case]:
    """A site with a form of its own."""
    app = Site("127.0.0.1", {"/": welcome, "/in": checked()})
    with app.served():
        yield Case(app.url, ())


@contextmanager
def api_elsewhere() -> Iterator[Case]:
    """An application that posts the password itself to an API at another host."""
    app, api = Site("127.0.0.1"), Site("127.0.0.3")
    with app.served(), api.served():
        api.pages = {"/session": lambda fields: (200 if fields.get("password") == PASSWORD else 403, {}, "t")}
        script = (
            f"onsubmit = async e => {{ e.preventDefault(); const r = await fetch('{api.url}/session', {{method: 'POST', body: new "
            "URLSearchParams(new FormData(document.forms[0]))}); if (r.ok) { document.cookie = 'in=1'; location = '/' } }"
        )
        app.pages = {"/": welcome, "/in": FORM.format(more=f"<script>{script}</script>")}
        yield Case(app.url, (api.url,), partners=(api.url,))


TRAC_FORM = ('fill [textbox "Username:"] "<user>"', 'fill [textbox "Password:"] "<password>"', 'click [button "Login"]')
WAGTAIL_FORM = ('fill [textbox "Username"] "<user>"', 'fill [textbox "Password"] "<password>"', 'click [button "Sign in"]')
CASES: dict[str, Any] = {
    "a form of its own": own_form,
    "Trac": lambda: real(TRAC, start="/wiki", script=TRAC_FORM, proof="logged in as alice"),
    "Wagtail": lambda: real(WAGTAIL, start="/admin/", script=WAGTAIL_FORM, proof='[link "Dashboard"]'),
    "MoinMoin": moin,
    "OIDC, by a redirect": lambda: single_sign_on(by_script=False),
    "OIDC, by the page's script": lambda: single_sign_on(by_script=True),
    "SAML, a form that is posted back": saml,
    "parts from a third origin": parts,
    "payment frame and analytics": frame_and_analytics,
    "API at another host": api_elsewhere,
}


async def logged_in(case: Case, *, partners: tuple[str, ...] = ()) -> str:
    """Return the reason if the log-in fails; empty if it works."""
    login = {
        "secrets": {"user": case.user, "password": case.password}, "url": case.url, "script": list(case.script), "proof": case.proof,
        "secret_origins": list(case.typed_at), "partner_origins": list(partners),
    }  # fmt: skip
    config = parse({"browser": {"sandbox": "never", "screenshots": False, "allow_origins": list(case.others), "login": login}})
    task = exact.Task(id=f"logins/{secrets.token_hex(4)}", instruction="Look around.", start=case.start)
    try:
        async with exact.make(task, config=config) as environment:
            await environment.reset()  # the proof is the page's
    except exact.EnvironmentFailure as error:
        return str(error)
    return ""


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise, rows, broken, asked, mended = Noise(), list[tuple[str, str, str]](), 0, 0, 0
    for name, make in CASES.items():
        with ExitStack() as stack:
            try:
                case: Case = stack.enter_context(make())
            except NotInstalledError as error:
                rows.append((name, "not installed", ""))
                print(f"{name}: {error}", file=sys.stderr)
                continue
            noise.probe()
            why = asyncio.run(logged_in(case))
            wrong = asyncio.run(logged_in(replace(case, password="Osprey+Gneiss-38%q")))
            assert wrong, f"{name}: a wrong password logs in: nothing is measured"
            names_key = bool(why) and "browser.login.partner_origins" in why and any(each in why for each in case.partners)
            again = asyncio.run(logged_in(case, partners=case.partners)) if names_key else why
        broken += bool(why) and not names_key
        asked += names_key
        mended += names_key and not again
        rows.append((name, "works" if not why else "asked" if names_key else "BROKEN", "works" if not again else "BROKEN"))
        if why:
            print(f"{name}: {why}"[:400], file=sys.stderr)
    table(("log-in", "by default", "with the partner named"), rows)
    tried = sum(row[1] != "not installed" for row in rows)
    figures = [Figure("logins", tried, float(len(CASES))), Figure("logins_broken", broken, 0, at_least=False)]
    figures += [Figure("logins_asked", asked), Figure("logins_with_partner", mended, float(asked))]
    finish(options, figures, noise, versions("playwright"), {"rows": rows})


if __name__ == "__main__":
    main()
