"""A shop that keeps what is done to it in a SQLite file, and undoes nothing. Some of its GETs write, as in real shops."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from werkzeug import Request, Response
from werkzeug.serving import make_server

ITEMS = ("Red mug", "Blue mug", "Green mug")
HEAD = "<!doctype html><meta charset=utf-8><title>Shop</title><h1>{title}</h1><a href=/>Start</a> "
START = """<form action=/search><input name=q aria-label=Query><button>Search</button></form>
<ul>{items}</ul><a href="mailto:shop@shop.test">Write to us</a> <p id=news>No news</p>
<script>fetch('/news').then(got => got.text()).then(text => {{ news.textContent = text; }});</script>"""
ITEM = """<p>{name}: 4 left</p><a href="/cart/add?id={id}">Add to cart</a> <a href="/wish?id={id}">Remember it</a>
<a href="/item/{id}" onclick="event.preventDefault(); fetch('/like?id={id}')">Upvote</a>
<form method=post action=/order><input type=hidden name=id value={id}>
<label>Name <input name=name></label><button>Order now</button></form>
<button onclick="fetch('/graphql?query=' + encodeURIComponent('mutation {{ drop(id: {id}) }}'))">Löschen</button>
<button onclick="fetch('/note', {{method: 'PUT', body: 'x'}})">Note it</button>
<form action=/subscribe><button>Abonnieren</button></form>"""


class Shop:
    """The application. `writes` has what changed something, in order."""

    def __init__(self, database: Path) -> None:
        self.database, self.writes = database, list[str]()
        self._lock = threading.Lock()
        with self._open() as db:
            db.execute("create table if not exists done (what text, id integer, name text)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.database)

    def rows(self, what: str = "order") -> list[tuple[int, str]]:
        """Return item and name of what was done."""
        with self._open() as db:
            return db.execute("select id, name from done where what = ?", (what,)).fetchall()

    @Request.application
    def __call__(self, request: Request) -> Response:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: Request) -> Response:
        asked = request.values.get("id", 0, int)
        match request.method, request.path.strip("/").split("/"):
            case "GET", [""] | ["search"]:
                items = "".join(f"<li><a href=/item/{i}>{name}</a>" for i, name in enumerate(ITEMS))
                orders = "".join(f"<li>{name} ordered by {who}" for i, who in self.rows() for name in [ITEMS[i]])
                return _page("Shop", START.format(items=items) + f"<ol>{orders}</ol>")
            case "GET", ["item", number] if number.isdecimal() and int(number) < len(ITEMS):
                return _page("Item", ITEM.format(id=number, name=ITEMS[int(number)]))
            case "GET", ["news"]:
                return Response("Nothing new")
            case "POST", ["order"]:
                return self._write("order", asked, request.form["name"])
            case "GET", ["cart", "add"]:
                return self._write("cart", asked)
            case "GET", ["wish"]:
                return self._write("wish", asked)
            case "GET", ["like" | "subscribe" | "graphql"]:
                return self._write(request.path, asked)
            case "PUT", ["note"]:
                return self._write("note", asked)
        return Response("nothing here", 404)

    def _write(self, what: str, id: int, name: str = "") -> Response:
        self.writes.append(what)
        with self._open() as db:
            db.execute("insert into done values (?, ?, ?)", (what, id, name))
        return _page("Thank you", f"<p>{json.dumps(what)} done")


def _page(title: str, text: str) -> Response:
    return Response(HEAD.format(title=title) + text, content_type="text/html; charset=utf-8")


@contextmanager
def serve(database: Path, port: int = 0) -> Iterator[tuple[Shop, str]]:
    """Run the shop in a thread. Yield it and its address."""
    shop = Shop(database)
    server = make_server("127.0.0.1", port, shop, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield shop, f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with serve(Path(sys.argv[2]), int(sys.argv[1])):
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        threading.Event().wait()
