"""Pages that try to stop whoever looks at them, or the browser that shows them."""

from __future__ import annotations

import zlib

from .attack import Attack, loaded, plain, pressed
from .hostile import Answer


def bomb(start: bytes, fill: bytes, mebibytes: int, end: bytes = b"") -> bytes:
    """Return some text and many mebibytes of filling, as gzip."""
    packer = zlib.compressobj(9, wbits=31)
    block = fill * ((1 << 20) // len(fill))
    return b"".join([packer.compress(start), *(packer.compress(block) for _ in range(mebibytes)), packer.compress(end), packer.flush()])


def packed(kind: str, body: bytes) -> Answer:
    return Answer(body, kind, headers=(("Content-Encoding", "gzip"),))


ENDLESS = Answer(b"<p>and so on", endless=b"<p>and on" * 500)
SVG = "".join(f"<g id=a{i}>{f'<use href=%23a{i - 1} />'.replace('%23', '#') * 10}</g>" for i in range(1, 9))
FOLLOW = "<iframe src=page></iframe>"

ATTACKS: tuple[Attack, ...] = (
    # scripts
    pressed("loop", "for (;;);"),
    loaded("loop_on_load", "setTimeout(() => { for (;;); }, 30)"),
    pressed("loop_of_promises", "(function again() { Promise.resolve().then(again) })(); await new Promise(() => 0)"),
    loaded("loop_of_dialogs", "setTimeout(() => { for (let n = 0; n < 1e6; n++) alert('again ' + n) }, 0)"),
    pressed("loop_of_questions", "while (!confirm('really?') || prompt('why?') !== 'never'); "),
    plain("asks_before_leaving", "<script>onbeforeunload = e => { e.preventDefault(); for (;;); }</script><a href='?2'>Go on</a>"),
    plain("loops_on_leaving", "<script>onpagehide = () => { for (;;); }</script>"),
    pressed("slow_expression", "/^(a+)+$/.test('a'.repeat(40) + 'b')"),
    pressed("workers_that_spin", "for (let n = 0; n < 4; n++) new Worker('data:text/javascript,for(;;);')"),
    pressed("waits_for_a_server", "const x = new XMLHttpRequest; x.open('GET', 'endless', false); x.send()", files={"endless": ENDLESS}),
    pressed("debugger", "debugger; debugger; await fetch('/x')"),
    pressed("prints", "print(); print()"),
    pressed("closes_itself", "open('', '_self'); close()"),
    loaded("writes_for_ever", "setInterval(() => document.body.append('more '), 0)"),
    loaded("changes_for_ever", "const e = document.body.appendChild(document.createElement('p')); (function f() { e.textContent ="
           "Math.random(); requestAnimationFrame(f) })()"),
    pressed("talks_for_ever", "for (let n = 0; n < 200000; n++) console.log('x'.repeat(200)); console.log({a: [1, {b: document}]})"),
    loaded("breaks_what_observes_it", "for (const [o, k] of [[Array.prototype, 'push'], [Array.prototype, Symbol.iterator],"
           "[JSON, 'stringify'],"
           "[Promise.prototype, 'then'], [Element.prototype, 'getBoundingClientRect'], [Object, 'keys'], [Node.prototype, 'appendChild'],"
           "[window, 'MutationObserver'], [window, 'setTimeout'], [Function.prototype, 'call'], [Map.prototype, 'get']])"
           "o[k] = () => { for (;;) ; }"),
    loaded("getters_that_throw", "for (const k of ['innerText', 'textContent', 'parentNode', 'children', 'attributes', 'shadowRoot'])"
           "for (const p of [Node, Element, HTMLElement]) try { Object.defineProperty(p.prototype, k, {get() { throw 0 }}) } catch {}"),
    # addresses
    loaded("reloads", "setTimeout(() => location.reload(), 0)"),
    loaded("goes_round", "setTimeout(() => { location = '?' + Math.random() }, 0)"),
    plain("redirects_for_ever", "<iframe src=hop></iframe>", files={"hop": Answer(b"", "text/html", 302, (("Location", "hop"),))}),
    loaded("fills_the_history", "setInterval(() => { for (let n = 0; n < 99; n++) history.pushState(n, '', '#' + Math.random()) }, 0)"),
    pressed("popups", "for (let n = 0; n < 60; n++) open('about:blank', 'w' + n)"),
    plain("frames_in_frames", "<script>for (let n = 0; n < 2; n++) document.write(`<iframe src='?${Math.random()}'></iframe>`)</script>"),
    pressed("downloads", "for (let n = 0; n < 60; n++) { const a = document.createElement('a');"
            "a.href = 'data:application/octet-stream,' + n; a.download = 'f' + n; a.click() }"),
    # sizes
    loaded("deep", "let e = document.body; for (let n = 0; n < 20000; n++) e = e.appendChild(document.createElement('div'));"
           "e.append('end')"),
    loaded("deep_in_shadows", "let e = document.body; for (let n = 0; n < 400; n++) { e = e.appendChild(document.createElement('div'));"
           "e = e.attachShadow({mode: 'open'}) } e.innerHTML = '<b>end</b>'"),
    loaded("many_elements", "document.body.insertAdjacentHTML('beforeend', '<button>b</button>'.repeat(100000))"),
    loaded("a_million_elements", "const b = document.createElement('div'); b.innerHTML = '<i></i>'.repeat(1000000);"
           "document.body.append(b)"),
    loaded("huge_title", "document.title = 'T'.repeat(2 ** 24)"),
    loaded("huge_name", "document.querySelector('button').ariaLabel = 'Go'.repeat(2 ** 23)"),
    loaded("huge_text", "document.body.append('word '.repeat(4e6))"),
    loaded("huge_hidden_text", "const e = document.createElement('p'); e.hidden = true; e.append('word '.repeat(12e6));"
           "document.body.append(e)"),
    loaded("huge_attribute", "document.body.dataset.x = 'v'.repeat(6e7)"),
    loaded("names_that_repeat", "document.body.insertAdjacentHTML('beforeend', '<p id=s>' + 'name '.repeat(3e4) +"
           "'<button aria-labelledby=s></button>'.repeat(500))"),
    loaded("huge_value", "const i = document.createElement('input'); i.value = 'v'.repeat(2 ** 24); document.body.append(i)"),
    loaded("huge_address", "history.replaceState(0, '', '#' + 'u'.repeat(1.9e6))"),
    loaded("many_options", "const s = document.createElement('select'); s.innerHTML = '<option>o</option>'.repeat(60000);"
           "document.body.append(s)"),
    loaded("huge_storage", "for (let n = 0; n < 50; n++) try { localStorage[n] = sessionStorage[n] = 's'.repeat(1e6) } catch {}"),
    plain("drawing_of_billions", f"<svg width=9 height=9><defs><g id=a0><rect width=1 height=1 /></g>{SVG}</defs><use href=#a8 /></svg>"),
    plain("picture_bomb", "<img src=page>", files={"page": Answer(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\xff\xff\x00\x00\xff\xff\x08\x02\x00\x00\x00" + b"\x00" * 64, "image/png")}),
    plain("packed_page", FOLLOW, files={"page": packed("text/html", bomb(b"<p>start<!--", b" ", 100, b"--><p>end"))}),
    plain("packed_script", "<script src=page></script>", files={"page": packed("text/javascript", bomb(b"1 //", b"x", 100))}),
    pressed("packed_answer", "await (await fetch('page')).text()", files={"page": packed("application/json", bomb(b'"', b"x", 100, b'"'))}),
    # servers
    plain("endless_page", FOLLOW, files={"page": ENDLESS}),
    plain("endless_script", "<script async src=page></script>", files={"page": Answer(b"//", "text/javascript", endless=b"x" * 4000)}),
    plain("endless_picture", "<img src=page>", files={"page": Answer(b"\x89PNG\r\n\x1a\n", "image/png", endless=b"x" * 4000)}),
    plain("endless_headers", FOLLOW, files={"page": Answer(raw=b"HTTP/1.1 200 OK\r\n", endless=b"X-More: " + b"x" * 900 + b"\r\n")}),
    plain("endless_parts", FOLLOW, files={"page": Answer(b"--b\r\n", "multipart/x-mixed-replace; boundary=b",
                                                         endless=b"Content-Type: text/html\r\n\r\n<p>part\r\n--b\r\n")}),
    plain("promises_more_than_it_sends", FOLLOW, files={"page": Answer(
        raw=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999999999\r\n\r\n<p>a little")}),
    *(plain(f"status_{status}", FOLLOW + "<script>fetch('page').catch(() => 0)</script>", files={"page": Answer(
        raw=f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi".encode())})
      for status in ("299", "420 ", "444", "499", "599", "999", "000", "-1")),
    # what a page makes and sends
    loaded("thirty_large_bodies", "const b = 'b'.repeat(1e7);"
           "for (let n = 0; n < 30; n++) fetch('/NAME/' + n, {method: 'POST', body: b}).catch(() => 0)"),
    loaded("huge_blob", "const b = new Blob([new Uint8Array(3e8).fill(98)]);"
           "fetch(URL.createObjectURL(b)).then(r => r.arrayBuffer()).catch(() => 0);"
           "fetch('/NAME/b', {method: 'POST', body: b}).catch(() => 0)"),
)  # fmt: skip
WHOLE = {
    "whole_packed": packed("text/html", bomb(b"<title>whole</title><button>Go</button><!--", b" ", 100, b"-->")),
    "whole_endless": Answer(b"<title>whole</title><button>Go</button>", endless=b"<p>and on" * 500),
    "whole_never_answers": Answer(raw=b"HTTP/1.1 200 OK\r\n", endless=b"X-More: " + b"x" * 900 + b"\r\n"),
    "whole_without_phrase": Answer(
        raw=b"HTTP/1.1 430\r\nContent-Type: text/html\r\nContent-Length: 19\r\nConnection: close\r\n\r\n<button>Go</button>"
    ),
    "whole_redirects": Answer(b"", "text/html", 302, (("Location", "?again"),)),
    "whole_of_no_type": Answer(b"\x00\x01\x02" * 1000, "application/x-odd"),
}
"""Documents that are the start page themselves."""
