"""Model roles of an agent, and the model configured for each; checks of what a configuration names, before the agent is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exact.config import Config, PolicyConfig, ValueConfig
from exact.config.agents import POLICIES, POLICY_GROUP, VALUE_GROUP, VALUES
from exact.errors import UsageError
from exact.models.open import model_for
from exact.models.providers import api_of, provider_name, providers
from exact.plugins import attribute

_CALLS_A_MODEL = frozenset({"llm", "single_debate", "rubric", "comparative", "logprob", "trained"})


def roles(config: Config) -> tuple[str, ...]:
    """Return the distinct roles of a configuration that call a model: `policy`, `value`, `value.judge`, `reflection`, `detector`."""
    found = [each.role for each in (config.policy, *config.arms) if each.kind == "llm"]
    found += value_roles(config.value)
    found += [config.value.role] if config.value.comparison == "llm" else []
    found += ["reflection"] if config.reflection.kind == "llm" else []
    found += ["detector"] if config.models.detector is not None else []
    return tuple(dict.fromkeys(found))


def value_roles(settings: ValueConfig) -> Iterator[str]:
    """Yield the roles of a value function and of its members."""
    if settings.kind in _CALLS_A_MODEL:
        yield settings.role
    if settings.kind == "debate":
        yield from (f"{settings.role}.supporter", f"{settings.role}.opposer")
        yield from (judge_role(settings, index) for index in range(settings.judges))
    for member in settings.members:
        yield from value_roles(member)


def judge_role(settings: ValueConfig, index: int) -> str:
    """Return the role of a debate's judge: `value.judge`, `value.judge.1`, ..."""
    return f"{settings.role}.judge" + (f".{index}" if index else "")


def allows_several(config: Config, role: str) -> bool:
    """Return whether a role's server may return several answers to one request. False only for providers and APIs known not to."""
    model = model_for(config.models, role)
    known = providers(config.models.providers)
    name = provider_name(model)
    if name not in known:
        return model.api in ("auto", "chat")
    return api_of(model, known[name]) == "chat" and known[name].takes(model.model).n is not False


def check_own_parts(config: Config) -> None:
    """Raise UsageError if a part or a file of weights that the user names is missing, or a policy's model does not give what it needs."""
    for policy in (config.policy, *config.arms):
        _check_own_part("policy", policy.kind, policy.options, POLICIES, POLICY_GROUP)
        if policy.kind == "llm":
            check_policy_model(policy, config)
    for value in (config.value, *config.value.members):
        _check_own_part("value", value.kind, value.options, VALUES, VALUE_GROUP)


def _check_own_part(part: str, kind: str, options: Mapping[str, object], kinds: tuple[str, ...], group: str) -> None:
    if kind not in kinds:
        attribute(f"{part}.kind", kind, group)
    elif kind == "learned" and options:
        from exact.agents.learned.agent import check_weights

        check_weights(part, options)


def check_policy_model(policy: PolicyConfig, config: Config) -> None:
    """Raise UsageError if a policy's model is known not to give what the policy asks for: calls of a computer tool, or likeliest tokens."""
    if policy.actions != "computer" and policy.form != "likeliest":
        return
    model = model_for(config.models, policy.role)
    known = providers(config.models.providers).get(provider_name(model))
    api = model.api if known is None else api_of(model, known)
    if policy.actions == "computer" and api not in ("responses", "messages"):
        raise UsageError(
            f"policy.actions: computer needs a model's own computer tool, which {model.model} has not by this API: "
            "set api: responses or api: messages, or take a provider such as openai_responses or anthropic_messages"
        )
    if policy.form == "likeliest":
        takes = None if known is None else known.takes(model.model)
        lacks = "" if takes is None or (takes.logprobs is not False and takes.top_logprobs != 0) else "lists no likeliest tokens"
        if api not in ("auto", "chat"):
            lacks = f"is asked by api: {api}, which continues no answer with likeliest tokens"
        if lacks:
            raise UsageError(
                f"policy.form: likeliest goes by the likeliest tokens, but {model.model} {lacks}: "
                "serve a model by llama.cpp, vLLM or SGLang, or set policy.form: samples"
            )
