"""A shop with PostgreSQL behind it, for tests: run as a script, its application and the hooks that keep it by template databases.

`shop.py FOLDER serve DATABASE` prints its port. `shop.py FOLDER reset|snapshot|restore|fork|drop|end NAME BASE` are the hooks. FOLDER holds
the cluster's socket, and a file for each instance, `PORT`, with its process and database. The first instance uses `shop`, made of `seed`.
"""

import html
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


def sql(folder: str, database: str, query: str, **values: str) -> str:
    given = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
    command = ["psql", "-h", folder, "-U", "exact", "-d", database, "-Atq", "-v", "ON_ERROR_STOP=1", *given]
    return subprocess.run(command, input=query, text=True, capture_output=True, check=True).stdout.strip()


def copy(folder: str, name: str, template: str) -> None:
    sql(folder, "postgres", f'drop database if exists "{name}" with (force)')
    sql(folder, "postgres", f'create database "{name}" template "{template}"')


class Application(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = database = ""

    def do_GET(self) -> None:
        rows = sql(self.folder, self.database, "select string_agg(text, ', ' order by id) from rows") or "none"
        page = f"""<!doctype html><title>Shop</title><h1>Rows: {html.escape(rows)}</h1>
            <form method=post action=/add><input name=text aria-label=note><button>Add</button></form>"""
        self.answer(200, page.encode())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        sql(self.folder, self.database, "insert into rows(text) values (:'text')", text=form.get("text", [""])[0])
        self.answer(303, b"", Location="/")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def serve(folder: str, database: str) -> None:
    Application.folder, Application.database = folder, database
    server = ThreadingHTTPServer(("127.0.0.1", 0), Application)
    Path(folder, str(server.server_port)).write_text(f"{os.getpid()} {database}")
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def start(folder: str, database: str) -> str:
    process = subprocess.Popen(
        [sys.executable, __file__, folder, "serve", database], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout
    return f"http://127.0.0.1:{process.stdout.readline().strip()}"


def instance(folder: str, base: str) -> tuple[int, str]:
    """Process and database of an instance; the first one is known by its name only."""
    file = Path(folder, str(urlsplit(base).port))
    if not file.exists():
        return 0, "shop"
    process, database = file.read_text().split()
    return int(process), database


def hook(folder: str, role: str, name: str, base: str) -> None:
    if role == "reset":
        copy(folder, "shop", "seed")
    elif role == "snapshot":
        copy(folder, name, instance(folder, base)[1])
    elif role == "restore":
        copy(folder, "shop", name)
    elif role == "start":
        sys.stdout.write(start(folder, "shop"))
    elif role == "fork":
        database = f"fork_{os.getpid()}"
        copy(folder, database, name)
        sys.stdout.write(start(folder, database))
    elif role == "drop":
        sql(folder, "postgres", f'drop database "{name}"')
    elif role == "end":
        process, database = instance(folder, base)
        os.kill(process, signal.SIGKILL)
        Path(folder, str(urlsplit(base).port)).unlink()
        sql(folder, "postgres", f'drop database "{database}" with (force)')


if __name__ == "__main__":
    folder, role, *rest = sys.argv[1:]
    serve(folder, *rest) if role == "serve" else hook(folder, role, *rest)
