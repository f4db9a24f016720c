"""What the transports of a process share."""

from pathlib import Path

import pytest

from exact.models.providers import providers
from exact.models.transport import tls_settings


def test_certificates_are_read_once_for_all_transports_and_again_where_the_environment_names_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    anywhere, here = tls_settings(True), tls_settings(False)
    assert tls_settings(True) is anywhere
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(FileNotFoundError):
        tls_settings(True)
    assert tls_settings(False) is here, "a server on loopback does not depend on the environment"


def test_the_packages_providers_are_read_once_and_each_caller_has_a_mapping_of_its_own() -> None:
    providers().clear()
    assert providers()["openai"] is providers()["openai"]
