"""Grammars (GBNF) of a policy's answers: verbs, elements that are there, and texts that a verb takes.

Servers such as llama.cpp, vLLM and SGLang constrain the answers of a model by them, so that each answer parses. They mend the form of an
answer, not the choice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from exact.action import ActionSpace, Parameter, Verb
from exact.observation import Element
from exact.views.labels import element_label

THOUGHT = 240
"""Most characters of a thought, which stands on one line."""
TEXT = 200
"""Most characters of a text."""

_TEXT = r"""text ::= "\"" ([^"\\\r\n\t] | "\\" ["\\nt]){0,""" + str(TEXT) + r"""} "\"" """
_NUMBER = "number ::= [0-9]{1,4}"


def answer_grammar(actions: ActionSpace, elements: Sequence[Element], *, labels: bool, thought: bool, most: int = 0) -> str:
    """Return the grammar of an answer that names one action of these elements, or with `most` a list of at most so many.

    `labels`: elements are named by label and id, else by id. `thought`: a line of thought stands before each action. Empty: the actions are
    code, or none is possible.
    """
    verbs = [verb for verb in actions.verbs.values() if elements or Parameter.ELEMENT not in verb.form]
    if actions.code is not None or not verbs:
        return ""
    before = rf'"Thought: " [^\r\n]{{1,{THOUGHT}}} "\n" ' if thought else ""
    one = f'{before}"Action: " action'
    listed = rf'line ("\n" line){{0,{most - 1}}}' if most > 1 else "line"
    named = [element_label(element) if labels else f"[{element.id}]" for element in elements]
    return "\n".join(
        [
            f"root ::= {listed if most else one}",
            *([rf'line ::= {before}"Action (" [1-9] [0-9]? "%): " action'] if most else []),
            f"action ::= {' | '.join(f'verb-{place}' for place in range(len(verbs)))}",
            *(f"verb-{place} ::= {_verb(verb)}" for place, verb in enumerate(verbs)),
            *([f"element ::= {_alternatives(named)}"] if named else []),
            _TEXT.strip(),
            _NUMBER,
        ]
    )


def _verb(verb: Verb) -> str:
    parts = [json.dumps(verb.name)]
    for parameter in verb.form:
        parts.append(f'" " {_parameter(parameter, verb)}')
    return " ".join(parts)


def _parameter(parameter: Parameter | str, verb: Verb) -> str:
    if parameter is Parameter.ELEMENT:
        return "element"
    if isinstance(parameter, Parameter):
        return f"({verb.grammar})" if verb.grammar else "text" if parameter is Parameter.TEXT else "number"
    return f"({_alternatives(parameter.split('|'))})"


def _alternatives(texts: Sequence[str]) -> str:
    return " | ".join(map(_literal, dict.fromkeys(texts)))


def _literal(text: str) -> str:
    """Return a text as a literal of the grammar."""
    escaped = "".join({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character, character) for character in text)
    return f'"{escaped}"'
