"""What tasks say about their browser, and what is not accepted."""

import pytest

from exact.config import BrowserConfig
from exact.environments.browser.act.upload import declared_files
from exact.environments.browser.launch.options import browser_config_of, context_options
from exact.environments.browser.observe import redaction
from exact.errors import UsageError
from exact.task import Task


def task(**fields: object) -> Task:
    return Task(id="t", instruction="", **fields)  # type: ignore[arg-type]


def test_a_task_has_the_configuration_with_its_own_keys() -> None:
    base = BrowserConfig(width=500, locale="fr-FR")
    assert browser_config_of(base, task()) == base
    assert browser_config_of(base, task(metadata={"browser": '{"locale": "de-DE"}'})) == BrowserConfig(width=500, locale="de-DE")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"lcale": "x"}', "unknown key of a task's browser 'lcale': did you mean 'locale'"),
        ('{"width": "wide"}', "invalid `browser`: Expected `int`"),
        ("[1]", "no JSON object"),
        ("{", "no JSON object"),
    ],
)
def test_an_invalid_key_is_named(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        browser_config_of(BrowserConfig(), task(metadata={"browser": text}))


def test_a_mask_is_a_selector_and_nothing_more() -> None:
    assert redaction.rules([".a", " #b > i "]).startswith(":is(.a, #b > i) {") and redaction.rules([]) == ""
    with pytest.raises(UsageError, match="no CSS selector"):
        redaction.rules(["a { color: red } b"])


def test_files_are_there_and_have_names_of_their_own(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "sub").mkdir()
    for file in (tmp_path / "a.txt", tmp_path / "sub" / "a.txt"):
        file.write_text("x")
    assert declared_files(task(files=(str(tmp_path / "a.txt"),))) == {"a.txt": tmp_path / "a.txt"}
    with pytest.raises(UsageError, match=r"two files a\.txt"):
        declared_files(task(files=(str(tmp_path / "a.txt"), str(tmp_path / "sub" / "a.txt"))))
    with pytest.raises(UsageError, match="which is not there"):
        declared_files(task(files=(str(tmp_path / "b.txt"),)))


def test_a_certificate_wants_its_key() -> None:
    config = browser_config_of(BrowserConfig(), task(metadata={"browser": '{"login": {"certificate": {"certificate": "a.pem"}}}'}))
    with pytest.raises(UsageError, match="give certificate and key, or pfx"):
        context_options(config, ["https://a.test"])
