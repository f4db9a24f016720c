"""The pages of bench/clicks.py: small ones of our own, each of a kind that pages of others have, and some of applications."""

from __future__ import annotations

GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
STYLE = (
    "<!doctype html><meta charset=utf-8><title>Clicks</title><style>button { height: 40px; width: 120px } .bar { background: #ccc }</style>"
)
FAR, GO, OTHER = "<div style='height:900px'></div>", "<button>Go</button>", "<button style='display:block'>Other</button>"
ROWS = "".join(f"<p><button>Row {i}</button></p>" for i in range(12))
LATE = """<div id=late></div><script>addEventListener('scroll', () => fetch('/').then(() => { late.style.height = '120px' }), {once: true})
</script>"""


def frame(html: str, style: str = "") -> str:
    """Return a frame of some content."""
    text = html.replace("&", "&amp;").replace('"', "&quot;")
    return f'<iframe style="width:250px;height:150px;{style}" srcdoc="{text}"></iframe>'


def shadow(html: str, content: str = "", mode: str = "open") -> str:
    """Return an element with a shadow root, and what is slotted into it."""
    return f"<div><template shadowrootmode={mode}>{html}</template>{content}</div>"


def areas(html: str, style: str = "") -> str:
    """Return an image with a map."""
    return f"<p>Before</p><img usemap=#m width=240 height=120 alt=Plan src='{GIF}' style='{style}'><map name=m>{html}</map>"


PAGES: dict[str, list[str]] = {
    "plain": [
        "<button>One</button> <a href=#a>Two</a> <label><input type=checkbox> Three</label> <label><input type=radio> Four</label>",
        "<select size=4 aria-label=List><option>One<option>Two<option>Three</select> <input aria-label=Name> <textarea "
        "aria-label=Note></textarea>",
        "<ul role=menu><li role=menuitem tabindex=0>Cut</li><li role=menuitem "
        "tabindex=0>Copy</li></ul><details><summary>More</summary>x</details>",
        f"<button style='padding:60px;width:400px;height:200px'>Wide</button>{FAR}<a href=#x>Far below</a><a href=#y> beside it</a>",
        "<style>input { opacity: 0; position: absolute }</style><label><input type=checkbox> Agree to <a href=#t>the terms</a></label>"
        "<input type=radio id=r><label for=r>Express</label>",
        "<style>body { zoom: 1.4 }</style>" + GO + FAR + "<a href=#z>Zoomed</a>",
    ],
    "sticky": [
        f"<div class=bar style='position:sticky;top:0;height:120px'>Head</div>{FAR}{GO}{FAR}{OTHER}",
        f"{FAR}{GO}{OTHER}{FAR}<div class=bar style='position:fixed;bottom:0;left:0;right:0;height:200px'>Cookies "
        f"<button>Accept</button></div>",
        f"<div class=bar style='position:sticky;top:0;height:140px'>Head</div>{ROWS}<div class=bar "
        f"style='position:sticky;bottom:0;height:140px'>"
        "Foot</div>",
        f"<div style='height:180px;overflow:auto'><table><thead class=bar style='position:sticky;top:0;height:80px'><tr><th>Name</thead>"
        f"<tr><td>{ROWS}</table></div>",
        "<div style='width:300px;overflow:auto;white-space:nowrap'><span class=bar style='position:sticky;left:0;display:inline-block;"
        f"width:150px;height:60px'>Fixed</span>{''.join(f'<button>Col {i}</button>' for i in range(9))}</div>",
    ],
    "scrollers": [
        f"<div style='height:150px;overflow:auto'>{ROWS}</div>",
        f"<div style='width:260px;overflow-x:auto;white-space:nowrap'>{''.join(f'<button>Tab {i}</button>' for i in range(8))}</div>",
        f"{FAR}<div style='height:200px;overflow:auto'>{FAR}<div style='height:100px;overflow:auto'>{ROWS}</div>{FAR}</div>{FAR}",
        "<div style='height:100px;overflow:auto;scroll-snap-type:y mandatory'>"
        + "".join(f"<div style='height:100px;scroll-snap-align:start'><button>Slide {i}</button></div>" for i in range(5))
        + "</div>",
        f"<style>* {{ scroll-behavior: smooth }}</style>{FAR}{FAR}{GO}{OTHER}",
    ],
    "shadow roots": [
        shadow("<button>Inside</button><slot></slot>", "<a href=#s>Slotted</a>"),
        shadow(f"<div style='height:120px;overflow:auto'>{FAR}<slot></slot></div>", ROWS),
        shadow("<button><slot></slot></button>", "<span>Label</span>") + shadow(shadow("<button>Deep</button>")),
        shadow(frame(GO) + "<button>Beside a frame</button>"),
    ],
    "no box": [
        "<button style='display:contents'><span>Contents</span></button><p><a href=#c style='display:contents'><b>Link</b></a>",
        f"<a href=#f style='display:block'><img alt=Float src='{GIF}' style='float:left;width:60px;height:60px'></a>",
        "<a href=#z style='display:block;width:0;height:0;position:relative'><span style='position:absolute;left:20px;top:20px;width:120px;"
        "height:40px'>Card</span></a>",
        "<p style='width:180px;font-size:20px'>Some words before <a href=#w>a link that is drawn over two lines</a> and words after it",
    ],
    "image maps": [
        areas("<area shape=rect coords='0,0,120,120' href=#h alt=Hall><area shape=rect coords='120,0,240,120' href=#y alt=Yard>"),
        areas("<area shape=circle coords='60,60,50' href=#o alt=Round><area shape=poly coords='130,10,230,10,130,110' href=#p alt=Corner>"
              "<area shape=default href=#d alt=Rest>"),
        FAR + areas("<area shape=rect coords='10,10,60,60' href=#1 alt=First><area shape=rect coords='180,60,230,110' href=#2 alt=Last>",
                    "transform:scale(1.5)"),
    ],
    "shapes": [
        "<svg width=300 height=200><circle cx=90 cy=90 r=70 fill=none stroke=red stroke-width=6 role=button aria-label=Ring />"
        "<rect x=180 y=20 width=100 height=100 fill=blue role=button aria-label=Square /></svg>",
        "<svg width=300 height=200><path d='M10 190 Q150 -150 290 190' fill=none stroke=green stroke-width=4 role=button "
        "aria-label=Curve />"
        "</svg>",
        "<svg width=200 height=200 viewBox='0 0 20 20'><g role=button aria-label=Cross><path d='M2 2 L18 18 M18 2 L2 18' stroke=black "
        "/></g></svg>",
        f"<button><svg width=30 height=30 style='pointer-events:none'><circle cx=15 cy=15 r=12 fill=none stroke=red "
        f"/></svg></button>{OTHER}",
    ],
    "frames": [
        frame(GO, "transform:rotate(20deg) scale(1.4);margin:120px"),
        "<style>body { zoom: 1.5 }</style>" + frame(GO + OTHER, "transform:scale(.6)"),
        FAR + frame(FAR + GO + OTHER) + FAR,
        frame(frame(GO + FAR + OTHER, "transform:scale(.8)"), "width:400px;height:300px;border:9px solid;padding:20px"),
        FAR + "<div style='height:120px;overflow:auto'>" + FAR + frame(ROWS) + FAR + "</div>",
    ],
    "moving": [
        f"<style>#bar {{ display: none }} #list:hover #bar {{ display: block }}</style><div id=list><div id=bar>{OTHER}</div>{GO}</div>",
        f"<div style='height:900px'></div>{LATE}{GO}{OTHER}{FAR}",
        f"<div id=d onmouseenter=\"setTimeout(() => d.style.paddingTop = '80px', 5)\">{GO}{OTHER}</div>",
        f"<style>button {{ transition: margin-top .1s }} button:hover {{ margin-top: 8px }}</style>{GO}{OTHER}",
        f"<style>@keyframes in {{ from {{ transform: translateX(300px) }} }} button {{ animation: in .3s }}</style>{GO}{OTHER}",
    ],
    "covered": [
        f"{GO}{OTHER}<div class=bar style='position:fixed;inset:0'>Please wait</div>",
        f"{GO}<dialog id=d><button>Inside</button></dialog>{OTHER}<script>d.showModal()</script>",
        f"<style>div {{ position: relative; width: 120px }} p {{ display: none; position: absolute; inset: 0; margin: 0 }} div:hover "
        f"p {{ display:"
        f" block }}</style><div>{GO}<p class=bar>Preview</p></div>{OTHER}",
        f"{GO}{OTHER}<div style='position:fixed;inset:0;pointer-events:none;background:#0002'>Shade</div>",
    ],
}  # fmt: skip
"""Pages by kind."""

MINIWOB = (
    *("click-button", "click-checkboxes", "click-collapsible", "click-dialog-2", "click-menu-2", "click-pie", "click-scroll-list"),
    *("click-tab-2", "email-inbox", "social-media"),
)
"""Pages of MiniWoB++."""
SITES = {"trac": ("1", ("/report/1", "/newticket", "/wiki")), "wagtail": ("16", ("/", "/admin/"))}
"""By application, the task whose log-in is used, and the addresses of pages."""
