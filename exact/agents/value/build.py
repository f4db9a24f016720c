"""The value function that a configuration describes."""

from __future__ import annotations

from collections.abc import Callable

from exact.agents.base import Comparator, ValueFunction
from exact.agents.roles import judge, model_for
from exact.config import Config, ValueConfig
from exact.environments.oracle import Verdicts
from exact.errors import UsageError
from exact.models.base import ChatModel, Sampling

Models = Callable[[str], ChatModel]


def value_function(config: Config, settings: ValueConfig, models: Models, verdicts: Verdicts | None) -> ValueFunction:
    """With all it is made of. Raises UsageError where members are missing or not wanted, and for a calibration that is none."""
    _check(settings)
    value = _plain(config, settings, models, verdicts)
    if not settings.calibration:
        return value
    from exact.agents.recalibrate import RecalibratedValue, load

    return RecalibratedValue(value, load(settings.calibration))


def _plain(config: Config, settings: ValueConfig, models: Models, verdicts: Verdicts | None) -> ValueFunction:
    match settings.kind:
        case "builtin":
            from exact.agents.builtin.value import BuiltinValue

            return BuiltinValue()
        case "constant":
            from exact.agents.value.controls import ConstantValue

            return ConstantValue()
        case "oracle":
            from exact.agents.value.controls import OracleValue

            if verdicts is None:
                raise UsageError("an oracle cannot be part of another value function: set value.kind to oracle")
            return OracleValue(verdicts)
        case "ensemble" | "cascade":
            return _several(config, settings, models)
        case _:
            return _asking(config, settings, models)


def comparator(config: Config, models: Models) -> Comparator | None:
    """Who ranks siblings; None: their values do."""
    if config.value.comparison == "values":
        return None
    from exact.agents.rank import LLMComparator

    return LLMComparator(models(config.value.role), config.value, sampling=_sampling(config, config.value.role))


def _asking(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:
    """One that asks a model."""
    role = settings.role
    match settings.kind:
        case "debate":
            return _debate(config, settings, models)
        case "rubric":
            from exact.agents.value.rubric import RubricValue

            return RubricValue(models(role), settings, sampling=_sampling(config, role))
        case "comparative":
            from exact.agents.value.comparative import ComparativeValue

            return ComparativeValue(models(role), settings, sampling=_sampling(config, role))
        case "trained":
            from exact.agents.value.trained import TrainedValue

            return TrainedValue(models(role), settings)
        case _:
            from exact.agents.value.llm import LLMValue

            prompt = "value_debate" if settings.kind == "single_debate" else "value"
            return LLMValue(models(role), settings, sampling=_sampling(config, role), prompt=prompt)  # type: ignore[arg-type]


def _debate(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:
    from exact.agents.value.debate import DebateValue, Seat

    def seat(role: str) -> Seat:
        return Seat(models(role), _sampling(config, role))

    judges = [seat(judge(settings, index)) for index in range(settings.judges)]
    return DebateValue(seat(f"{settings.role}.supporter"), seat(f"{settings.role}.opposer"), judges, settings)


def _several(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:
    from exact.agents.value.composite import CascadeValue, EnsembleValue

    members = [value_function(config, member, models, None) for member in settings.members]
    if settings.kind == "cascade":
        return CascadeValue(*members)
    return EnsembleValue(
        {f"{number} {member.kind}": one for number, (member, one) in enumerate(zip(settings.members, members, strict=True), 1)}
    )


def _sampling(config: Config, role: str) -> Sampling:
    from exact.models.openai import sampling

    return sampling(model_for(config, role))


def _check(settings: ValueConfig) -> None:
    """Raises UsageError."""
    if not settings.text and not settings.images:
        raise UsageError("value.text and value.images are both false: show at least one of them")
    count = len(settings.members)
    if settings.kind == "cascade" and count != 2:
        raise UsageError(f"a cascade has two value.members, a cheap one and a dear one, not {count}: name both")
    if settings.kind == "ensemble" and count == 0:
        raise UsageError("an ensemble has no value.members: name at least one")
    if settings.kind not in ("cascade", "ensemble") and count:
        raise UsageError(f"value.kind {settings.kind} has no members: set it to cascade or ensemble, or leave value.members out")
