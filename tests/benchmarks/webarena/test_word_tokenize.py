"""nltk's own tokens: refused in one line where nltk or its trained sentences are missing, and asked where they are there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from exact.benchmarks.webarena import WebArena
from exact.benchmarks.webarena.text import word_tokenize
from exact.cli.main import main
from exact.config import Config, ModelsConfig
from exact.errors import UsageError
from exact.evaluation.plan import require_equal_judges
from exact.task import Outcome
from tests.benchmarks.webarena.conftest import checks, standing
from tests.benchmarks.webarena.test_pairs import evaluate


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Install an nltk whose `word_tokenize` has this body."""
    (folder / "nltk").mkdir()
    (folder / "nltk" / "__init__.py").write_text("__version__ = '3.99'\n")
    (folder / "nltk" / "tokenize.py").write_text(f"def word_tokenize(text):\n    {body}\n")
    for name in ("nltk", "nltk.tokenize"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no module of a test stay."""
    for name in ("nltk", "nltk.tokenize"):
        monkeypatch.setitem(sys.modules, name, None)


def test_without_nltk_the_way_to_get_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs nltk, which is not installed: run `pip install nltk`"):
        word_tokenize()


def test_without_trained_sentences_the_way_to_get_them_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "raise LookupError('a long text\\nof many lines')")
    with pytest.raises(UsageError, match=r"^models.strict_nltk needs trained .* nltk 3\.99 does not find: run `python -m nltk"):
        word_tokenize()


def test_the_commands_say_so_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("run", "miniwob/click-test"), ("bench", "miniwob/click-test", "--agent", "react")):
        assert main([*command, "--strict-nltk"]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "run `pip install nltk`" in said
    assert not list(tmp_path.iterdir())


async def test_the_tokens_are_nltks_where_they_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "return text.split('+')")
    evaluation = {"eval_types": ["string_match"], "reference_answers": {"must_include": ["b"]}}
    outcome = Outcome(actions=(), answer="a+b")
    assert (await evaluate(checks(evaluation, split=word_tokenize()), standing(""), outcome)).success
    assert not (await evaluate(checks(evaluation), standing(""), outcome)).success


def test_the_suite_takes_the_setting_from_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = WebArena().with_models(ModelsConfig(strict_nltk=True))
    with pytest.raises(UsageError, match="needs nltk"):
        _ = strict._split
    assert WebArena().with_models(ModelsConfig())._split("a b") == ["a", "b"]


def test_agents_that_are_compared_split_alike() -> None:
    strict, plain = Config(models=ModelsConfig(strict_nltk=True)), Config(name="other")
    require_equal_judges([plain, plain])
    with pytest.raises(UsageError, match=r"models\.strict_nltk differs"):
        require_equal_judges([strict, plain])
