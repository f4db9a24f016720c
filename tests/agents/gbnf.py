"""Random sentences of a grammar in the subset of GBNF that `exact.agents.policy.llm` writes."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(
    r"""\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\])"""
    r"|(?P<repeat>\{\d+,\d+\}|\?)|(?P<name>[\w-]+)|(?P<sign>[()|]))"
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class Grammar:
    """A grammar that is read at once: any text outside the subset is a ValueError."""

    def __init__(self, text: str) -> None:
        self.rules = {}
        for line in text.splitlines():
            name, _, body = line.partition(" ::= ")
            tokens = []
            at = 0
            while body[at:].strip():
                match = _TOKEN.match(body, at)
                if not match:
                    raise ValueError(f"not in the subset: {body[at:]!r}")
                tokens.append((match.lastgroup, match[match.lastgroup or 0]))
                at = match.end()
            node, rest = self._alternatives(tokens)
            if rest or name in self.rules:
                raise ValueError(f"malformed rule {name}")
            self.rules[name] = node

    def sentence(self, rng: random.Random, rule: str = "root") -> str:
        return self._say(self.rules[rule], rng)

    def _alternatives(self, tokens):
        ways, (way, tokens) = [], self._sequence(tokens)
        ways.append(way)
        while tokens and tokens[0] == ("sign", "|"):
            way, tokens = self._sequence(tokens[1:])
            ways.append(way)
        return ("any", ways), tokens

    def _sequence(self, tokens):
        parts = []
        while tokens and tokens[0] not in (("sign", "|"), ("sign", ")")):
            kind, text = tokens[0]
            if kind == "repeat":
                low, high = (0, 1) if text == "?" else map(int, text[1:-1].split(","))
                parts[-1] = ("repeat", parts[-1], low, high)
                tokens = tokens[1:]
            elif text == "(":
                node, tokens = self._alternatives(tokens[1:])
                assert tokens[0] == ("sign", ")")
                parts.append(node)
                tokens = tokens[1:]
            else:
                parts.append((kind, text))
                tokens = tokens[1:]
        return ("all", parts), tokens

    def _say(self, node, rng):
        match node:
            case ("any", ways):
                return self._say(rng.choice(ways), rng)
            case ("all", parts):
                return "".join(self._say(part, rng) for part in parts)
            case ("repeat", part, low, high):
                return "".join(self._say(part, rng) for _ in range(rng.randint(low, min(high, low + 12))))
            case ("literal", text):
                return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text[1:-1])
            case ("set", text):
                return rng.choice(_characters(text))
            case ("name", name):
                return self._say(self.rules[name], rng)
        raise ValueError(node)


def _characters(text: str) -> str:
    """Return characters of a set such as `[A-Za-z]` or `[^"]`; of a complement, those of a fixed alphabet."""
    pattern = re.compile(text)
    return "".join(c for c in [*map(chr, range(9, 127)), *"é⟦🙂“…"] if pattern.fullmatch(c))
