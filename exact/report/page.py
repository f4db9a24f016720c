"""Report data as one HTML file that needs nothing else.

Text reaches the page in two ways only: through jinja2 with autoescape, and as JSON in a script element that is never run, from which
the page's script sets `textContent`. The content security policy admits our own script and style by their digests, and `data:` pictures.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import jinja2
import msgspec
from markupsafe import Markup

from exact.report.data import Report

_VENDOR = ("selection", "dispatch", "timer", "ease", "color", "interpolate", "transition", "drag", "zoom", "hierarchy")
_SCRIPTS = ("report.js", "panel.js", "tree.js", "main.js")
_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def page(report: Report) -> str:
    """The report of one attempt."""
    scripts = (_vendored(), *(_file(name) for name in _SCRIPTS))
    data = {"nodes": report.nodes, "texts": report.texts, "pictures": report.pictures}
    return _render("report.html.j2", scripts, report=report, head=report.head, data=embedded(data))


def index(**shown: object) -> str:
    """The page of a whole run."""
    return _render("index.html.j2", (), **shown)


def embedded(value: object) -> Markup:
    """JSON that cannot leave the script element it stands in."""
    return Markup(msgspec.json.encode(value).decode().translate(_INERT))


def _render(template: str, scripts: Sequence[str], **shown: object) -> str:
    style = _file("report.css")
    return _environment().get_template(template).render(
        style=Markup(style), scripts=[Markup(script) for script in scripts], policy=_policy(style, scripts), **shown
    )  # fmt: skip


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Nothing but this style, these scripts and pictures in data: URLs."""
    allowed = " ".join(_digest(script) for script in scripts) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return files("exact.report").joinpath("html", name).read_text("utf-8").strip()


@cache
def _vendored() -> str:
    """The d3 modules as one script, below their licences."""
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
    environment.filters["figure"] = lambda value: "–" if value is None else f"{value:.2f}"
    return environment
