"""The option `--strict-nltk` of `exact run` and `exact bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.config import Config

STRICT = ("models.strict_nltk=true",)
"""What the option overrides."""


def check_nltk(config: Config) -> None:
    """Raise UsageError where a configuration wants nltk's trained sentences, and they are missing."""
    if config.models.strict_nltk:
        from exact.benchmarks.webarena.word_tokenize import word_tokenize

        word_tokenize()
