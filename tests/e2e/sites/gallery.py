"""A site with one page for each ability of a browser environment. Run as a script: `gallery.py PORT`; or `serving()` in a test.

What pages come to is told in a paragraph `out`, so that observations tell it. Standard library only.
"""

# ruff: noqa: E501 (pages)
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OUT = "<p id=out>nothing yet</p>"
SAY = "const say = text => { out.textContent = text; };"

PAGES = {
    "/": "<h1>Gallery</h1>",
    "/inner": f"<button onclick=\"out.textContent = 'pressed ' + ++n\">Press</button><input aria-label=Note><script>let n = 0</script>{OUT}",
    "/frames": """<h1>Frames</h1><iframe src=/inner title=near width=300 height=120></iframe><div style="height:900px"></div>
<iframe id=far title=far width=300 height=120 style="padding:7px;border:3px solid"></iframe>
<script>far.src = location.protocol + '//other.test' + (location.port && ':' + location.port) + '/inner'</script>""",
    "/isolated": """<h1>Isolated</h1><script>
const there = location.protocol + '//other.test' + (location.port && ':' + location.port);
for (const [name, value, path] of [['sandbox', 'allow-scripts', '/inner'], ['title', 'agent cluster', '/inner?agent-cluster'],
  ['credentialless', '', '/inner?embedder']]) {
  const frame = document.createElement('iframe');
  frame.setAttribute(name, value);
  frame.src = there + path;
  document.body.append(frame);
}</script>""",
    "/shadow": f"""<open-box></open-box><closed-box></closed-box>{OUT}<script>{SAY}
for (const mode of ['open', 'closed']) customElements.define(mode + '-box', class extends HTMLElement {{
  connectedCallback() {{
    const root = this.attachShadow({{mode}});
    root.innerHTML = `<button>Press ${{mode}}</button><input aria-label="${{mode}} note"><p>untouched ${{mode}}</p>`;
    root.querySelector('button').onclick = () => setTimeout(() => {{ root.querySelector('p').textContent = 'touched ' + mode; }}, 60);
  }}
}});</script>""",
    "/editable": f"""<div contenteditable role=textbox aria-label=Letter oninput="say(this.innerText)">Dear</div>{OUT}<script>{SAY}</script>""",
    "/upload": f"""<input type=file aria-label=Report onchange="told(this.files)"><input type=file multiple hidden onchange="told(this.files)">
<button onclick="document.querySelector('[hidden]').click()">Attach</button><button>Nothing</button>{OUT}<script>{SAY}
const told = async files => say((await Promise.all([...files].map(async f => `${{f.name}} ${{f.size}}: ${{await f.text()}}`))).join('; '));
</script>""",
    "/download": f"""<a href=/report.csv>Report</a> <a href=/large.bin>Large</a> <a id=blob download=made.txt>Made here</a>
<button onclick="say('also'); location.href = '/large.bin'">Large and more</button>{OUT}
<script>{SAY} blob.href = URL.createObjectURL(new Blob(['made in the page']))</script>""",
    "/choices": f"""<select aria-label=Colour onchange="say(value)"><option>Red<option>Green<option>Blue</select>
<select multiple aria-label=Sizes onchange="say([...selectedOptions].map(o => o.text))"><option>Small<option>Medium<option>Large</select>
<input type=date aria-label=Day onchange="say(value)"><input type=color aria-label=Paint onchange="say(value)">
<input type=range aria-label=Volume onchange="say(value)">{OUT}<script>{SAY}</script>""",
    "/drag": f"""<div draggable=true role=listitem tabindex=0 ondragstart="event.dataTransfer.setData('text', 'card')">Card</div>
<div role=group aria-label=Tray tabindex=0 ondragover="event.preventDefault()"
  ondrop="say('dropped ' + event.dataTransfer.getData('text'))" style="height:80px;border:1px solid">Tray</div>
<div id=knob role=slider aria-label=Knob tabindex=0 style="width:40px;height:40px;background:teal;touch-action:none"></div>
<div role=group aria-label=Slot tabindex=0 style="margin-left:200px;height:60px;width:90px;border:1px solid">Slot</div>{OUT}<script>{SAY}
let held = false;
knob.onpointerdown = event => {{ held = true; knob.setPointerCapture(event.pointerId); }};
knob.onpointerup = event => {{ if (held) say('let go at ' + Math.round(event.clientX) + ', ' + Math.round(event.clientY)); held = false; }};
</script>""",
    "/keys": f"""<input aria-label=Box autofocus>{OUT}<script>{SAY}
document.onkeydown = event => {{ if (event.ctrlKey && event.shiftKey) {{ say('chord ' + event.code); event.preventDefault(); }} }};
document.querySelector('input').focus();</script>""",
    "/clipboard": """<input aria-label=From value="to be copied"><input aria-label=To>""",
    "/scroll": """<div tabindex=0 role=region aria-label=List style="height:120px;width:200px;overflow:auto">
<div style="width:700px"><p>first row</p><div style="height:700px"></div><p>last row</p></div>
<p style="margin-left:500px;width:80px">far right</p></div>""",
    "/hover": f"""<style>ul{{display:none;margin:0}} nav:hover ul{{display:block}}</style>
<nav><button>Menu</button><ul><li><a href="#" onclick="say('chosen');return false">Hidden entry</a></ul></nav>{OUT}<script>{SAY}</script>""",
    "/canvas": f"""<canvas id=board width=300 height=200 aria-label=Board style="position:absolute;left:0;top:0"></canvas>
<div style="height:220px"></div>{OUT}<script>{SAY}
let from = null;
board.onmousedown = event => {{ from = [event.offsetX, event.offsetY]; }};
board.onmouseup = event => {{
  const to = [event.offsetX, event.offsetY], pen = board.getContext('2d');
  pen.moveTo(...from); pen.lineTo(...to); pen.stroke();
  say(String(from) === String(to) ? 'dot ' + to : 'line ' + from + ' to ' + to);
}};</script>""",
    "/mouse": f"""<button ondblclick="say('twice')" oncontextmenu="event.preventDefault(); say('menu')" onwheel="say('turned')">Target</button>{OUT}<script>{SAY}</script>""",
    "/place": f"""<button onclick="navigator.geolocation.getCurrentPosition(p => say('at ' + [p.coords.latitude, p.coords.longitude, p.coords.accuracy].join(', ')),
error => say('refused ' + error.message))">Where</button>
<button onclick="navigator.permissions.query({{name: 'geolocation'}}).then(found => say('is ' + found.state))">May</button>{OUT}<script>{SAY}</script>""",
    "/terms": f"""{OUT}<script>{SAY} say([innerWidth, innerHeight, devicePixelRatio, navigator.language,
Intl.DateTimeFormat().resolvedOptions().timeZone, (12345.6).toLocaleString(), navigator.userAgent].join(' | '))</script>""",
    "/pdf": """<a href=/paper.pdf>Paper</a> <a href=/broken.pdf>Broken</a>""",
    "/tabs": """<h1>Tabs</h1><a href=/canvas target=_blank>Opens a tab</a>
<button onclick="open('/hover', 'w', 'width=300,height=200')">Opens a window</button><a href=/keys>Goes on</a>""",
    "/dialogs": f"""<button onclick="alert('Mind this'); say('minded')">Warn</button>
<button onclick="say(confirm('Really?') ? 'agreed' : 'declined')">Ask</button>
<button onclick="say('name ' + prompt('Your name?', 'nobody'))">Question</button>
<button onclick="setTimeout(() => say(confirm('Late?') ? 'late' : 'never'), 100)">Later</button>
<button onclick="say(confirm('One?') && confirm('Two?') ? 'both' : 'not both')">Twice</button>
<input aria-label=Draft oninput="onbeforeunload = event => event.preventDefault()"><a href=/keys>Away</a>{OUT}<script>{SAY}</script>""",
    "/greeting": f"""{OUT}<script>{SAY} alert('Welcome'); say('after the welcome')</script>""",
    "/masked": """<title>Balance 4711.50</title><h1>Account</h1><p>Balance: <b class=secret>4711.50</b></p>
<button aria-label="Pay 4711.50">Pay</button><input aria-label=PIN class=secret value=9876>
<div class=secret style="background:red;width:100px;height:100px"></div><safe-box></safe-box><script>
customElements.define('safe-box', class extends HTMLElement { connectedCallback() {
  this.attachShadow({mode: 'closed'}).innerHTML = '<p class=secret>inner secret</p><p>inner public</p>'; } });</script>""",
    "/restless": """<p id=out>0</p><button>Here</button><script>setInterval(() => { out.textContent++; }, 5)</script>""",
    "/trouble": """<button disabled>Off</button><input readonly value=fixed aria-label=Fixed><button id=under>Under</button>
<div style="position:absolute;left:0;top:0;width:600px;height:300px;background:#eee">Cover</div>
<div style="margin-top:300px"><button onclick="document.getElementById('gone').remove()">Remove</button><button id=gone>Goner</button>
<iframe id=gone2 src=/inner></iframe><button onclick="gone2.remove()">Detach</button>
<select aria-label=Town><option>Berlin<option>Bern</select></div>""",
}

ASIDE = {
    "agent-cluster": {"Origin_Agent_Cluster": "?1"},
    "embedder": {"Cross_Origin_Embedder_Policy": "require-corp", "Cross_Origin_Opener_Policy": "same-origin"},
}
"""Headers by which documents ask for a process of their own, by query."""
REPORT = b"name,amount\nAnn,3\n"
LARGE = 3_000_000


def pdf(text: str) -> bytes:
    """Return a small document of one page."""
    drawn = f"BT /F1 18 Tf 20 100 Td ({text}) Tj ET".encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
    ]
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path in PAGES:
            self.answer(
                b"<!doctype html><meta charset=utf-8><title>Gallery</title>" + PAGES[path].encode(), "text/html", **ASIDE.get(query, {})
            )
        elif path == "/report.csv":
            self.answer(REPORT, "text/csv", attachment="report.csv")
        elif path == "/large.bin":
            self.large()
        elif path == "/paper.pdf":
            self.answer(pdf("Words on paper"), "application/pdf")
        elif path == "/broken.pdf":
            self.answer(b"%PDF-1.4 and no more", "application/pdf")
        else:
            self.answer(b"<p>not here", "text/html", 404)

    def answer(self, body: bytes, kind: str, status: int = 200, attachment: str = "", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if attachment:
            self.send_header("Content-Disposition", f"attachment; filename={attachment}")
        self.end_headers()
        self.wfile.write(body)

    def large(self) -> None:
        """Return a slow response of the declared size."""
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Disposition", "attachment; filename=large.bin")
        self.send_header("Content-Length", str(LARGE))
        self.end_headers()
        try:
            for _ in range(10):
                self.wfile.write(bytes(LARGE // 10))
                time.sleep(0.02)
        except OSError:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        pass  # a browser went away


@contextmanager
def serving() -> Iterator[int]:
    """Serve the site on a free port of this machine."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    _Server(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
