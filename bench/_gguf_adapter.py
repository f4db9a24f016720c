"""Write a LoRA adapter of peft, trained on SmolLM2, as GGUF: run by the Python of .bench/venvs/train.

Usage: _gguf_adapter.py ADAPTER FILE

llama.cpp rotates the halves of each head interleaved, transformers one after the other; so the rows of queries and keys change places
(as in llama.cpp's own converters).
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

HEADS = {"attn_q": 9, "attn_k": 3}
"""Heads of SmolLM2-135M."""
NAMES = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}
KEY = re.compile(r".*\.layers\.(\d+)\.\w+\.(\w+_proj)\.lora_([AB])\.weight")


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of a query's or key's matrix in llama.cpp's order."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def convert(adapter: Path, file: Path) -> None:
    """Write the adapter of a folder to a file. Raises ValueError for a weight that is none of a LoRA adapter's."""
    import gguf
    from safetensors.numpy import load_file

    settings = json.loads((adapter / "adapter_config.json").read_text())
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(settings["lora_alpha"]))
    for key, weights in sorted(load_file(adapter / "adapter_model.safetensors").items()):
        match = KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key} is no weight of a LoRA adapter of a llama model")
        name, part = NAMES[match[2]], match[3].lower()
        matrix = interleaved(weights, HEADS[name]) if part == "b" and name in HEADS else weights
        writer.add_tensor(f"blk.{match[1]}.{name}.weight.lora_{part}", np.ascontiguousarray(matrix, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
