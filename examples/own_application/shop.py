"""A small shop with a log-in, orders in memory, and hooks that save and restore them: `shop.py PORT`. Standard library only."""

import copy
import html
import os
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LOGIN = """<title>Log in</title><form method=post action=/login><label>Name <input name=user></label>
<label>Password <input type=password name=password></label><button>Sign in</button></form>"""
ORDERS = """<title>Orders</title><h1>Orders</h1><ul>{items}</ul>
<form method=post action=/orders><label>Article <input name=item></label><button>Order</button></form>"""
START = {"orders": ["pears"], "sessions": set()}
state, snapshots = copy.deepcopy(START), {}


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/orders" and self.session() in state["sessions"]:
            self.page(ORDERS.format(items="".join(f"<li>{html.escape(item)}</li>" for item in state["orders"])))
        elif self.path == "/login":
            self.page(LOGIN)
        else:
            self.go("/login")

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        if parts.path.startswith("/hooks/"):
            self.hook(parts.path.removeprefix("/hooks/"), parse_qs(parts.query).get("name", [""])[0])
        elif parts.path == "/login" and form.get("password") == [os.environ.get("SHOP_PASSWORD", "open sesame")]:
            state["sessions"].add(session := secrets.token_hex(8))
            self.go("/orders", f"session={session}; Path=/; HttpOnly")
        elif parts.path == "/orders" and self.session() in state["sessions"]:
            state["orders"] += form.get("item", [])
            self.go("/orders")
        else:
            self.go("/login")

    def hook(self, what: str, name: str) -> None:
        """Reset, save or restore the state: the hooks that outside.yaml names."""
        if what == "save":
            snapshots[name] = copy.deepcopy(state)
        else:
            state.update(copy.deepcopy(snapshots[name] if what == "restore" else START))
        self.page("done")

    def session(self) -> str:
        return self.headers.get("Cookie", "").removeprefix("session=")

    def page(self, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html>{body}".encode())

    def go(self, where: str, cookie: str = "") -> None:
        self.send_response(302)
        self.send_header("Location", where)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
