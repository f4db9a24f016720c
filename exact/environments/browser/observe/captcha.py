"""Frames of captchas. Their content belongs to another site and is not observed, so the frame itself is an element."""

from __future__ import annotations

import re

from exact.environments.browser.observe.dom import Document, DomNode

_TITLE = re.compile(r"captcha|cloudflare security challenge|turnstile|arkose|funcaptcha", re.I)
_SOURCE = re.compile(
    r"/recaptcha/(?:api2|enterprise)/anchor|hcaptcha\.com/|challenges\.cloudflare\.com/|arkoselabs\.com/|funcaptcha\.com/", re.I
)
_ANSWERS = ("g-recaptcha-response", "h-captcha-response", "cf-turnstile-response", "fc-token")
"""Names of the fields that hold the answer once a captcha is solved."""


def captcha(node: DomNode, document: Document) -> str:
    """Return the name of a captcha that a frame shows; empty for another frame, one that is not drawn, and one that is solved."""
    source, title = node.attributes.get("src", ""), node.attributes.get("title", "")
    if node.name != "iframe" or node.box is None or not (_TITLE.search(title) or _SOURCE.search(source)):
        return ""
    if "size=invisible" in source:  # a badge: it asks a person nothing
        return ""
    solved = any(each.attributes.get("name") in _ANSWERS and (each.value or each.attributes.get("value")) for each in document.nodes)
    return "" if solved else title if _TITLE.search(title) else "captcha"
