"""New small models for tests: their tokens are bytes and the words of the prompts, and their weights are random."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

_VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_MOST_PIXELS = 16 * 28 * 28
"""Pixels of 16 tokens."""


def tiny_tokenizer(*marks: str) -> Any:
    """Return a tokenizer of ChatML, of bytes and the words of our prompts. Its special tokens are those of turns and `marks`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    base = Tokenizer(models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[]))
    base.pre_tokenizer, base.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    base.add_special_tokens([AddedToken(each, special=True) for each in ("<|im_start|>", "<|im_end|>", "<|pad|>", *marks)])
    base.add_tokens([AddedToken(each, single_word=True, normalized=False) for each in _words()])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer


def _words() -> list[str]:
    """Return the words of our prompts. Those that may stand in a hexadecimal number are left out: marks have as many tokens as digits."""
    prompts = (each.read_text() for each in files("exact.prompts").iterdir() if each.name.endswith(".j2"))
    found = {word for text in prompts for word in re.findall(r"[A-Za-z]{3,}", text)}
    return sorted(word for word in found if not re.fullmatch("[a-f]+", word))


def tiny_text_model(tokenizer: Any, seed: int) -> Any:
    """Return a Qwen2 of 0.1 million parameters."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    return Qwen2ForCausalLM(Qwen2Config(**_text(tokenizer), tie_word_embeddings=True))


def tiny_vision_parts(seed: int) -> tuple[Any, Any, Any]:
    """Return a Qwen2.5-VL of 0.1 million parameters with its tokenizer and its image processor, which makes 1 to 16 tokens of an image."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer(*_VISION)
    start, end, image, video = tokenizer.convert_tokens_to_ids(list(_VISION))
    rotary = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2]}
    config = Qwen2_5_VLConfig(
        text_config=_text(tokenizer) | {"rope_parameters": rotary, "bos_token_id": None},
        vision_config={
            "depth": 2, "hidden_size": 32, "out_hidden_size": 48, "intermediate_size": 64, "num_heads": 2, "fullatt_block_indexes": [1],
        },
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end, tie_word_embeddings=True,
    )  # fmt: skip
    processor = Qwen2VLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": _MOST_PIXELS})
    return Qwen2_5_VLForConditionalGeneration(config), tokenizer, processor


def _text(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer), "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 4096, "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
