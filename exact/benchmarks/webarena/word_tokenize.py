"""nltk's own `word_tokenize`, with its trained model of sentences, where the user has both: `models.strict_nltk`."""

from __future__ import annotations

from exact.benchmarks.webarena.text import Split
from exact.errors import UsageError


def word_tokenize() -> Split:
    """Return nltk's function. Raises UsageError where nltk or its trained sentences are missing, with the way to get them."""
    try:
        import nltk
        from nltk.tokenize import word_tokenize
    except ImportError as error:
        raise UsageError(
            "models.strict_nltk needs nltk, which is not installed: run `pip install nltk`, then `python -m nltk.downloader punkt_tab`"
        ) from error
    try:
        word_tokenize("It is 3. So it is.")
    except LookupError as error:
        raise UsageError(
            f"models.strict_nltk needs trained sentences, which nltk {nltk.__version__} does not find: run `python -m nltk.downloader "
            "punkt_tab` (punkt before 3.8.2), or name a folder that has them in NLTK_DATA"
        ) from error
    return _split


def _split(text: str) -> list[str]:
    from nltk.tokenize import word_tokenize

    return [str(word) for word in word_tokenize(text)]
