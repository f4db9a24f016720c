"""Supervised fine-tuning on exports: loss on the learned answers alone, by masks that are exact in tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from exact.errors import UsageError
from exact.learning.masks import Encode, TokenizedConversation, tokenize
from exact.learning.train.curves import PAGE, reported, training_page
from exact.learning.train.model import LoadedModel, adapter, load_model
from exact.learning.train.settings import SFTSettings
from exact.runs.lock import LOCK, sole
from exact.untrusted import open_regular

_LONGEST_LINE = 1 << 28
"""Characters of the longest line of an export, with its pictures."""


class TrainedModel(NamedTuple):
    """Result of a training run."""

    folder: Path
    history: list[dict[str, float]]
    """Figures of each step, as TRL logs them."""
    rows: int
    left_out: int
    """Conversations that were too long."""


def train(settings: SFTSettings) -> TrainedModel:
    """Train a model on exports, and save it or its adapter. Raises UsageError.

    An interrupted run leaves no folder.
    """
    import torch
    from datasets import Dataset
    from transformers import set_seed
    from trl import SFTConfig, SFTTrainer

    reported(settings.report_to)
    unused(settings.out)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)
    lines = list(read_lines(settings.data))
    loaded = load_model(settings.model, settings.seed)
    rows = [tokenize(line, encoder(loaded.tokenizer)) for line in lines]
    kept = [row for row in rows if len(row.input_ids) <= settings.max_length]
    if not kept:
        raise UsageError(f"all {len(rows)} conversations exceed {settings.max_length} tokens: raise max_length or export shorter ones")
    config = SFTConfig(
        output_dir=f"{settings.out}.part", max_steps=settings.steps, per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate, max_length=settings.max_length, seed=settings.seed, completion_only_loss=True,
        logging_steps=1, report_to=list(settings.report_to) or "none", run_name=settings.run_name, save_strategy="no",
        use_cpu=not torch.cuda.is_available(), bf16=torch.cuda.is_available(), disable_tqdm=True, gradient_checkpointing=False,
    )  # fmt: skip
    if loaded.tokenizer.pad_token is None:
        loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
    trainer = SFTTrainer(
        model=adapter(loaded.model, settings.lora, settings.model), args=config, processing_class=loaded.tokenizer,
        train_dataset=Dataset.from_list([_row(row) for row in kept]),
    )  # fmt: skip
    with sole(Path(config.output_dir), LOCK):
        trainer.train()
        folder, history = save(trainer.model, loaded, Path(settings.out)), [log for log in trainer.state.log_history if "loss" in log]
    (folder / PAGE).write_text(training_page(folder.name, history), "utf-8")
    return TrainedModel(folder, history, len(kept), len(rows) - len(kept))


def save(model: Any, loaded: LoadedModel, out: Path) -> Path:
    """Save a model or an adapter with the tokenizer and the image processor of `loaded`, whole or not at all. Return the folder."""
    part = out.with_name(f"{out.name}.part")
    model.save_pretrained(str(part))
    loaded.tokenizer.save_pretrained(str(part))
    if loaded.image_processor is not None:
        loaded.image_processor.save_pretrained(str(part))
    if out.exists():  # since the training began
        raise UsageError(f"{out} exists: the model is in {part}; move one of them")
    (part / LOCK).unlink(missing_ok=True)
    part.rename(out)
    return out


def unused(out: str) -> None:
    """Check before a training that its folder is free. Raises UsageError."""
    if Path(out).exists():
        raise UsageError(f"out: {out} exists: a training does not replace a model; name another folder, or move this one")


def read_lines(paths: Sequence[str]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the conversations of exports as turns. Raises UsageError."""
    for path in paths:
        try:
            with TextIOWrapper(BufferedReader(open_regular(Path(path))), "utf-8") as file:
                number = 0
                while text := file.readline(_LONGEST_LINE + 1):
                    number += 1
                    if len(text) > _LONGEST_LINE:
                        raise ValueError(f"line {number} has more than {_LONGEST_LINE:,} characters")
                    yield _turns(json.loads(text), f"{path}:{number}")
        except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
            raise UsageError(f"the export {path} does not read: {error}: use one that `exact export` wrote") from error


def _turns(line: object, where: str) -> list[Mapping[str, Any]]:
    if isinstance(line, dict) and _are_turns(line.get("messages")):
        return list(line["messages"])
    if isinstance(line, dict) and _are_turns(line.get("prompt")) and _are_turns(line.get("completion")):
        return [*({**turn, "weight": 0} for turn in line["prompt"]), *line["completion"]]
    raise UsageError(
        f"{where} is no conversation: export imitation or exploratory, in the format conversational, prompt-completion or chat"
    )


def _are_turns(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(turn, dict) for turn in found)


def encoder(tokenizer: Any) -> Encode:
    """Return the function that encodes a part of a turn. Raises UsageError for a tokenizer without ChatML's marks."""

    def encode(text: str) -> list[int]:
        found: list[int] = tokenizer(text, add_special_tokens=False).input_ids
        return found

    for special in ("<|im_start|>", "<|im_end|>"):
        if len(encode(special)) != 1:
            raise UsageError(f"the model's tokenizer has no token {special}: use a model whose turns are ChatML, such as Qwen or SmolLM2")
    return encode


def _row(row: TokenizedConversation) -> dict[str, list[int]]:
    return {"input_ids": row.input_ids, "completion_mask": row.mask}
