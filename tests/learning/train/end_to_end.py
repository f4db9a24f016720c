"""SFT and GRPO of a tiny model, run by the interpreter that has torch. Prints one JSON object. Usage: end_to_end.py FOLDER SERVER"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from exact.learning.train import grpo, sft
from exact.learning.train.model import load_model
from exact.learning.train.settings import GRPOSettings, SFTSettings

folder, server = Path(sys.argv[1]), sys.argv[2]
turns = [{"role": "user", "content": "Page: Step 0 of 4"}, {"role": "assistant", "content": 'go "on"'}]
(folder / "data.jsonl").write_text((json.dumps({"messages": turns}) + "\n") * 8)
first = sft.train(
    SFTSettings(
        model="tiny", data=(str(folder / "data.jsonl"),), out=str(folder / "sft"), lora=None, steps=80, learning_rate=5e-3, threads=1
    )
)
second = grpo.train(
    GRPOSettings(
        model=str(folder / "sft"), out=str(folder / "grpo"), server=server, steps=2, generations=4, accumulation=2, environments=2,
        max_steps=3, max_new_tokens=6, temperature=1.0, top_k=0, learning_rate=1e-3, threads=1, observation_characters=300,
    )
)  # fmt: skip
again = sft.train(
    SFTSettings(model=str(folder / "grpo"), data=(str(folder / "data.jsonl"),), out=str(folder / "again"), steps=1, threads=1)
)
adapters = [name for name, _ in load_model(str(folder / "again")).model.named_parameters() if "lora" in name]
written = json.loads((folder / "grpo" / "training.json").read_text())
sys.stdout.write(
    json.dumps({
        "loss": [first.history[0]["loss"], first.history[-1]["loss"]],
        "steps": len(second.history),
        "gap": max(each["logprob_gap"] for each in second.history),
        "rewards": [each["reward"] for each in second.history],
        "rows": second.rows,
        "tokens": [each["sampled_tokens"] for each in written["history"]],
        "seconds": [each["step_seconds"] - each["sampling_seconds"] - each["environment_seconds"] for each in written["history"]],
        "used": [written["device"], written["peak_mib"]],
        "adapters": [len(again.history), adapters],
    })
)  # fmt: skip
