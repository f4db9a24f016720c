"""Facts that a server tells about itself: context length, slots and models, where it has a page for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from exact.models.decode import as_object, as_text, objects, whole
from exact.models.endpoint import ServedModel


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server tells. A number is 0 where it does not."""

    software: str = ""
    """Name of the server's program, where it is known."""
    context: int = 0
    """Tokens of a prompt and its answer together; with slots, of one of them."""
    trained: int = 0
    """Context length that the model was trained for, in tokens."""
    slots: int = 0
    """Requests that are answered at the same time, which is also the most answers to one request."""
    models: tuple[str, ...] = ()
    """Names of the models that are served."""


async def server_facts(served: ServedModel, *, own: bool) -> ServerFacts:
    """Return what the server tells at `/models`. With `own`, a server of the user's own, also at the pages of llama.cpp and Ollama."""
    listed = objects(as_object(await served.fetch("/models")).get("data"))
    entry = next((each for each in listed if each.get("id") == served.model), listed[0] if len(listed) == 1 else {})
    meta = as_object(entry.get("meta"))
    found = ServerFacts(
        software={"llamacpp": "llama.cpp", "vllm": "vLLM", "sglang": "SGLang"}.get(as_text(entry.get("owned_by")), ""),
        context=whole(entry.get("max_model_len")) or whole(entry.get("loaded_context_length")) or whole(entry.get("context_length")),
        trained=whole(meta.get("n_ctx_train")),
        models=tuple(name for each in listed if (name := as_text(each.get("id")))),
    )
    if own and not found.context:
        found = _of_llamacpp(found, as_object(await served.fetch("/props", root=True)))
    return await _of_ollama(found, served) if own and not found.context else found


def _of_llamacpp(found: ServerFacts, props: Mapping[str, Any]) -> ServerFacts:
    settings = as_object(props.get("default_generation_settings"))
    if not settings:
        return found
    slots = whole(props.get("total_slots"))
    return msgspec.structs.replace(found, software="llama.cpp", context=whole(settings.get("n_ctx")), slots=slots)


async def _of_ollama(found: ServerFacts, served: ServedModel) -> ServerFacts:
    """Return the facts with those of Ollama: the context of the loaded model, and the one that it was trained for."""
    shown = as_object(await served.fetch("/api/show", {"model": served.model}, root=True))
    known = as_object(shown.get("model_info"))
    if not known:
        return found
    trained = next((whole(value) for name, value in known.items() if name.endswith(".context_length")), 0)
    loaded = objects(as_object(await served.fetch("/api/ps", root=True)).get("models"))
    names = (served.model, f"{served.model}:latest")
    context = next((whole(each.get("context_length")) for each in loaded if each.get("model") in names or each.get("name") in names), 0)
    return msgspec.structs.replace(found, software="Ollama", context=context, trained=trained)
