"""Write a LoRA adapter of peft as GGUF, for weights that are a GGUF file: run by the Python of .bench/venvs/train.

Usage: _gguf_adapter.py ADAPTER FILE [WEIGHTS]

WEIGHTS: the GGUF file that the adapter was trained on; without it, SmolLM2's. Its architecture and numbers of heads are read from there.
llama.cpp rotates the halves of a Llama's heads interleaved, transformers one after the other; so the rows of its queries and keys change
places (as in llama.cpp's own converters). Other architectures, such as Qwen2, are rotated alike in both. Numbers have half precision.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from _smollm2 import smallest

INTERLEAVED = frozenset({"llama"})
"""Architectures whose queries and keys llama.cpp keeps in another order."""
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


def ordered(rows: np.ndarray, name: str, part: str, kind: str, heads: Mapping[str, int]) -> np.ndarray:
    """Return a matrix of an adapter in the order of llama.cpp. `part`: a or b, that of the outputs. `kind`: the architecture."""
    return interleaved(rows, heads[name]) if part == "b" and name in heads and kind in INTERLEAVED else rows


def heads_of(weights: Path) -> tuple[str, dict[str, int]]:
    """Return the architecture of weights, and the heads of its queries and keys."""
    import gguf

    fields = gguf.GGUFReader(weights).fields
    kind = fields["general.architecture"].contents()
    counts = [int(fields[f"{kind}.attention.{name}"].contents()) for name in ("head_count", "head_count_kv")]
    return kind, dict(zip(("attn_q", "attn_k"), counts, strict=True))


def convert(adapter: Path, file: Path, weights: Path) -> None:
    """Write the adapter of a folder to a file. Raises ValueError for a weight that is none of a LoRA adapter's."""
    import gguf
    from safetensors.numpy import load_file

    kind, heads = heads_of(weights)
    settings = json.loads((adapter / "adapter_config.json").read_text())
    writer = gguf.GGUFWriter(file, kind)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(settings["lora_alpha"]))
    for key, values in sorted(load_file(adapter / "adapter_model.safetensors").items()):
        match = KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key} is no weight of a LoRA adapter that llama.cpp has a name for")
        name, part = NAMES[match[2]], match[3].lower()
        matrix = ordered(values, name, part, kind, heads)
        writer.add_tensor(f"blk.{match[1]}.{name}.weight.lora_{part}", np.ascontiguousarray(matrix, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else smallest())
