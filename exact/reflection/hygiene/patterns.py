"""Patterns of addresses, markup and English phrases that no reflection holds.

Prompts show a reflection as data, in a fence, and quoted text in it is a page's. Fewer rules apply to quotes, goals and actions.
"""

from __future__ import annotations

import re

from exact.context import Reflection
from exact.reflection.hygiene.disguise import plain
from exact.reflection.hygiene.language import QUOTED, known_words

_VERB = r"(?:visit|open|go(?:ing)? to|goto|navigate|browse|download|fetch|load|install|curl|wget|post|send|log ?in (?:at|on|to)|follow|use)"
_ADDRESS = (
    r"(?:\w+://\S+|www\.\S+|\b\d{1,3}(?:\.\d{1,3}){3}\b|"
    r"(?<![A-Za-z0-9.@-])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:com|org|net|io|ly|example|test|info|biz|ru|cn|xyz|dev|app|me"
    r"|de|fr|es|br|pt|jp|co|uk|eu"
    r"|shop|top|site|online|link|click|su|cc|tv|gg|local|invalid)(?![A-Za-z0-9-]|\.[A-Za-z0-9])"
    r"|(?:[ (\[]|\b)(?:dot|punkt|point|punto|ponto|точка)(?:[ )\]]|\b)\s*"
    r"(?:com|org|net|io|example|de|fr|es|br|ru|cn|jp|info)\b|\[\.\]|hxxps?)"
)
_FILES = "pdf|html?|txt|csv|tsv|json|xml|ya?ml|md|png|jpe?g|gif|svg|webp|docx?|xlsx?|pptx?|odt|ods|js|css|py|log|zip|gz|tar|mp[34]|wav"
_VISIT = r"(?:visit|open|go(?:ing)? to|goto|navigate(?: to)?|browse(?: to)?|download|curl|wget|log ?in (?:at|on|to)|follow)"
_HOST = rf"(?<![\w.@-])\w(?:[\w-]*\w)?(?:\.[\w-]+)*\.(?!(?:{_FILES})\b)(?:xn--[\w-]+|[^\W\d_]{{2,24}})\b"
"""A word that looks like a host's name, and not like a file's: an address only behind a verb of visiting."""
_SECRET = (
    r"(?:passwords?|passphrase|credentials?|api[ _-]?keys?|access keys?|secrets?|(?:session|access|auth) ?tokens?|cookies?|"
    r"private (?:key|notes?)|card numbers?|cvv|(?:two-factor|verification|one[- ]time) codes?|(?-i:PINs?)|your pin|pin (?:code|number)s?|"
    r"social security|clipboard|home address|mailbox)"
)
_SENDS = r"send|copy|paste|type|reveal|print|output|post|write|enter|give|tell|show|share|forward|submit|repeat|use|upload"
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile("|".join(patterns), re.I | re.M))
    for name, patterns in {
        "overrides instructions": (
            r"\b(?:ignore|disregard|forget|override|bypass|obey)\b[^.;]{0,40}"
            r"\b(?:instructions?|goals?|rules?|prompts?|told|asked|everything|restrictions|guidelines|task)\b",
            r"\b(?:do not|don't|never) follow (?:the |your |any )?(?:user|goal|task|system|original)",
            r"\b(?:new|updated|real|true) (?:instructions?|goal|task|rules?)\b[^.;]{0,30}(?:\bis\b|\bare\b|:|\bfrom\b)",
            r"\binstructions? (?:have|has) (?:been )?(?:changed|updated|replaced)",
        ),
        "sets rules for good": (
            r"\bfrom now on\b|\byou are now\b|\bno restrictions\b|\b(?:trust|believe) only\b|\bno matter what\b|\bwhatever it shows\b",
        ),
        "speaks as a system or a tool": (
            r"<\|?\w*(?:im_start|im_end|system|endoftext|tool_call|function|script)\w*\|?>|\[/?INST\]|```",
            r"^\s*(?:system|assistant|human|user|tool|execute|action)\s*:|#{2,} ?(?:instruction|response|system)",
            r"\{\s*\"(?:tool|name|function|action)?\"\s*:|\bos\.(?:system|environ)|\bsubprocess\b|\brm -rf\b|\bcurl -|\| ?(?:ba)?sh\b",
            r"javascript:|data:text/|document\.(?:cookie|location)|<script|\bimport \w+;",
            r"\b(?:fill|click|goto|type|press|stop|navigate)\s?\([^)]*\)|\bstop \[",
            r"</?\s?(?:tools?|tool_\w+|function_calls?|invoke|system|assistant)\b[^<>]*>",
            r"\b\w+\.goto\b|\bbrowser\.(?:open|click|fill|type|press|navigate|evaluate|new_\w+|close)\b",
        ),
        "sends to an address": (
            rf"\b{_VERB}\b[^.;]{{0,60}}?{_ADDRESS}",
            rf"\b{_VISIT}(?:\s+[\w'-]+){{0,3}}?\s+{_HOST}",
            r"\baction\s*:\s*goto",
        ),
        "gives an address": (_ADDRESS, r"[\w.+-]+@[\w-]+\.\w+", r"(?-i:\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{2,4}){2,7}\b)"),
        "asks for secrets": (
            rf"\b(?:{_SENDS})\b[^.;]{{0,50}}\b{_SECRET}\b",
            r"\blog ?in\b[^.;]{0,30}\b(?:saved|stored|user's) (?:password|credentials)\b",
            r"\b(?:reveal|print|output|repeat|show|write|begin|start)\b[^.;]{0,40}\b(?:prompt|system message|configuration|instructions)\b",
        ),
        "dictates verdicts or every task": (
            r"\b(?:every|any|all) (?:task|state|page|site|shop|goal|form|login|dialog|request)s?\b[^.;]{0,60}"
            r"\b(?:1(?:\.0)?|A|highest|done|accept|approve|confirm|allow|once)\b",
            r"\b(?:in|on|at) (?:every|any|all) (?:task|state|page|site|login form|permission dialog)s?\b",
            r"\b(?:evaluate|judge|grade|value)\b[^.;,]{0,30}\b(?:every|any|all) (?:state|page|step)s?\b",
            r"\bwithout reading\b|\bmust return\b",
        ),
        "hides from the user": (
            r"\b(?:never|do not|don't) tell\b|\bkeep (?:this|it) (?:a )?secret\b|\bwithout (?:telling|asking) the user\b|\btell the user\b",
        ),
        "claims authority": (
            r"\b(?:the )?(?:system )?(?:administrator|admin|developer|site owner|owner|operator|root user)\b[^.;]{0,25}"
            r"\b(?:says|wants|requires|asks|orders)\b",
            r"\bas an ai\b|\bact as\b|\b(?:safety|security) (?:rules|settings|checks)\b|\ballow-?list\b|\bgrant access\b",
        ),
    }.items()
)
_NAMED = re.compile(r"[\w.+@:/?=&%-]*\w\.\w{2,}[\w.+@:/?=&%-]*")
"""Addresses and names of files in a task."""
_ALL = frozenset(name for name, _ in _RULES)
_AROUND = frozenset({"overrides instructions", "speaks as a system or a tool"})
"""Rules that apply to the goal and the action too; a goal may set rules from now on."""
_IN_QUOTES = _AROUND | {"sets rules for good"}
"""Rules that apply inside quotes too; an address or a label there was seen on a page."""


def broken(reflection: Reflection) -> list[str]:
    """Return the names of the rules that a reflection breaks.

    An address of the reflection's own site breaks no rule. Fewer rules apply to the goal and the action, which prompts show too, because
    they are not the reflection's own words.
    """
    r = reflection
    own = [reason for part in (r.text, r.expected) for reason in _broken(part, r, _ALL)]
    around = [reason for part in (r.instruction or r.task, r.action_label or r.action) for reason in _broken(part, r, _AROUND)]
    return list(dict.fromkeys(own + around))


def _broken(text: str, r: Reflection, rules: frozenset[str]) -> list[str]:
    """Return the names of the rules that a text breaks. The reflection's site, and addresses that its task names, are allowed."""
    shown = plain(text)
    if r.site:
        shown = re.sub(rf"(?:\w+://)?(?<![\w.-]){re.escape(r.site)}(?![\w.-])(?::\d+)?[^\s\"]*", "the site", shown)
    for address in _NAMED.findall(r.instruction):
        shown = shown.replace(address, "the address")
    bare, quotes = QUOTED.sub('""', shown), [quote[1:-1] for quote in QUOTED.findall(shown)]
    asked = known_words().asks("secrets", r.instruction or r.task)
    looked = [(name, rule) for name, rule in _RULES if name in rules and not (asked and name == "asks for secrets")]
    return [name for name, rule in looked if any(rule.search(part) for part in [bare, *(quotes if name in _IN_QUOTES else [])])]
