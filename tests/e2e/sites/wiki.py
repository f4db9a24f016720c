"""A wiki on the host, for tests: it logs each request that writes, and its pages send some by themselves.

A form token is valid once. Typing saves a draft, each page posts preferences, a timer posts telemetry, items
come by a GraphQL query, and a link logs out by GET.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from werkzeug import Request, Response
from werkzeug.serving import make_server

HEAD = """<!doctype html><meta charset=utf-8><title>Wiki</title>
<script>
const post = (path, data) => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(data)});
post('/prefs', {theme: 'dark'});
let ticks = 0;
setInterval(() => navigator.sendBeacon('/telemetry', JSON.stringify({tick: ++ticks})), 700);
</script>
<a href=/related>Related changes</a> <a href=/logout>Log out</a>"""
EDIT = """<h1>Edit</h1><form method=post action=/save><input type=hidden name=token value={token}>
<label>Text <textarea name=text oninput="post('/draft', {{text: this.value}})"></textarea></label>
<button>Save page</button></form><a href=/preview>Show preview</a>"""
SAVED = """<h1>Saved</h1><p>Text: {text}</p><form method=post action=/publish><input type=hidden name=token value={token}>
<button>Publish page</button></form>"""
ITEMS = """<h1>Published</h1><p id=items>Loading</p><button onclick="confirmAll()">Confirm items</button><script>
const ask = query => post('/graphql', {query}).then(answer => answer.json());
ask('query Items { items { name } }').then(found => { items.textContent = 'Items: ' + found.items.join(', '); });
const confirmAll = () => ask('mutation Confirm { confirm { name } }').then(() => { items.textContent = 'All confirmed'; });
</script>"""


class Wiki:
    """The application. `writes` has method, path and body of each request that changes something."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, str, str]] = []
        self.background: list[str] = []
        """Paths of what pages sent by themselves."""
        self.text, self.published, self.confirmed, self.logged_out = "", False, False, False
        self._tokens: set[str] = set()
        self._lock = threading.Lock()

    @Request.application
    def __call__(self, request: Request) -> Response:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: Request) -> Response:
        match request.method, request.path:
            case "POST", "/prefs" | "/telemetry" | "/draft":
                self.background.append(request.path)
                return Response("{}", content_type="application/json")
            case "POST", "/graphql":
                return self._graphql(request)
            case "POST", "/save" | "/publish":
                return self._form(request)
            case "GET", "/logout":
                self.writes.append(("GET", "/logout", ""))
                self.logged_out = True
                return _page("<h1>Logged out</h1>")
            case "GET", "/edit":
                return _page(EDIT.format(token=self._token()))
            case "GET", "/page":
                return _page(ITEMS if self.published else SAVED.format(text=self.text, token=self._token()))
            case "GET", "/":
                return _page("<h1>Welcome</h1><a href=/edit>Edit page</a>")
        return _page(f"<h1>{request.path[1:].title()}</h1><p>Nothing to do here.</p>")

    def _token(self) -> str:
        token = secrets.token_hex(8)
        self._tokens.add(token)
        return token

    def _form(self, request: Request) -> Response:
        self.writes.append(("POST", request.path, request.get_data(as_text=True)))
        if request.form["token"] not in self._tokens:
            return Response("the form has expired", status=403)
        self._tokens.remove(request.form["token"])
        if request.path == "/save":
            self.text = request.form["text"]
        else:
            self.published = True
        return Response(status=303, headers={"Location": "/page"})

    def _graphql(self, request: Request) -> Response:
        query = json.loads(request.get_data())["query"]
        if query.startswith("mutation"):
            self.writes.append(("POST", "/graphql", query))
            self.confirmed = True
        return Response(json.dumps({"items": ["seven", "eight"]}), content_type="application/json")


def _page(body: str) -> Response:
    return Response(HEAD + body, content_type="text/html")


@contextmanager
def serve() -> Iterator[tuple[Wiki, str]]:
    """Serve a fresh wiki on loopback. Yield it and its address."""
    wiki = Wiki()
    server = make_server("127.0.0.1", 0, wiki, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield wiki, f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
