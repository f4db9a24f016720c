"""Train a LoRA adapter further on preferences between actions of one state (DPO): run by the Python of .bench/venvs/train.

Usage: _dpo_adapter.py WEIGHTS ADAPTER DATA OUT SETTINGS

WEIGHTS, ADAPTER: GGUF files. The adapter that is given is the reference. DATA: lines of `exact export preference`. OUT: the folder of the
new adapter. SETTINGS: an object with steps, beta, learning_rate, max_length, seed and threads. Prints the history of the training.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _gguf_adapter import INTERLEAVED, NAMES, heads_of

HISTORY = ("loss", "rewards/accuracies", "rewards/margins")


def weights_of(adapter: Path) -> dict[str, Any]:
    """Return the weights of an adapter under the names of peft."""
    import gguf
    import torch

    names, found = {name: layer for layer, name in NAMES.items()}, dict[str, Any]()
    for each in gguf.GGUFReader(adapter).tensors:
        _, layer, name, _, part = each.name.split(".")
        place = "mlp" if name.startswith("ffn") else "self_attn"
        key = f"base_model.model.model.layers.{layer}.{place}.{names[name]}.lora_{part[-1].upper()}.weight"
        found[key] = torch.from_numpy(each.data.astype("float32"))
    return found


def prefer(weights: Path, adapter: Path, data: Path, out: Path, settings: Mapping[str, Any]) -> list[dict[str, float]]:
    """Train an adapter and write it to a folder. Return the figures of each step. Raises ValueError for weights of another order."""
    import torch
    from datasets import Dataset
    from peft import set_peft_model_state_dict
    from trl import DPOConfig, DPOTrainer

    from exact.learning.train.model import adapter as adapted
    from exact.learning.train.model import load_model
    from exact.learning.train.settings import LoraSettings

    if (kind := heads_of(weights)[0]) in INTERLEAVED:
        raise ValueError(f"queries and keys of a {kind} are kept in another order: give weights such as Qwen2's")
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(settings["seed"])
    loaded = load_model(str(weights))
    model = adapted(loaded.model, LoraSettings(), str(weights))
    lacking = set_peft_model_state_dict(model, weights_of(adapter))
    if lacking.unexpected_keys:
        raise ValueError(f"{adapter} has weights that the model has no place for: {lacking.unexpected_keys[0]}")
    lines = map(json.loads, data.read_text().splitlines())
    config = DPOConfig(
        output_dir=f"{out}.part", beta=settings["beta"], max_steps=settings["steps"], learning_rate=settings["learning_rate"],
        max_length=settings["max_length"], seed=settings["seed"], per_device_train_batch_size=1, logging_steps=1, report_to="none",
        save_strategy="no", use_cpu=True, bf16=False, disable_tqdm=True, gradient_checkpointing=False,
    )  # fmt: skip
    trainer = DPOTrainer(
        model=model, args=config, processing_class=loaded.tokenizer,
        train_dataset=Dataset.from_list([{key: each[key] for key in ("prompt", "chosen", "rejected")} for each in lines]),
    )  # fmt: skip
    trainer.train()
    trainer.model.save_pretrained(str(out), selected_adapters=["default"])
    return [{key: log[key] for key in HISTORY if key in log} for log in trainer.state.log_history if "loss" in log]


if __name__ == "__main__":
    print(json.dumps(prefer(*map(Path, sys.argv[1:5]), settings=json.loads(sys.argv[5]))))
