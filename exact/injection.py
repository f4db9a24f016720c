"""Detector of text that speaks to the model which reads it, instead of to a person.

A mark lowers nothing by itself. Prompts name the marks of an observation to who reads it, reflections drawn from it are quarantined, the
report flags the state, and the journal names the marks with each decision.
"""

from __future__ import annotations

import functools
import re

_OVERRIDES = (
    r"\b(?:ignore|disregard|forget|override)\b[^.]{0,30}"
    r"\b(?:previous|prior|above|earlier|preceding|all|your)\b[^.]{0,20}\b(?:instruction|rule|prompt|direction|task|goal)",
    r"\b(?:ignorier|vergiss|missacht)\w*[^.]{0,30}(?:vorherig|bisherig|obig|alle)\w*[^.]{0,20}(?:anweisung|instruktion|regel|aufgabe)",
    r"\b(?:ignor|oubli)\w*[^.]{0,30}(?:instruction|consigne)\w*|\b(?:ignora|olvida)\w*[^.]{0,30}(?:instruccion|órdenes)",
    r"\b(?:ignore|esqueça)\b[^.]{0,30}(?:instruç|ordens)|(?:игнорир|забудь)\w*[^.]{0,30}(?:инструкц|указани)",
    r"(?:忽略|无视|忘记).{0,10}(?:指令|指示|说明|要求)|(?:以前|これまで|上記|先|前).{0,8}(?:指示|命令).{0,8}(?:無視|忘れ)",
    r"\b(?:your|the) (?:new|real|true|updated) (?:instructions?|task|goal)\b[^.]{0,10}(?:\bis\b|\bare\b|:)",
)
_MODEL = (
    r"\b(?:AI|LLM|language model|automated|browsing)[ -](?:agents?|assistants?|models?|bots?)\b[^.]{0,60}"
    r"\b(?:must|should|shall|please|are (?:required|asked))\b",
    r"\b(?:notes?|messages?|instructions?|attention|notice)\b[^.]{0,6}\b(?:to|for|all)\b(?: the| any| all)?"
    r" (?:AI|LLM|language model|agent|assistant|evaluator|judge)",
    r"\byou are (?:now )?(?:an? )?(?:AI|LLM|language model|DAN)\b|\bas an AI\b|\bsystem prompt\b",
    r"\b(?:KI|Sprachmodell)\w*[^.]{0,40}\b(?:muss|müssen|soll)|\b(?:IA|modèle de langage)\b[^.]{0,40}\b(?:doi[st]|devez|doivent)\b",
    r"\b(?:IA|modelo de lenguaje|modelo de linguagem)\b[^.]{0,40}\b(?:deben?|tienen? que|devem?|tem que)\b",
    r"\b(?:ИИ|языков\w+ модел\w+)[^.]{0,40}(?:долж|обязан)|(?:AI|智能体|大模型|语言模型).{0,12}(?:必须|应当|请)",
    r"(?:AI|エージェント|言語モデル).{0,16}(?:しなさい|すること|してください|必ず|優先)",
)
_RULES = {
    "overrides instructions": re.compile("|".join(_OVERRIDES), re.I),
    "speaks to a model": re.compile("|".join(_MODEL), re.I),
    "speaks as a system or a tool": re.compile(
        r"<\|?\w*(?:im_start|im_end|endoftext|tool_call|function_call)\w*\|?>|\[/?INST\]|<\|(?:system|assistant|user)\|>"
        r"|#{2,} ?(?:system|instruction|response)\b|\bBEGIN SYSTEM",
        re.I,
    ),
    "prints a verdict or an action": re.compile(
        r"\bVerdict\s*:\s*[A-E]\b(?!\w)|\bBetter\s*:\s*(?:first|second|neither)\b|\bAction(?: \(\d+ ?%\))?\s*:\s*\w+ ?(?:\[|\\?\")"
        r"|[{,]\s*\\?\"(?:verdict|grade|better)\\?\"\s*:\s*\\?\"[A-Za-z]"
    ),
    "prints the marks of a fence": re.compile(r"[⟦⟧]"),
    "hides characters": re.compile(
        r"[\U000e0020-\U000e007f]{3}|(?:[\ufe00-\ufe0f\U000e0100-\U000e01ef]){3}|(?:[^\W\d_][\u200b\u200c\u2060-\u2064\ufeff]+){3}"
        r"|[\u202d\u202e]"
    ),
}


@functools.lru_cache(maxsize=256)
def injections(*texts: str) -> tuple[str, ...]:
    """Return how texts of a page speak to a model, in a few words each; empty where they do not."""
    return tuple(name for name, rule in _RULES.items() if any(rule.search(text) for text in texts))
