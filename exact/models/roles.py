"""Models of roles."""

from __future__ import annotations

from exact.config import ModelConfig, ModelsConfig
from exact.errors import UsageError

GENERAL = ("policy", "value", "reflection", "embedding", "detector")
"""Roles with a configuration key of their own. Parts of them have dotted names, such as `value.judge`."""


def model_for(models: ModelsConfig, role: str) -> ModelConfig:
    """Return the model of a role: its own, else that of the role it is a part of, else the policy's. Embeddings have no default.

    `value.judge.2` is looked for as `value.judge.2`, `value.judge`, `value`, `policy`. Raises UsageError if there is none.
    """
    name = role
    while name not in GENERAL:
        if name in models.parts:
            return models.parts[name]
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise UsageError(f"{role!r} is no role: use {', '.join(GENERAL)}, or a part such as value.judge")
    found: ModelConfig | None = getattr(models, name)
    if found is None and name not in ("embedding", "detector"):
        found = models.policy
    if found is None:
        raise UsageError(f"the configuration names no model for {role}: add models.{name}.model")
    return found
