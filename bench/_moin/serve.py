"""Serve a MoinMoin wiki on loopback: `python serve.py PORT FOLDER [PAGES]`, with the Python that has `moin` installed.

The wiki is made in FOLDER when it is not there yet. Each request is appended to `FOLDER/requests.jsonl`. `POST /hooks/reset` brings the
wiki back to its start. `GET /hooks/state` returns items and the user's profile as JSON. After PAGES pages since the reset (0: never), all
sessions that exist end as if the user had logged out in all browsers.
"""

import json
import logging
import os
import shutil
import sys
import threading
from pathlib import Path
from wsgiref.headers import Headers

PORT, FOLDER, PAGES = int(sys.argv[1]), Path(sys.argv[2]).absolute(), int(sys.argv[3]) if len(sys.argv) > 3 else 0
USER, WORD = "ann", "open-sesame-9"
MARKDOWN = "text/x-markdown;charset=utf-8"
ITEMS = {
    "Home": ["Welcome to the allotment. See [Garden](Garden), [Opening hours](Opening%20hours) and [Notes](Notes)."],
    "Garden": ["The beds are on the south side."],
    "Tomatos": ["Water them every evening."],
    "Spam": ["Buy cheap watches."],
    "Opening hours": ["Open from 9 to 17.", "Closed for ever."],
    "Notes": ["Bring gloves."],
}


def make() -> None:
    """Make an instance with a user and a few pages in FOLDER/start."""
    from moin import config

    start = FOLDER / "start"
    start.mkdir(parents=True)
    text = (Path(config.__file__).parent / "wikiconfig.py").read_text("utf-8")
    text = text.replace("YOUR-SUPER-EDITOR", USER).replace("YOUR-SUPER-USER-NAME", USER)
    (start / "wikiconfig.py").write_text(text + f'\n\nMOINCFG = Config\nSECRET_KEY = "{"k" * 40}"\n' * ("MOINCFG" not in text))
    (start / "wiki_local").mkdir()
    app = opened(start, create=True)
    with app.test_request_context("/"):
        from moin.app import before_wiki

        before_wiki()
        fill(app)
    app.deinit_backends()


def opened(folder: Path, *, create: bool = False):  # the type is Flask's, which only the wiki's Python has
    """Return the application on an instance's folder."""
    from moin.app import create_app_ext

    os.chdir(folder)
    return create_app_ext(flask_config_file=str(folder / "wikiconfig.py"), **({"create_backend": True} if create else {}))


def fill(app) -> None:
    """Create the user and the pages."""
    import io

    from moin import user
    from moin.constants.keys import ACTION, ACTION_SAVE, CONTENTTYPE, ITEMID, ITEMTYPE, NAME, NAMESPACE, REV_NUMBER

    problem = user.create_user(USER, WORD, "ann@example.org")
    assert not problem, problem
    for name, versions in ITEMS.items():
        kept = {}
        for number, text in enumerate(versions, 1):
            item = app.storage[name]
            meta = {
                **kept,
                NAME: [name],
                NAMESPACE: "",
                CONTENTTYPE: MARKDOWN,
                ITEMTYPE: "default",
                ACTION: ACTION_SAVE,
                REV_NUMBER: number,
            }
            revision = item.store_revision(meta, io.BytesIO(text.encode()), return_rev=True)
            kept = {ITEMID: revision.meta[ITEMID]}


def state(app) -> dict:
    """Return items by name, tickets, and the user's profile."""
    from moin.constants.contenttypes import CONTENTTYPE_USER
    from moin.constants.keys import LATEST_REVS

    items, profile = {}, {}
    for revision in app.storage.documents(idx_name=LATEST_REVS):
        meta = {key: value for key, value in revision.meta.items() if isinstance(value, str | int | list | tuple | bool)}
        if meta.get("contenttype") == CONTENTTYPE_USER:
            secret = ("enc_password", "recoverpass_key", "session_key", "session_token")
            profile = {key: value for key, value in dict(revision.meta).items() if key not in secret}
            continue
        body = revision.data.read()
        revision.data.close()
        names = meta.get("name") or [meta.get("itemid")]
        for name in names:
            items[name] = {**meta, "text": body.decode("utf-8", "replace")}
    return {"items": items, "profile": profile}


class Wiki:
    """The application between a log of requests, the hooks, and the end of sessions."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.app = None
        self.reset()

    def reset(self) -> None:
        if self.app is not None:
            self.app.deinit_backends()
        folder = FOLDER / "live"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FOLDER / "start", folder)
        self.app, self.pages = opened(folder), 0

    def __call__(self, environ, respond):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self.lock:
            if path == "/hooks/reset" and method == "POST":
                self.reset()
                self.log(method, path, 204)
                respond("204 No Content", [])
                return [b""]
            if path == "/hooks/state":
                body = json.dumps(state(self.app), default=str).encode()
                respond("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
                return [body]
            return self.answer(environ, respond)

    def answer(self, environ, respond):
        status, headers = "", []

        def heard(said, given, info=None):
            nonlocal status, headers
            status, headers = said, given
            return respond(said, given)

        body = [b"".join(self.app(environ, heard))]
        path = environ["PATH_INFO"] + ("?" + environ["QUERY_STRING"] if environ.get("QUERY_STRING") else "")
        self.log(environ["REQUEST_METHOD"], path, int(status[:3]))
        if "html" in (Headers(headers).get("Content-Type") or "") and "+login" not in path:
            self.pages += 1
            if self.pages == PAGES:
                self.end_sessions()
        return body

    def end_sessions(self) -> None:
        with self.app.test_request_context("/"):
            from moin import user
            from moin.app import before_wiki

            before_wiki()
            user.User(name=USER).generate_session_token(True)
        self.log("-", "sessions end", 0)

    def log(self, method: str, path: str, status: int) -> None:
        with (FOLDER / "requests.jsonl").open("a") as file:
            file.write(json.dumps({"method": method, "path": path, "status": status}) + "\n")


def main() -> None:
    from werkzeug.serving import run_simple

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    if not (FOLDER / "start").exists():
        make()
    run_simple("127.0.0.1", PORT, Wiki(), threaded=True)


if __name__ == "__main__":
    main()
