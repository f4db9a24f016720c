"""Construction of the value function that a configuration describes.

Value functions composed of others: an ensemble, and a cascade that calls an expensive value function only for states that matter.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from exact.agents.base import Comparator, ValueFunction, evaluate, evaluate_all
from exact.agents.request import check_view
from exact.agents.roles import judge_role
from exact.config import Config, ValueConfig
from exact.config.agents import VALUE_GROUP, VALUES
from exact.context import Context, Evaluation
from exact.environments.oracle import EpisodeScores
from exact.errors import UsageError
from exact.models.base import ChatModel, Sampling
from exact.models.open import model_for
from exact.models.retry import all_results
from exact.plugins import make_plugin

Models = Callable[[str], ChatModel]


def build_value_function(config: Config, settings: ValueConfig, models: Models, episode_scores: EpisodeScores | None) -> ValueFunction:
    """Return the configured value function with all its members.

    Raises UsageError if members are missing or not allowed, or if the calibration file is invalid.
    """
    _check_settings(settings)
    value = _build_uncalibrated(config, settings, models, episode_scores)
    if not settings.calibration:
        return value
    from exact.agents.recalibrate import RecalibratedValue, load_curve

    return RecalibratedValue(value, load_curve(settings.calibration))


def _build_uncalibrated(config: Config, settings: ValueConfig, models: Models, episode_scores: EpisodeScores | None) -> ValueFunction:
    match settings.kind:
        case "lexical":
            from exact.agents.builtin.value import LexicalValue

            return LexicalValue()
        case "learned":
            from exact.agents.learned.agent import learned_value

            return learned_value(settings.options)
        case "constant":
            from exact.agents.value.controls import ConstantValue

            return ConstantValue()
        case "oracle":
            from exact.agents.value.controls import OracleValue

            if episode_scores is None:
                raise UsageError("an oracle cannot be part of another value function: set value.kind to oracle")
            return OracleValue(episode_scores)
        case "reward":
            from exact.agents.value.controls import RewardValue

            if settings is not config.value:
                raise UsageError("a reward cannot be part of another value function: set value.kind to reward")
            return RewardValue(*settings.range)
        case "ensemble" | "cascade":
            return _build_composite(config, settings, models)
        case kind if kind in VALUES:
            return _build_model_value(config, settings, models)
        case _:
            own: ValueFunction = make_plugin("value.kind", settings.kind, VALUE_GROUP, settings.options)
            return own


def build_comparator(config: Config, models: Models) -> Comparator | None:
    """Return the comparator of sibling states. None if their values rank them."""
    if config.value.comparison == "values":
        return None
    from exact.agents.rank import LLMComparator

    return LLMComparator(models(config.value.role), config.value, config.view, sampling=_sampling_of(config, config.value.role))


def _build_model_value(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:
    """Return a value function that calls a model."""
    role = settings.role
    check_view(config.view)
    match settings.kind:
        case "debate":
            return _build_debate(config, settings, models)
        case "rubric":
            from exact.agents.value.rubric import RubricValue

            return RubricValue(models(role), settings, config.view, sampling=_sampling_of(config, role))
        case "comparative":
            from exact.agents.siblings import ComparativeValue

            return ComparativeValue(models(role), settings, config.view, sampling=_sampling_of(config, role))
        case "logprob":
            from exact.agents.value.logprob import LogprobValue

            return LogprobValue(models(role), settings, config.view, sampling=_sampling_of(config, role))
        case "trained":
            from exact.agents.value.logprob import TrainedValue

            return TrainedValue(models(role), settings, config.view)
        case _:
            from exact.agents.siblings import LLMValue

            prompt = "value_debate" if settings.kind == "single_debate" else "value"
            return LLMValue(models(role), settings, config.view, sampling=_sampling_of(config, role), prompt=prompt)  # type: ignore[arg-type]


def _build_debate(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:
    from exact.agents.value.debate import DebateValue, Speaker

    def speaker(role: str) -> Speaker:
        return Speaker(models(role), _sampling_of(config, role))

    judges = [speaker(judge_role(settings, index)) for index in range(settings.judges)]
    return DebateValue(speaker(f"{settings.role}.supporter"), speaker(f"{settings.role}.opposer"), judges, settings, config.view)


def _build_composite(config: Config, settings: ValueConfig, models: Models) -> ValueFunction:

    members = [build_value_function(config, member, models, None) for member in settings.members]
    if settings.kind == "cascade":
        return CascadeValue(*members)
    return EnsembleValue(
        {f"{number} {member.kind}": one for number, (member, one) in enumerate(zip(settings.members, members, strict=True), 1)}
    )


def _sampling_of(config: Config, role: str) -> Sampling:
    from exact.models.openai import sampling

    return sampling(model_for(config.models, role))


def _check_settings(settings: ValueConfig) -> None:
    """Check the settings of a value function.

    Raises UsageError.
    """
    if settings.kind == "reward" and settings.calibration:
        raise UsageError("value.kind reward has no calibration: rewards are no estimates")
    count = len(settings.members)
    if settings.kind == "cascade" and count != 2:
        raise UsageError(f"a cascade has two value.members, a cheap one and an expensive one, not {count}: name both")
    if settings.kind == "ensemble" and count == 0:
        raise UsageError("an ensemble has no value.members: name at least one")
    if settings.kind not in ("cascade", "ensemble") and count:
        raise UsageError(f"value.kind {settings.kind} has no members: set it to cascade or ensemble, or leave value.members out")


class EnsembleValue:
    """The mean of all members' values. `between` is the spread of the members."""

    def __init__(self, members: Mapping[str, ValueFunction]) -> None:
        """Configure the ensemble with at least one member, by name."""
        self._members = dict(members)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the mean evaluation.

        Raises ModelError if any member does: a mean over the remaining members would be a different value function.
        """
        return self._panel(await all_results([evaluate(member, context) for member in self._members.values()]))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return the mean evaluations of siblings, in order. Members that can evaluate them as a batch do.

        Raises ModelError.
        """
        found = await all_results([evaluate_all(member, contexts) for member in self._members.values()])
        return tuple(self._panel([each[i] for each in found]) for i in range(len(contexts)))

    def _panel(self, found: Sequence[Evaluation]) -> Evaluation:
        values = [each.value for each in found]
        samples = tuple(sample for each in found for sample in (each.samples or (each.value,)))
        mean = statistics.fmean(values)
        named = dict(zip(self._members, found, strict=True))
        return Evaluation(
            value=mean,
            rationale=min(found, key=lambda each: abs(each.value - mean)).rationale,
            samples=samples,
            disagreement=statistics.pstdev(samples),
            order_effect=statistics.fmean(each.order_effect for each in found),
            within=statistics.fmean(each.within**2 for each in found) ** 0.5,
            between=statistics.pstdev(values),
            arguments=tuple(argument for each in found for argument in each.arguments),
            judges=tuple(f"{name}: {each.value:.2f}, {each.rationale}" for name, each in named.items()),
        )


class CascadeValue:
    """Evaluates with a cheap value function; with an expensive one at ends, unseen states, confirmations and repeated evaluations.

    A search evaluates a state again if it matters: candidates for its decision whose values differ by less than the noise
    (`search.reevaluations`) and ends that it visits again. The search uses the mean of all evaluations of a state. It decides between
    close candidates by the evaluations that were made to separate them.
    """

    def __init__(self, cheap: ValueFunction, expensive: ValueFunction) -> None:
        self._cheap, self._expensive = cheap, expensive

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation of a state by the value function that applies.

        Raises ModelError.
        """
        if _decides(context):
            return await evaluate(self._expensive, context)
        if context.draw > 0:  # the cheap one had the first draw
            return await evaluate(self._expensive, msgspec.structs.replace(context, draw=context.draw - 1))
        return await evaluate(self._cheap, context)

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return evaluations of siblings, in order.

        The cheap value function evaluates first-time, non-terminal states as a batch. Raises ModelError.
        """
        plain = [context for context in contexts if not (_decides(context) or context.draw)]
        others = [context for context in contexts if _decides(context) or context.draw]
        together, apart = await all_results([self._all_cheap(plain), self._each(others)])
        cheap, expensive = iter(together), iter(apart)
        return tuple(next(expensive) if _decides(context) or context.draw else next(cheap) for context in contexts)

    async def _all_cheap(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return await evaluate_all(self._cheap, contexts) if contexts else ()

    async def _each(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return tuple(await all_results([self.evaluate(context) for context in contexts]))


def _decides(context: Context) -> bool:
    """Return whether an evaluation may decide on an action that cannot be taken back, or confirms another."""
    return context.terminated or context.unseen or context.confirms
