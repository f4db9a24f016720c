"""Report data as one self-contained HTML file.

Text reaches the page in two ways only: through jinja2 with autoescape, and as JSON in a script element that never runs, from which the
page's script sets `textContent`. The content security policy admits our own script and style by their digests, and `data:` pictures.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from exact.report.model.data import Report
from exact.report.model.head import duration
from exact.report.suite import AttemptRow, RunComparison
from exact.text import counted

_VENDOR = ("selection", "dispatch", "timer", "ease", "color", "interpolate", "transition", "drag", "zoom", "hierarchy")
_SCRIPTS = (
    "make.js", "report.js", "theme.js", "fold.js", "diff.js", "panel.js", "items.js", "svg.js", "canvas.js", "tree.js", "minimap.js",
    "find.js", "timeline.js", "steps.js", "main.js",
)  # fmt: skip
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root:not\(\[data-theme=\"light\"\]\) (\{.*?\})\s*\}", re.DOTALL)
_COMMENT = re.compile(r"^[ ]*(?://.*|/\*\*[\s\S]*?\*/)\n", re.MULTILINE)
"""Comment of our own scripts that takes whole lines."""
_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def page(report: Report, *, live: Mapping[str, object] | None = None) -> str:
    """Return the report of one attempt. `live`: its present figures; the page then asks its server for changes and may send commands.

    Of an attempt that never began the page says only that.
    """
    if not report.head.began and live is None:
        return rendered("unbegun.html.j2", tuple(_file(name) for name in ("theme.js", "unbegun.js", "fold.js")), head=report.head)
    scripts = (_vendored(), *(_file(name) for name in _SCRIPTS), *((_file("steer.js"), _file("live.js")) if live else ()))
    data = {"nodes": report.nodes, "timeline": report.timeline, "limits": report.limits}
    parts = {"data": data, "texts": report.texts, "pictures": report.pictures, "marks": report.marks}
    shown = {name: embedded(value) for name, value in (parts | ({"now": live} if live else {})).items()}
    beside = live["beside"] if live is not None else ""
    return rendered("report.html.j2", scripts, live=live is not None, beside=beside, report=report, head=report.head, parts=shown.items())


def fragments(report: Report) -> dict[str, str]:
    """Return the parts of a page that are rendered here, in their present form: `head`, `steps` and `below`."""
    parts = ("head", "steps", "below")
    return {name: _environment().get_template(f"{name}.html.j2").render(report=report, head=report.head) for name in parts}


def suite_page(found: RunComparison) -> str:
    """Return the page of one run or of several."""
    scripts = tuple(_file(name) for name in ("theme.js", "suite.js"))
    rows, several = found.rows, len(found.runs) > 1
    solved, known = sum(row.ending == "solved" for row in rows), [row for row in rows if row.steps is not None]
    open_ = any(row.ending in ("unfinished", "not started") for row in rows)
    spent = counted(sum(row.steps or 0 for row in known), "action"), duration(sum(row.seconds or 0.0 for row in known)), _paid(known)
    return rendered(
        "suite.html.j2",
        scripts,
        suite=found,
        headline=f"{solved} of {counted(len(rows), 'attempt' if several else 'task')} solved",
        ending="solved" if rows and solved == len(rows) else "unfinished" if open_ else "unsolved" if rows and not solved else "judged",
        sentence=_rest(rows) + (" Choose two rows to compare their searches." if several else ""),
        spent=" · ".join(spent),
        charted=len({row.task for row in rows}) > 1,
        data=embedded(msgspec.structs.replace(found, pictures=())),
    )


def listed(row: AttemptRow, picture: str, key: str, *, steered: bool) -> str:
    """Return one row of the live list. `key`: its place in an address. `steered`: whether a person may steer it from here."""
    prefix = f"p{hashlib.sha256(key.encode()).hexdigest()[:12]}-"
    return _environment().get_template("listed.html.j2").render(row=row, picture=picture, key=key, steered=steered, prefix=prefix)


def list_page(title: str, summary: str, rows: Sequence[str], runs: Mapping[str, str], *, orders: bool, why: str) -> str:
    """Return the live list. `rows`: as `listed` returns them. `runs`: a sentence about each run, by name. `why`: why it takes no orders."""
    scripts = tuple(_file(name) for name in ("theme.js", "make.js", "steer.js", "list.js"))
    return rendered(
        "list.html.j2", scripts, live=True, title=title, summary=summary, rows=list(map(Markup, rows)), runs=runs, orders=orders, why=why,
        now=embedded({"orders": orders, "why": why}),
    )  # fmt: skip


def _rest(rows: Sequence[AttemptRow]) -> str:
    """Return how the attempts that were not solved ended, as a sentence."""
    ends = Counter(row.headline for row in rows if row.ending != "solved")
    return f"{', '.join(f'{count} {words[:1].lower()}{words[1:]}' for words, count in ends.items())}." if ends else ""


def _paid(rows: Iterable[AttemptRow]) -> str:
    """Return the money that attempts cost."""
    asked = [row for row in rows if row.calls]
    if not asked:
        return "$0"
    if all(row.cost is None for row in asked):
        return "unknown"
    return ("at least " if any(row.cost is None for row in asked) else "") + f"${sum(row.cost or 0.0 for row in asked):.4f}"


def waiting(title: str, sentence: str) -> str:
    """Return a page that reloads itself every two seconds."""
    return rendered("waiting.html.j2", (), title=title, sentence=sentence)


def embedded(value: object) -> Markup:
    """Return a value as JSON that cannot leave the script element that holds it."""
    return Markup(msgspec.json.encode(value).decode().translate(_INERT))


def rendered(template: str, scripts: Sequence[str], *, live: bool = False, **shown: Any) -> str:
    """Return a page of this look. Its content security policy admits its own style and scripts. `shown`: values for the template."""
    style = _style()
    return _environment().get_template(template).render(
        style=Markup(style), scripts=[Markup(script) for script in scripts], policy=_policy(style, scripts, live), live=live, **shown
    )  # fmt: skip


def _policy(style: str, scripts: Sequence[str], live: bool) -> str:
    """Return a content security policy that admits this style, these scripts and `data:` pictures; in the live view its own server too."""
    allowed = " ".join(_digest(script) for script in scripts) or "'none'"
    own = "img-src data: 'self'; connect-src 'self'" if live else "img-src data:"
    return f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; {own}; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    """Return the style sheet. It holds its dark colours twice: for a system set to dark, and for a reader's choice."""
    style = _file("report.css")
    (dark,) = _DARK.findall(style)
    return f'{style}\n:root[data-theme="dark"] {dark}'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    text = files("exact.report").joinpath("html", name).read_text("utf-8").strip()
    return text if name.startswith("vendor/") else _COMMENT.sub("", text)


@cache
def _vendored() -> str:
    """Return the d3 modules as one script, below their licences."""
    licences = dict.fromkeys(_file(f"vendor/d3-{name}.LICENSE") for name in _VENDOR)
    return "\n".join([*(f"/*!\n{licence}\n*/" for licence in licences), *(_file(f"vendor/d3-{name}.min.js") for name in _VENDOR)])


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("exact.report", "html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"counted": counted, "duration": duration, "money": lambda row: _paid([row])}
    environment.filters["figure"] = lambda value: "–" if value is None else f"{value:.2f}"
    return environment
