"""Removal of credentials from traffic before it is recorded: pure functions over text, in linear time.

A credential is recognized by its name: in forms, JSON, scripts, tags, addresses and headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

SCRUBBED = "scrubbed"
"""The text that replaces a credential."""
_NAME = (
    r"(?:(?<!by)(?<!com)(?<!tres)(?<!sur)pass(?!age|eng|ive|ing|ion|ed|er|es)(?:word|wd|code|phrase|key)?|pwd|secret(?!ar)|token(?!i[sz])"
    r"|csrf|xsrf|(?-i:(?<![A-Za-z])[ht]?otp(?![a-z])|Otp|(?<![A-Z])[HT]?OTP)|sess(?:ion)?[_-]?id|\bsid\b|api_?-?key|authori[sz]ation"
    r"|credential|nonce|(?<![a-z])auth(?![a-z]))"
)
_ENDS = rf"{_NAME}s?(?:[_-]?(?:value|hash|raw|string|key|id|\d+))?"
"""The end of a name whose value is a credential, and not a fact about one, such as `token_count`."""
_WORD = re.compile(_NAME, re.IGNORECASE)
_PAIR = rf"(?=[^=&?;#\\]*{_NAME})[^=&?;#\\]*=)(?!\$?\{{)"
_FORM = re.compile(rf"((?:^|&){_PAIR}[^&]+", re.IGNORECASE)
_QUERY = re.compile(rf"((?:[?&;#]|\\u0026){_PAIR}(?:[^&;#\\]|\\(?!u0026))+", re.IGNORECASE)
_INNER = re.compile(rf"((?:%3F|%26|%23)(?=[\w.-]*{_NAME})[\w.-]*%3D)(?:(?!%26|%23)[^&;#\s])+", re.IGNORECASE)
"""A parameter in an address that is itself a parameter of another address."""
_LINK = re.compile(r"""(?<![\w.:@%~+\\/*-])([\w.:@%~+\\/*-]*+)([?#][^\s"'<>`]++)""")
_OPENED = re.compile(r"""[=(,:]\s?["']$""")
_PART = re.compile(rf'name="(?=[^"\r\n]*{_NAME})', re.IGNORECASE)
_JSON = re.compile(rf'("(?=[^"\\\n]*{_NAME})[^"\\\n]*+"\s*+:\s*+")(?:[^"\\\n]|\\.)*+', re.IGNORECASE)
_DATA = re.compile(rf'("[^"\\\n]*?{_ENDS}"\s*+:\s*+)(-?\d[\d.eE+-]*+|true|false|[\[{{])', re.IGNORECASE)
_LEAF = re.compile(r"""[\[\]{}]|("(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)(\s*+:)?|(?<![\w.])-?\d[\d.eE+-]*+|\btrue\b|\bfalse\b""")
_QUOTE = r"""(?:\\*["'`]|&quot;|&\#34;|&\#39;)"""
_ASSIGNMENT = re.compile(
    rf"""(?<![\w$.-])(?P<name>[\w$.-]*?{_ENDS})(?P<close>{_QUOTE}?)\]?\s*+(?P<sign>[:=])\s*+
    (?:(?P<quote>["'`])(?P<value>(?:(?!(?P=quote))[^\\\n]|\\.)+)(?P=quote)
    |(?:\\++["']|&quot;|&\#34;|&\#39;)(?P<inner>(?:[^&"'<>\\\n]|\\++[^"'\\\n])++)(?=\\*["']|&quot;|&\#34;|&\#39;))""",
    re.IGNORECASE | re.VERBOSE,
)
"""A value that a script or a tag gives such a name, also in a string within a string and in an attribute. `value` is not possessive, since
Python 3.11.2 does not match a possessive repeat of a lookahead."""
_CODE = re.compile(r"\s*[+),;\]}](?:.*[+(,\[{=:])?\s*")
"""Code between two strings."""
_PROSE = re.compile(r"(?!(?:bearer|basic|digest|token)\s).*\S\s+\S", re.IGNORECASE | re.DOTALL)
"""Words, such as a label or an error about a password."""
_WORDS = re.compile(r".{0,3}|(?:bearer|basic|digest|token)\s*|omit|include|same-origin|.*\$\{.*", re.IGNORECASE | re.DOTALL)
"""Values in scripts that are not credentials: too short, the prefix of one, how `fetch` uses cookies, a template."""
_TAG = re.compile(r"""<(?:input|meta)\b(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^<>])*+>""", re.IGNORECASE)
_NAMED = re.compile(rf"(?<=[\s\"'])(?:name|id|type)\s*=\s*[\"']?[^\"'>\s]*{_NAME}", re.IGNORECASE)
_VALUE = re.compile(r"""(\b(?:value|content)\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)
_SIGNED = re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
"""JSON web tokens, under any name."""
_COOKIE = re.compile(r"^([^=;]+=)[^;]*")
_DROPPED = ("cookie", "proxy-authorization")
_ADDRESSES = ("location", "content-location", "refresh")
_TARGET = re.compile(r"(?<=<)[^<>]+(?=>)")
_TEXT = ("text/", "json", "xml", "javascript", "x-www-form-urlencoded")


def unchanged(text: str) -> str:
    """Return a text unchanged."""
    return text


def names_credential(name: str) -> bool:
    """Return whether a field of that name holds a credential."""
    return bool(_WORD.search(name))


def headers(given: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield headers without credentials. Cookies keep their names and attributes."""
    for name, value in given:
        if name.lower() == "set-cookie":
            yield name, "\n".join(_COOKIE.sub(rf"\1{SCRUBBED}", line) for line in value.split("\n"))
        elif name.lower() == "link":
            yield name, _TARGET.sub(lambda target: address(target[0]), value)
        elif name.lower() in _ADDRESSES:
            yield name, address(value)
        elif name.lower() not in _DROPPED and (name.lower().startswith("access-control-") or not _WORD.search(name)):
            yield name, value


def address(url: str) -> str:
    """Return a URL without the values of credential parameters, and without user and password."""
    return _SIGNED.sub(SCRUBBED, _scrub_pairs(re.sub(r"^(\w+://)[^/@]*@", r"\1", url)))


def form(body: str) -> str:
    """Return the body of a request, a form in parts or in one line, or JSON, without credentials."""
    if body.startswith("--"):
        return "\r\n--".join(_scrub_part(each) for each in body.split("\r\n--"))
    return _scrub_text(_FORM.sub(rf"\1{SCRUBBED}", body))


def body(data: bytes, kind: str, mask: Callable[[str], str] = unchanged) -> bytes:
    """Return the body of an answer without credentials, by its content type. A body that is not text is returned unchanged."""
    if not any(each in kind.lower() for each in _TEXT):
        return data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "x-www-form-urlencoded" in kind.lower():
        text = _FORM.sub(rf"\1{SCRUBBED}", text)
    text = _TAG.sub(lambda tag: _VALUE.sub(rf'\1"{SCRUBBED}"', tag[0]) if _NAMED.search(tag[0]) else tag[0], text)
    return mask(_scrub_text(text)).encode()


def _scrub_text(text: str) -> str:
    """Scrub JSON, a script or a page."""
    text = _scrub_nested(_JSON.sub(lambda found: found[0] if _is_alternative(found) else f"{found[1]}{SCRUBBED}", text))
    return _SIGNED.sub(SCRUBBED, _LINK.sub(_scrub_link, _ASSIGNMENT.sub(_scrub_assignment, text)))


def _scrub_pairs(text: str) -> str:
    return _INNER.sub(rf"\1{SCRUBBED}", _QUERY.sub(rf"\1{SCRUBBED}", text))


def _scrub_part(part: str) -> str:
    """Scrub one part of a form in parts."""
    head, gap, _ = part.partition("\r\n\r\n")
    return f"{head}{gap}{SCRUBBED}" if gap and _PART.search(head) else part


def _scrub_nested(text: str) -> str:
    """Scrub numbers, booleans, lists and objects of JSON that have credential names. Lists and objects keep their shape."""
    done, at = list[str](), 0
    while found := _DATA.search(text, at):
        done.append(text[at : found.end(1)])
        at = found.end()
        if found[2] not in "[{":
            counts = found[1].lower().rstrip(": \t\r\n").endswith('tokens"') and found[2][0].isdigit()
            done.append(found[2] if counts or _is_alternative(found) else f'"{SCRUBBED}"')
            continue
        done.append(found[2])
        depth = 1
        while depth and (leaf := _LEAF.search(text, at)):
            done += text[at : leaf.start()], leaf[0] if leaf[2] or leaf[0] in "[]{}" or _PROSE.match(leaf[0]) else f'"{SCRUBBED}"'
            at, depth = leaf.end(), depth + (leaf[0] in "[{") - (leaf[0] in "]}")
    return "".join((*done, text[at:]))


def _scrub_assignment(found: re.Match[str]) -> str:
    value = found["value"] or found["inner"]
    before = found.string[max(0, found.start() - 1) : found.start()]
    if found["sign"] == ":":
        stays = _is_alternative(found)
    else:  # the value of `nonce` is also in a header, and code between two strings may look like a value
        stays = found["name"].lower().endswith("nonce") or before in ("?", "&", "#") or (not found["close"] and before == found["quote"])
    if stays or _WORDS.fullmatch(value) or _CODE.fullmatch(value) or _PROSE.match(value):
        return found[0]
    group = "value" if found["value"] else "inner"
    return f"{found.string[found.start() : found.start(group)]}{SCRUBBED}{found.string[found.end(group) : found.end()]}"


def _is_alternative(found: re.Match[str]) -> bool:
    """Return whether a match is not a member of an object but the first of two alternatives: `shown ? "password" : "text"`."""
    return found.string[max(0, found.start() - 32) : found.start()].rstrip(" \t\r\n\"'\\")[-1:] in ("?", "|", "&")


def _scrub_link(found: re.Match[str]) -> str:
    path, rest = found[1], found[2]
    if "/" in path or (not path and _OPENED.search(found.string[max(0, found.start() - 3) : found.start()])):
        return path + _scrub_pairs(rest)
    return found[0]
