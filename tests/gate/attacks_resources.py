# ruff: noqa: E501 - pages of attacks are one line each
"""Pages that use up a resource, two of each kind. All are bounded in number, time or size."""

from __future__ import annotations

from .attack import Attack
from .attacks_neighbours import PACKED, SECONDS, bomb, every, heavy
from .sites import Reply

HTML = (("Content-Encoding", "gzip"), ("Content-Type", "text/html"))
END = f"const end = Date.now() + {SECONDS}000; "
"""Beginning of a worker's script."""


def workers(number: int, code: str) -> str:
    """Return a script that starts workers, which end after a while."""
    return f"const u = URL.createObjectURL(new Blob([`{END}{code}`])); const w = Array.from({{length: {number}}}, () => new Worker(u)); await sleep({SECONDS}000); w.forEach(x => x.terminate())"


ATTACKS: tuple[Attack, ...] = (
    heavy("gzip_in_parts", "for (let n = 0; n < 6; n++) { get('/@name/bomb?' + n).then(r => r.text()); document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: '/@name/bomb?s' + n})) }",
          files={"bomb": Reply(bomb(120), headers=PACKED)}),
    heavy("gzip_in_frames", "for (let n = 0; n < 4; n++) box.append(Object.assign(document.createElement('iframe'), {src: '/@name/bomb?' + n}))",
          files={"bomb": Reply(bomb(300), headers=HTML)}),
    heavy("stream_that_is_read", "for (let n = 0; n < 5; n++) (async () => { const r = (await fetch('/@name/stream?' + n)).body.getReader(); while (on() && !(await r.read()).done); r.cancel() })(); for (let n = 0; n < 5; n++) new EventSource('/@name/events?' + n)",
          files={"stream": Reply(b"x", endless=b"x" * 4000), "events": Reply(b"data: x\n\n", headers=(("Content-Type", "text/event-stream"),), endless=b"data: y\n\n" * 300)}),
    heavy("stream_as_document", "box.append(Object.assign(document.createElement('iframe'), {src: '/@name/page'})); await sleep(500); location = '/@name/page'",
          files={"page": Reply(b"<title>On</title><p>start", endless=b"<p>and on" * 400)}),
    heavy("console_of_the_page", every("console.error('e'.repeat(3000), document, new Error('x'), [{a: [k]}]); Promise.reject(new Error('r' + k)); setTimeout(() => { throw k }, 0)", 300)),
    heavy("console_of_workers", workers(4, "while (Date.now() < end) console.log('c'.repeat(2000), {a: [1, {b: 2}]})")),
    heavy("download_of_many_files", every("const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['d'.repeat(2e5)])); a.download = Math.random() + '.bin'; a.click()", 2)),
    heavy("download_without_end", "for (let n = 0; n < 4; n++) { const a = document.createElement('a'); a.href = '/@name/file?' + n; a.download = 'f' + n; a.click(); await sleep(50) }",
          files={"file": Reply(b"x", headers=(("Content-Type", "application/octet-stream"), ("Content-Disposition", "attachment; filename=f.bin")), endless=b"x" * 4000)}),
    heavy("blob_of_300_megabytes", "const b = new Blob([new Uint8Array(3e8).fill(98)]); await fetch(URL.createObjectURL(b)).then(r => r.arrayBuffer()); get('/@name/b', {method: 'POST', body: b})"),
    heavy("blob_in_frames", every("const u = URL.createObjectURL(new Blob([new Uint8Array(3e5), Math.random() + ''], {type: 'text/html'})); const f = document.createElement('iframe'); f.src = u; box.append(f); if (box.children.length > 5) box.firstChild.remove()")),
    heavy("worker_messages", workers(40, "while (Date.now() < end) postMessage('m'.repeat(2000))")),
    heavy("worker_in_workers", workers(3, "const more = depth => { if (depth < 4) for (let n = 0; n < 2; n++) new Worker(URL.createObjectURL(new Blob(['const end = ' + end + '; const depth = ' + (depth + 1) + '; const more = ' + more + '; more(depth); while (Date.now() < end);']))) }; more(0)")),
    heavy("nodes_in_a_million", "const d = document.createElement('div'); d.innerHTML = '<i></i>'.repeat(1000000); document.body.append(d)"),
    heavy("nodes_that_change", "const d = document.createElement('div'); d.innerHTML = '<ul>'.repeat(300) + '<li title=x><a href=#>a</a>'.repeat(330000); document.body.append(d);" + every("d.firstChild.title = Math.random(); d.style.columnCount = 1 + Math.random() * 3 | 0; document.body.offsetHeight")),
    heavy("canvas_of_many_pixels", "for (let n = 0; on() && n < 20; n++) { const c = document.createElement('canvas'); c.width = c.height = 4000; const x = c.getContext('2d'); x.fillStyle = '#' + (100 + n); x.fillRect(0, 0, 4000, 4000); box.append(c); await sleep(1) }"),
    heavy("canvas_that_is_read", "const c = document.createElement('canvas'); c.width = c.height = 2000; box.append(c); const x = c.getContext('2d'); " + every("x.fillStyle = '#' + (Math.random() * 999 | 0); x.fillRect(Math.random() * 2000, 0, 99, 2000); c.toDataURL(); c.toBlob(() => 0); x.getImageData(0, 0, 2000, 2000)")),
    heavy("history_of_large_states", every("document.title = Math.random() + 't'.repeat(60000); history.pushState('s'.repeat(1e5), '', '#' + Math.random()); location.hash = Math.random()", 10)),
    heavy("history_back_and_forth", "for (let n = 0; n < 30; n++) history.pushState(n, '', '?' + n); " + every("history.back(); history.forward(); history.go(-Math.random() * 9 | 0)", 20)),
    heavy("memory_in_buffers", "globalThis.kept = []; for (let n = 0; on() && n < 20; n++) { kept.push(new Uint8Array(64e6).fill(n)); await sleep(1) }"),
    heavy("memory_in_objects", "globalThis.kept = []; while (on() && kept.length < 60) { kept.push(Array.from({length: 1e5}, (_, k) => ({k, name: 'n' + k, more: [k]}))); await sleep(1) }"),
    heavy("disk_by_databases", "const db = await new Promise(r => { const q = indexedDB.open('d'); q.onupgradeneeded = () => q.result.createObjectStore('s'); q.onsuccess = () => r(q.result) }); for (let n = 0; on() && n < 40; n++) await new Promise(r => { const t = db.transaction('s', 'readwrite'); t.objectStore('s').put(new Uint8Array(5e6).map(() => Math.random() * 256), n); t.oncomplete = t.onabort = t.onerror = r })"),
    heavy("disk_by_files", "const root = await navigator.storage.getDirectory(), c = await caches.open('c'), part = new Uint8Array(5e6).map(() => Math.random() * 256); for (let n = 0; on() && n < 30; n++) { await c.put('/@name/c' + n, new Response(part)); const w = await (await root.getFileHandle('f' + n, {create: true})).createWritable(); await w.write(part); await w.close() } for (let n = 0; n < 50; n++) try { localStorage[n] = 's'.repeat(1e6) } catch {}"),
    heavy("nesting_of_elements", "let e = document.body; for (let n = 0; n < 20000; n++) e = e.appendChild(document.createElement('div')); e.append('end')"),
    heavy("nesting_of_frames_and_shadows", "let e = document.body; for (let n = 0; n < 400; n++) { e = e.appendChild(document.createElement('div')); e = e.attachShadow({mode: 'open'}) } let d = document; for (let n = 0; n < 60; n++) { const f = d.createElement('iframe'); d.body.append(f); d = f.contentDocument }"),
)  # fmt: skip
KINDS = ("gzip", "stream", "console", "download", "blob", "worker", "nodes", "canvas", "history", "memory", "disk", "nesting")
"""Kinds of resources: the first words of the names."""
