"""A Flask application with a SQLite database, for tests. Each button adds its row.

`flask_rows.py PORT [SECONDS]`: every page takes so long.
"""

import sqlite3
import sys
import time

from flask import Flask, redirect, render_template_string, request

PAGE = """<!doctype html><title>Rows</title><h1>Rows: {{ rows | join(", ") or "none" }}</h1>
<form method=post action=/add>{% for row in choices %}<button name=row value={{ row }}>Add {{ row }}</button>{% endfor %}
<input name=note aria-label=note></form>"""

app = Flask(__name__)
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
database = sqlite3.connect("/tmp/flask-rows.db", check_same_thread=False)
database.execute("create table if not exists rows(text)")


@app.get("/")
def index() -> str:
    time.sleep(seconds)
    rows = [text for (text,) in database.execute("select text from rows order by rowid")]
    return render_template_string(PAGE, rows=rows, choices=["apple", "pear", "quince"])


@app.post("/add")
def add() -> object:
    with database:
        database.execute("insert into rows values (?)", (request.form["row"],))
    return redirect("/")


if __name__ == "__main__":
    app.run("127.0.0.1", int(sys.argv[1]), threaded=False)
