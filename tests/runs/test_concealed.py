"""What a run stores in place of the secrets of its tasks and its configuration, and where they come from again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from exact.config import BrowserConfig, Config, LoginConfig, ProxyConfig
from exact.environments.sites.accounts import value_of
from exact.errors import UsageError
from exact.runs.secrets import conceal, known_secrets, read_secrets, require_secrets
from exact.task import Task


def task(site: str, **login: object) -> Task:
    return Task(id=f"{site}/t", instruction="Use hunter2-a.", start="http://x.test/", metadata={"browser": json.dumps({"login": login})})


def test_literal_secrets_are_stored_as_placeholders_and_those_of_variables_stay() -> None:
    environ = {"GIVEN": "from-environ"}
    one = task("shop", secrets={"word": "hunter2-a", "other": "$GIVEN"}, headers={"X-Key": "key-12345678"}, password="pass-word1")
    config = Config(
        browser=BrowserConfig(
            proxy=ProxyConfig(server="http://p.test:1", password="proxy-pass1"), login=LoginConfig(secrets={"word": "b-word-b"})
        )
    )
    tasks, stored = conceal((one, task("shop", secrets={"word": "hunter2-b"})), config, environ)
    text = (msgspec.json.encode(tasks) + msgspec.json.encode(stored)).decode()
    assert not [each for each in ("hunter2", "key-1234", "pass-word1", "proxy-pass1", "b-word-b") if each in text]
    assert "$GIVEN" in text and "Use <secret:word>." in text
    known = {secret.value for secret in known_secrets(tasks, stored, environ)}
    assert {"hunter2-a", "hunter2-b", "key-12345678", "pass-word1", "proxy-pass1", "b-word-b", "from-environ"} <= known
    assert conceal(tasks, stored, {}) == (tasks, stored), "what is concealed stays as it is"
    require_secrets(tasks, stored, environ)
    with pytest.raises(UsageError, match=r"^the secret config\.word is not stored in a run: export EXACT_SECRET_CONFIG_WORD=\.\.\., or"):
        require_secrets(tasks, stored, {})
    assert value_of("it", "<secret:shop.word.2>", environ) == "hunter2-b"


@pytest.mark.parametrize("text", ["- a", "HOME: x", "a: [", "EXACT_SECRET_x y: 1"])
def test_a_file_of_secrets_holds_nothing_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(UsageError):
        read_secrets(tmp_path / "s.yaml")


def test_a_user_name_that_a_goal_states_stays_and_a_password_does_not() -> None:
    one = msgspec.structs.replace(
        task("shop", secrets={"user": "hannavoss", "word": "hunter2-a"}), instruction="Use hunter2-a as hannavoss."
    )
    environ: dict[str, str] = {}
    tasks, config = conceal((one,), Config(), environ)
    assert tasks[0].instruction == "Use <secret:word> as hannavoss."
    assert {secret.name for secret in known_secrets(tasks, config, environ)} == {"word"}
