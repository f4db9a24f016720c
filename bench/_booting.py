"""Ten small applications that boot in the ways that web applications do. Each waits for its server, which answers `/ready` after a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

READY = "ready"
"""Title of an application that has booted."""
_SHOW = "document.body.innerHTML = '<h1>Shop</h1><button>Start</button>'; document.title = 'ready'"
_WAIT = "await (await fetch('/ready')).text()"
_SPINNER = """<style>i { display: block; width: 40px; height: 40px; border: 4px solid; border-top-color: red; border-radius: 50%;
  animation: turn 1s linear infinite } @keyframes turn { to { transform: rotate(360deg) } }</style><i></i>"""


class Application(NamedTuple):
    """An application: the HTML of its start page, and its further files by path."""

    html: str
    files: dict[str, tuple[str, str]] = {}


APPLICATIONS = {
    "fetch, then render": Application(f"<div id=root></div><script>(async () => {{ {_WAIT}; {_SHOW} }})()</script>"),
    "module script": Application(
        "<div id=root></div><script type=module src=/app.js></script>",
        {"/app.js": (f"import '/ready'; {_SHOW}", "text/javascript")},
    ),
    "canvas": Application(
        f"""<canvas id=c width=300 height=200></canvas><script>(async () => {{ {_WAIT}
        const pen = c.getContext('2d'); pen.fillStyle = 'red'; pen.fillRect(20, 20, 90, 50); document.title = 'ready' }})()</script>"""
    ),
    "frame": Application(
        "<iframe src=/inner width=500 height=300></iframe>",
        {"/inner": (f"<script>(async () => {{ {_WAIT}; {_SHOW}; top.document.title = 'ready' }})()</script>", "text/html")},
    ),
    "service worker": Application(
        f"""<script>(async () => {{ try {{ await navigator.serviceWorker.register('/worker.js') }} catch {{ }}
        {_WAIT}; {_SHOW} }})()</script>""",
        {"/worker.js": ("onfetch = () => {}", "text/javascript")},
    ),
    "web component": Application(
        f"""<shop-app></shop-app><script>customElements.define('shop-app', class extends HTMLElement {{ async connectedCallback() {{
        const root = this.attachShadow({{mode: 'closed'}}); {_WAIT}
        root.innerHTML = '<h1>Shop</h1><button>Start</button>'; document.title = 'ready' }} }})</script>"""
    ),
    "document.write": Application(
        f"""<script>(async () => {{ {_WAIT}
        document.open(); document.write('<title>ready</title><h1>Shop</h1><button>Start</button>'); document.close() }})()</script>"""
    ),
    "spinner first": Application(f"{_SPINNER}<p>Loading...</p><script>(async () => {{ {_WAIT}; {_SHOW} }})()</script>"),
    "redirect by script": Application(
        f"<script>(async () => {{ {_WAIT}; location.replace('/shop') }})()</script>",
        {"/shop": ("<title>ready</title><h1>Shop</h1><button>Start</button>", "text/html")},
    ),
    "polling": Application(
        f"""<script>const poll = async () => {{ const answer = await fetch('/state')
        if (await answer.text() == 'ready') {{ {_SHOW} }} else setTimeout(poll, 100) }}; poll()</script>"""
    ),
}


def serve(server: HTTPServer, application: Application, ready: Callable[[], bool], wait: Callable[[], object]) -> None:
    """Serve an application. `ready`: whether it may boot now. `wait`: returns once it may."""

    def answer(_: Request) -> Response:
        wait()
        return Response("", content_type="text/javascript")

    server.expect_request("/").respond_with_data(f"<!doctype html><title>Boot</title><body>{application.html}", content_type="text/html")
    server.expect_request("/ready").respond_with_handler(answer)
    server.expect_request("/state").respond_with_handler(lambda _: Response("ready" if ready() else "not yet"))
    for path, (body, kind) in application.files.items():
        server.expect_request(path).respond_with_data(body, content_type=kind)
