"""A register that a form adds names to. What its pages say, and a notice before the form, can be changed while it is served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from werkzeug import Request, Response
from werkzeug.serving import make_server

START = "<title>Register</title><h1>Register</h1><nav><a href=/news>News</a> <a href=/form>Forms</a></nav><p>Open from 9 to 17 every day"
FORGETS = """<label>Remark <input form=none id=remark></label><script>document.querySelector('input').oninput = event => setTimeout(() => {
  const typed = event.target.value; event.target.value = ''; if (MOVES) remark.value = typed; }, 50)</script>"""
DRAFTS = """<p id=saved></p><script>let due;
function save() { saved.textContent = 'Saved as a draft'; fetch('/draft', {method: 'POST', body: new FormData(document.forms[0])}); }
document.querySelector('input').oninput = () => { clearTimeout(due); due = setTimeout(save, 900) }</script>"""
FORM = """<title>Form</title><h1>Add a name</h1><p>Names are public.</p>
<form method=post action={action}><label>Name <input name=name></label><button>Send</button></form><a href=/>Cancel</a>"""
NOTICE = "<title>Notice</title><h1>New terms</h1><p>Read them first.</p><a href={seen}>To the form</a> <a href=/>Start</a>"


class Register:
    """The application. `names` has what was sent, in order."""

    def __init__(self) -> None:
        self.names = list[str]()
        self.words: dict[str, str] = {}
        """Other words on all pages, by the old ones."""
        self.notice = ""
        """Address that the link of a notice before the form leads to; empty for no notice."""
        self.action = "/send"
        """Address that the form is sent to."""
        self.forgets = ""
        """What becomes of a text that was typed into the form: it is `emptied`, or `moved` to another field. Empty: it stays."""
        self.drafts: list[str] | None = None
        """Drafts that the form sent by itself; None: it sends none."""
        self.saved = threading.Event()
        """Set when a draft comes."""
        self.held = threading.Event()
        """Set: names are answered at once."""
        self.held.set()
        self.came = threading.Event()
        """Set when a name comes."""

    def as_new(self) -> Iterator[Register]:
        """Yield the register without names, and bring its pages back to how they were."""
        self.names.clear()
        self.came.clear()
        yield self
        self.words, self.notice, self.action, self.forgets, self.drafts = {}, "", "/send", "", None
        self.held.set()

    @Request.application
    def __call__(self, request: Request) -> Response:
        match request.method, request.path:
            case "GET", "/":
                return self._page(START)
            case "GET", "/form":
                noticed = self.notice and "read" not in request.cookies
                form = FORM.format(action=self.action)
                form += FORGETS.replace("MOVES", str(self.forgets == "moved").lower()) if self.forgets else ""
                form += DRAFTS if self.drafts is not None else ""
                return self._page(NOTICE.format(seen=self.notice) if noticed else form)
            case "POST", "/draft" if self.drafts is not None:
                self.drafts.append(request.form["name"])
                self.saved.set()
                return Response("")
            case "GET", "/seen" | "/accept":
                return Response("", 302, {"Location": "/form", "Set-Cookie": "read=1; Path=/"})
            case "POST", _:
                self.names.append(request.form["name"])
                self.came.set()
                self.held.wait(60)
                return self._page(f"<title>Done</title><h1>Thank you</h1><p>{len(self.names[-1])} letters are in the register.")
            case "GET", "/news":
                return self._page("<title>News</title><h1>No news</h1><a href=/>Back</a>")
        return Response("nothing here", 404)

    def _page(self, text: str) -> Response:
        for old, new in self.words.items():
            text = text.replace(f">{old}<", f">{new}<")
        return Response(f"<!doctype html><meta charset=utf-8>{text}", content_type="text/html; charset=utf-8")


@contextmanager
def serve_register() -> Iterator[tuple[Register, str]]:
    """Run the register in a thread. Yield it and its address."""
    register = Register()
    server = make_server("127.0.0.1", 0, register, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield register, f"http://127.0.0.1:{server.port}/"
    finally:
        register.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
