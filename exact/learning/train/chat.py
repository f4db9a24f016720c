"""A model or an adapter behind the Chat Completions API, by transformers: for tests and for small models.

It answers one request after another. For use at scale, serve the same folder by vLLM or llama.cpp.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from exact.errors import UsageError
from exact.learning.masks import CHATML
from exact.learning.train.model import LoadedModel
from exact.learning.train.pictures import PictureReader, ShownPicture
from exact.learning.train.sampler import seen_by
from exact.learning.train.sft import encoder
from exact.origins import SameOrigin

_MOST = 4096
"""Most new tokens of an answer."""


def chat_application(loaded: LoadedModel, name: str, hosts: Collection[str] = ()) -> FastAPI:
    """Return the server as an ASGI application. `name` is the model's in answers; `hosts`: names of the server, besides its addresses."""
    app, lock, answers = FastAPI(title="exact serve model"), asyncio.Lock(), ChatAnswers(loaded)

    @app.get("/v1/models")  # type: ignore[untyped-decorator]
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "exact"}]}

    @app.post("/v1/chat/completions")  # type: ignore[untyped-decorator]
    async def complete(request: Request) -> Any:
        try:
            body = await request.json()
            async with lock:
                found = await asyncio.to_thread(answers, body)
        except (UsageError, ValueError, TypeError, KeyError, AttributeError) as error:
            return JSONResponse({"error": {"message": str(error) or type(error).__name__, "type": "invalid_request_error"}}, 400)
        return {"id": "chatcmpl-exact", "object": "chat.completion", "created": int(time.time()), "model": name} | found

    app.add_middleware(SameOrigin, names=hosts)
    return app


class ChatAnswers:
    """Answers requests of the Chat Completions API, with token ids and log-probabilities if they are requested."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._reader = None if loaded.image_processor is None else PictureReader(loaded, "the model", None)
        self._model, self._tokenizer, self._encode = loaded.model.eval(), loaded.tokenizer, encoder(loaded.tokenizer)
        self._end = loaded.tokenizer.convert_tokens_to_ids("<|im_end|>")

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return choices and usage. Raises UsageError for an unsupported request."""
        import torch

        if body.get("stream"):
            raise UsageError("streaming is not supported: leave `stream` out")
        prompt, pictures = self._prompt(body["messages"])
        count, temperature = int(body.get("n") or 1), float(body.get("temperature", 1.0))
        most = min(_MOST, int(body.get("max_completion_tokens") or body.get("max_tokens") or 512))
        if body.get("seed") is not None:
            torch.manual_seed(int(body["seed"]))
        drawn = (
            {"do_sample": True, "temperature": temperature, "top_p": float(body.get("top_p", 1.0)), "top_k": 0}
            if temperature > 0
            else {"do_sample": False}
        )
        ids = torch.tensor([prompt] * count, device=self._model.device)
        unsaid = {"suppress_tokens": self._reader.unsaid} if self._reader else {}
        with torch.no_grad():
            made = self._model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, eos_token_id=self._end, pad_token_id=self._end,
                return_dict_in_generate=True, output_logits=True, **drawn, **seen_by(self._reader, [pictures] * count, ids), **unsaid,
            )  # fmt: skip
            chances = torch.stack(made.logits, 1).float().log_softmax(-1)
        answers, listed = made.sequences[:, len(prompt) :].tolist(), int(body.get("top_logprobs") or 0) if body.get("logprobs") else None
        choices = [self._choice(number, answer, chances[number], listed) for number, answer in enumerate(answers)]
        written = sum(len(choice["token_ids"]) for choice in choices)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": written, "total_tokens": len(prompt) + written}
        return {"choices": choices, "usage": usage, "prompt_token_ids": prompt}

    def _prompt(self, messages: list[dict[str, Any]]) -> tuple[list[int], list[ShownPicture]]:
        ids, pictures = list[int](), list[ShownPicture]()
        for message in messages:
            content = message["content"]
            if isinstance(content, list):
                content = self._written(content, pictures)
            ids += self._encode(CHATML.begin.format(role=message["role"]) + content + CHATML.end + CHATML.after)
        if self._reader and ids.count(self._reader.token) != sum(each.tokens for each in pictures):
            raise UsageError("a message writes a token that stands for a picture: leave it out")
        return [*ids, *self._encode(CHATML.begin.format(role="assistant"))], pictures

    def _written(self, parts: list[dict[str, Any]], pictures: list[ShownPicture]) -> str:
        """Return the parts of a turn as one text: pictures by their marks, with a line between two texts."""
        written, after_text = "", False
        for part in parts:
            if part.get("type") == "text":
                written, after_text = written + ("\n" if after_text else "") + part["text"], True
                continue
            if self._reader is None:
                raise UsageError("this model sees no pictures: set view.images: false")
            head, _, data = part["image_url"]["url"].partition(";base64,")
            if not head.startswith("data:image/"):
                raise UsageError("a picture is no data URL: send data:image/png;base64,...")
            pictures.append(self._reader(data))
            written, after_text = written + pictures[-1].mark, False
        return written

    def _choice(self, number: int, ids: list[int], chances: Any, listed: int | None) -> dict[str, Any]:
        ended = self._end in ids
        ids = ids[: ids.index(self._end) + 1] if ended else ids
        text = self._tokenizer.decode(ids[: len(ids) - ended], skip_special_tokens=True)
        choice: dict[str, Any] = {
            "index": number, "message": {"role": "assistant", "content": text}, "finish_reason": "stop" if ended else "length",
            "token_ids": ids, "logprobs": None,
        }  # fmt: skip
        if listed is not None:
            choice["logprobs"] = {"content": [self._token(chances[at], id, listed) for at, id in enumerate(ids)]}
        return choice

    def _token(self, chances: Any, id: int, listed: int) -> dict[str, Any]:
        likeliest = chances.topk(listed) if listed else None
        top = [] if likeliest is None else zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        shown = [{"token": self._tokenizer.decode([each]), "logprob": value} for each, value in top]
        return {"token": "" if id == self._end else self._tokenizer.decode([id]), "logprob": float(chances[id]), "top_logprobs": shown}
