"""SFT and GRPO of a tiny model, run by the interpreter that has torch. Prints one JSON object. Usage: end_to_end.py FOLDER SERVER"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import trl
from datasets import Dataset

from exact.learning.train import grpo, sft
from exact.learning.train.model import load_model
from exact.learning.train.settings import GRPOSettings, SFTSettings
from exact.learning.train.tools import EnvironmentTools

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
grpo.returns = lambda episodes, weights: [float(sum(each.completion_ids) % 7) for each in episodes]  # so that some are better than others
tree = grpo.train(
    GRPOSettings(
        model=str(folder / "sft"), out=str(folder / "tree"), server=server, steps=2, generations=6, branches=3, batch=2, credit="step",
        environments=3, max_steps=4, max_new_tokens=6, temperature=1.0, top_k=0, learning_rate=1e-3, beta=0.1, threads=1,
        observation_characters=300,
    )
)  # fmt: skip
again = sft.train(
    SFTSettings(model=str(folder / "grpo"), data=(str(folder / "data.jsonl"),), out=str(folder / "again"), steps=1, threads=1)
)
adapters = [name for name, _ in load_model(str(folder / "again")).model.named_parameters() if "lora" in name]
tiny = load_model("tiny")
tiny.tokenizer.chat_template = next(Path(trl.__file__).parent.rglob("qwen3.jinja")).read_text()  # one that supports tools
config = trl.GRPOConfig(
    output_dir=str(folder / "tools"), max_steps=1, per_device_train_batch_size=2, num_generations=2, max_completion_length=8, use_cpu=True,
    bf16=False, report_to="none", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
asked = [{"prompt": [{"role": "user", "content": "Go on."}], "task_name": "chain", "seed": seed} for seed in range(2)]
with EnvironmentTools(server) as environments:
    trainer = trl.GRPOTrainer(
        model=tiny.model, args=config, processing_class=tiny.tokenizer, train_dataset=Dataset.from_list(asked),
        environment_factory=environments,
    )  # fmt: skip
    trainer.train()
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
        "tools": [[each.__name__ for each in trainer.tools], sum("reward" in log for log in trainer.state.log_history)],
        "tree": [[each[name] for each in tree.history] for name in ("shared_steps", "logprob_gap", "grad_norm")],
        "adapters": [len(again.history), adapters],
    })
)  # fmt: skip
