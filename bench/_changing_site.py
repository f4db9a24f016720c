"""Serve an application whose pages change: `_changing_site.py RULES LOG SERVER [ARGUMENT]...`. `bench/rerun.py` starts it.

RULES is a file of JSON that is read at each request: `words`, other labels by the old ones; `order`, whether lists are reversed; `notice`,
the path of a page before which a notice comes, once in a browser. SERVER is the program of the application, which gets the arguments. Each
request is a line of LOG.
"""

import importlib.util
import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

ACCEPT = "/__seen__"
"""Address that a notice's link leads to."""
NOTICE = '<!doctype html><meta charset=utf-8><title>Notice</title><a href="#">Logout</a><h1>New terms</h1><a href="{}">To the page</a>'
"""It shows what every page of a person who has logged in shows."""
LIST = re.compile(r"(<ul[^>]*>)((?:(?!<ul|</ul>).)*)(</ul>)", re.S)
ITEM = re.compile(r"<li.*?</li>", re.S)
SUBMIT = re.compile(r"<input[^>]*type=[\"']?(?:submit|button)[^>]*>", re.S)


def changed(application, rules, log):
    """Return an application with changed pages."""

    def answer(environ, respond):
        rule = json.loads(rules.read_text())
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        if path == ACCEPT:
            to = bytes.fromhex(query).decode()  # an address that says what it does would be presumed to write
            respond("302 Found", [("Location", to), ("Set-Cookie", "seen=1; Path=/"), ("Content-Length", "0")])
            return [b""]
        with log.open("a") as file:
            file.write(json.dumps({"method": environ["REQUEST_METHOD"], "path": path + (f"?{query}" if query else "")}) + "\n")
        if path == rule.get("notice") and environ["REQUEST_METHOD"] == "GET" and "seen=1" not in environ.get("HTTP_COOKIE", ""):
            to = quote(path, safe="/+") + (f"?{query}" if query else "")
            body = NOTICE.format(f"{ACCEPT}?{to.encode().hex()}").encode()
            respond("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
            return [body]
        return rewritten(application, environ, respond, rule)

    return answer


def rewritten(application, environ, respond, rule):
    """Return the answer of an application, changed if it is a page."""
    environ.pop("HTTP_ACCEPT_ENCODING", None)
    started = []

    def start(status, headers, info=None):
        started[:] = [status, headers]
        return started.append

    found = application(environ, start)
    rest = b"".join(found)
    if hasattr(found, "close"):
        found.close()
    status, headers, *written = started
    body = b"".join(written) + rest
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    if kind.startswith("text/html") and (rule.get("words") or rule.get("order")):
        body = page(body.decode("utf-8", "replace"), rule).encode()
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"] + [("Content-Length", str(len(body)))]
    respond(status, headers)
    return [body]


def page(text, rule):
    """Return a page with other labels, and with its lists in another order."""
    for old, new in rule.get("words", {}).items():
        text = re.sub(rf"(>\s*){re.escape(old)}(\s*<)", lambda found, new=new: f"{found[1]}{new}{found[2]}", text)
        text = SUBMIT.sub(lambda found, old=old, new=new: found[0].replace(f'value="{old}"', f'value="{new}"'), text)
    return LIST.sub(reversed_list, text) if rule.get("order") else text


def reversed_list(found):
    """Return a list with its items in the other order, if it holds nothing else."""
    items = ITEM.findall(found[2])
    return found[0] if ITEM.sub("", found[2]).strip() else found[1] + "".join(reversed(items)) + found[3]


def main():
    rules, log, server = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    sys.argv = sys.argv[3:]
    sys.path.insert(0, str(Path(server).parent))
    spec = importlib.util.spec_from_file_location("serve", server)
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    if hasattr(serve, "make_server"):
        made = serve.make_server
        serve.make_server = lambda host, port, application, **more: made(host, port, changed(application, rules, log), **more)
    else:
        wiki = serve.Wiki
        serve.Wiki = lambda: changed(wiki(), rules, log)
    serve.main()


if __name__ == "__main__":
    main()
