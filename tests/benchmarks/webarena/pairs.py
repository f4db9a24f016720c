"""Generated pairs of answers and references: words of pages, dressed in quotes, dashes, brackets, contractions and sentences."""

from __future__ import annotations

import random

from tests.benchmarks.webarena.cases import Case

_WORDS = (
    *("blue", "0", "3", "10", "65", "1.5", "-5", "−5", "50+", "25%", "#42", "1,200", "1200", "2,000", "1,200–1,300", "1,200-1,300"),
    *("$25.99", "$0.00", "$1,200", "10:30", "10:30 am", "a.m.", "p.m.", "u.s.", "e.g.", "etc.", "inc.", "j. smith", "v2.0"),
    *("mike's", "don't", "can't", "cannot", "gonna", "wanna", "lemme", "it's", "they're", "we've", "he'd", "i'll", "'tis", "o'neil"),
    *("rock 'n' roll", "'90s", "d'ye", "y'all", "r&b", "c++", "a/b", "x-y", "a--b", "a – b", "a—b", "...", "…", "`x`", "``x''"),
    *("[1]", "{a}", "<b>", "a;b", "a:b", "a: b", "x,y", "1,2", "end.'", "http://x/y?z=1", "me@x.org", "(412) 555-0100", "é"),
)  # fmt: skip
_FORMS = (
    *("{0}", "'{0}'", '"{0}"', "({0})", "[{0}]", "“{0}”", "‘{0}’", "«{0}»", "`{0}`", "**{0}**", "'{0}", "{0}'", "{0}'s", "{0}:", "{0}..."),
    *("the answer is {0}.", "the color is '{0}'.", 'it is "{0}".', "it is {0}, i think", "it's {0}! really?", "i don't know; {0}?"),
    *("it is {0}. the page says so.", "{0}; {0}", "{0} - {0}", "{0} – {0}", "{0}—{0}", "{0}/{0}", "it is '{0}' or '{0}'", "- {0}\n- {0}"),
)
_KINDS = {"webarena": ("exact_match", "must_include"), "visualwebarena": ("exact_match", "must_include", "must_exclude", "one_of")}


def pairs(count: int, seed: int) -> list[Case]:
    """Return cases of string_match with one reference each; one in seven of those that allow it has alternatives."""
    draw = random.Random(seed)
    return [_pair(draw, "webarena" if draw.random() < 0.5 else "visualwebarena") for _ in range(count)]


def _pair(draw: random.Random, dialect: str) -> Case:
    kind, reference = draw.choice(_KINDS[dialect]), draw.choice(_WORDS)
    if draw.random() < 0.15:
        reference = draw.choice(_FORMS).format(reference)
    answer = reference if draw.random() < 0.6 else draw.choice(_WORDS)
    for _ in range(draw.choice((1, 1, 2))):
        answer = draw.choice(_FORMS).replace("{0}", answer)
    if kind == "must_include" and draw.random() < 0.15:
        reference = f"{reference} |OR| {draw.choice(_WORDS)}"
    wanted = reference if kind == "exact_match" else [reference]
    return {
        "kind": "string_match",
        "dialect": dialect,
        "answer": answer,
        "eval": {"eval_types": ["string_match"], "reference_answers": {kind: wanted}},
    }
