"""The application of rows.py in Flask: `flask_rows.py PORT`."""

import sqlite3
import sys

from flask import Flask, redirect, render_template_string, request

PAGE = """<!doctype html><title>Rows</title><h1>Rows: {{ rows | join(", ") or "none" }}</h1>
<form method=post action=/add><input name=text aria-label=note><button>Add</button></form>"""

app = Flask(__name__)
database = sqlite3.connect("/tmp/flask-rows.db", check_same_thread=False)
database.execute("create table if not exists rows(text)")


@app.get("/")
def index() -> str:
    return render_template_string(PAGE, rows=[text for (text,) in database.execute("select text from rows order by rowid")])


@app.post("/add")
def add() -> object:
    with database:
        database.execute("insert into rows values (?)", (request.form["text"],))
    return redirect("/")


if __name__ == "__main__":
    app.run("127.0.0.1", int(sys.argv[1]), threaded=False)
