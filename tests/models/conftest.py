from collections.abc import Callable

import msgspec
import pytest

from exact.config import ModelConfig
from exact.models.base import ChatRequest, Image, Message, Sampling, Text


@pytest.fixture
def ask() -> Callable[..., ChatRequest]:
    def request(text: str = "Which?", *, images: tuple[bytes, ...] = (), **sampling: object) -> ChatRequest:
        parts = (Text(text), *(Image(data) for data in images))
        messages = (Message("system", (Text("Be brief."),)), Message("user", parts))
        return ChatRequest(messages=messages, sampling=Sampling(**sampling), role="policy")  # type: ignore[arg-type]

    return request


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModelConfig]:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test-0123456789abcdef")

    def config(base_url: str, **fields: object) -> ModelConfig:
        given = {"model": "m", "base_url": base_url, "api_key_env": "TEST_MODEL_KEY", "timeout": 20.0}
        return msgspec.convert(given | fields, ModelConfig)

    return config
