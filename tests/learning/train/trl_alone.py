"""GRPO against an OpenEnv server as TRL's users write it, without this package: by `rollout_func`, and by an environment of tools.

Prints one JSON object. Usage: trl_alone.py MODEL SERVER OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from openenv.core.generic_client import GenericEnvClient
from transformers import AutoModelForCausalLM, AutoTokenizer

name, server, out = sys.argv[1:]
model, tokenizer = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32), AutoTokenizer.from_pretrained(name, padding_side="left")
common: dict[str, Any] = {
    "output_dir": out, "max_steps": 2, "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 8, "use_cpu": True,
    "bf16": False, "report_to": "none", "save_strategy": "no", "disable_tqdm": True,
}  # fmt: skip
seen: dict[str, list[Any]] = {"observations": [], "rows": [], "rewards": []}


def rollout_func(prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
    """One answer and one step for each prompt: a page's text in, an action out."""
    rows: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_reward": []}
    policy = trainer.accelerator.unwrap_model(trainer.model)
    with GenericEnvClient(base_url=server).sync() as client:
        for number, prompt in enumerate(prompts):
            result = client.reset(seed=number, task_name="chain")
            seen["observations"].append([result.observation["goal"], result.observation["last_action_error"]])
            ids = tokenizer(f"{prompt}\n{result.observation['text']}", return_tensors="pt").input_ids
            made = policy.generate(
                ids, max_new_tokens=8, do_sample=True, top_k=0, return_dict_in_generate=True, output_logits=True,
                pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
            drawn = made.sequences[0, ids.shape[1] :]
            chances = torch.stack(made.logits, 1)[0].log_softmax(-1)
            action = tokenizer.decode(drawn, skip_special_tokens=True) if number % 2 else 'go "on"'
            result = client.step({"action_str": action})
            rows["prompt_ids"].append(ids[0].tolist())
            rows["completion_ids"].append(drawn.tolist())
            rows["logprobs"].append(chances.gather(-1, drawn[:, None])[:, 0].tolist())
            rows["env_reward"].append(float(result.reward or 0.0) + (0.1 if not result.observation["last_action_error"] else 0.0))
    seen["rows"].append(len(rows["prompt_ids"]))
    return rows


def reward_from_env(completions: list[Any], env_reward: list[float], **_: Any) -> list[float]:
    return env_reward


trainer = trl.GRPOTrainer(
    model=model, args=trl.GRPOConfig(**common), processing_class=tokenizer, reward_funcs=reward_from_env, rollout_func=rollout_func,
    train_dataset=Dataset.from_list([{"prompt": f"Go on, {number}."} for number in range(4)]),
)  # fmt: skip
trainer.train()
seen["rewards"] = [log["reward"] for log in trainer.state.log_history if "reward" in log]


class ChainEnvironment:
    """A session of the server with its actions as tools."""

    made: list[ChainEnvironment] = []

    def __init__(self) -> None:
        self.client = GenericEnvClient(base_url=server).sync()
        self.reward, self.done = 0.0, False
        ChainEnvironment.made.append(self)

    def reset(self, **row: Any) -> str:
        self.reward = 0.0
        found = self.client.reset(task_name="chain")
        self.done = bool(found.done)
        return str(found.observation["text"])

    def go(self, way: str) -> str:
        """Follow a link.

        Args:
            way: Name of the link.

        Returns:
            The page that it leads to.
        """
        found = self.client.step({"action_str": f"go({way!r})"})
        self.reward, self.done = float(found.reward or 0.0), bool(found.done)
        return str(found.observation["error"] or found.observation["text"])


tokenizer.chat_template = next(Path(trl.__file__).parent.rglob("qwen3.jinja")).read_text()
trainer = trl.GRPOTrainer(
    model=model, args=trl.GRPOConfig(**common | {"max_steps": 1}), processing_class=tokenizer, environment_factory=ChainEnvironment,
    reward_funcs=lambda environments, **_: [each.reward for each in environments],
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": "Go on."}]} for _ in range(4)]),
)  # fmt: skip
trainer.train()
first = ChainEnvironment.made[0]
first.reset()
walked = [first.go("on") for _ in range(4)]
tools = {"steps": sum("reward" in log for log in trainer.state.log_history), "made": len(ChainEnvironment.made)}
for each in ChainEnvironment.made:
    each.client.close()
sys.stdout.write(json.dumps(seen | {"tools": tools | {"walked": len(set(walked)), "reward": first.reward, "done": first.done}}))
