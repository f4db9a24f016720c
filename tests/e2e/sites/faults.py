"""A site that breaks what looks at it: `faults.py PORT`. Two clicks on "Onward" are the goal; the other buttons are faults."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

START = """<!doctype html><title>Start</title>
<button onclick="location = '/on'">Onward</button>
<button onclick="location = '/die'">Die</button>
<button onclick="setTimeout(() => { while (true); }, 0)">Loop</button>
<button onclick="window.open('http://forbidden.test/')">Popup</button>
<button onclick="location = '/away'">Away</button>
<button onclick="work()">Worker</button><p id=said></p>
<script>
async function work() {
  document.querySelectorAll('button').forEach(button => button.remove());
  await navigator.serviceWorker.register('/worker.js');
  const found = await navigator.serviceWorker.getRegistrations();
  said.textContent = `${isSecureContext ? 'secure' : 'insecure'}, ${found.length} workers`;
}
</script>"""
PAGES = {
    "/": START,
    "/on": "<!doctype html><title>On</title><button onclick=\"location = '/done'\">Onward</button>",
    "/done": "<!doctype html><title>Done</title><p>Done",
}


class Application(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        if self.path == "/die":
            os._exit(3)
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://forbidden.test/after-a-redirect")
            self.end_headers()
            return
        script = self.path == "/worker.js"
        body = (b"onfetch = () => {}" if script else PAGES.get(self.path, "").encode()) or b"nothing"
        self.send_response(200 if script or self.path in PAGES else 404)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
