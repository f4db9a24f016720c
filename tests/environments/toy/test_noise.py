"""Noisy policies and judges of decision trees. Seeds are fixed: what is measured is the same in every run."""

from __future__ import annotations

from statistics import correlation, fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.agents import CERTAIN, Noise, NoisyJudge, NoisyPolicy
from exact.environments.toy.decision import DecisionTree
from exact.errors import UsageError

TREE = DecisionTree(4, 5, seed=2)
STATES = [state for a in TREE.children("") for b in TREE.children(a) for c in TREE.children(b) for state in TREE.children(c)]
"""All 256 states at level 4."""
KINDS: tuple[Noise, ...] = ("independent", "persistent", "correlated", "false_positive", "drift", "pure")


@given(st.sampled_from(KINDS), st.integers(0, 99), st.randoms())
def test_evaluations_do_not_depend_on_their_order(kind: Noise, seed: int, dice: object) -> None:
    asked = [(state, index) for state in STATES[:20] for index in range(3)]
    in_order = {key: NoisyJudge(TREE, kind=kind, seed=seed).judgement(*key) for key in asked}
    dice.shuffle(asked)  # type: ignore[attr-defined]
    judge = NoisyJudge(TREE, kind=kind, seed=seed)
    assert {key: judge.judgement(*key) for key in asked} == in_order
    assert all(0 <= value <= 1 for value in in_order.values())


@pytest.mark.parametrize("kind", ["independent", "persistent", "correlated", "drift"])
def test_errors_have_the_deviation_and_the_bias_that_were_asked_for(kind: Noise) -> None:
    judge = NoisyJudge(TREE, sd=0.3, bias=0.1, kind=kind)
    ends = [child for state in STATES for child in TREE.children(state)]
    errors = [judge.error(end) for end in ends]
    assert (pstdev(errors), fmean(errors)) == (pytest.approx(0.3, abs=0.03), pytest.approx(0.1, abs=0.06))


def test_judging_again_cures_independent_noise_and_not_persistent_noise() -> None:
    left = {}
    for kind in ("independent", "persistent"):
        judge = NoisyJudge(TREE, sd=0.3, kind=kind)
        left[kind] = pstdev([fmean(judge.error(state, index) for index in range(64)) for state in STATES])
    assert left["independent"] < 0.06 < 0.25 < left["persistent"]
    assert len({NoisyJudge(TREE, kind="persistent").judgement("2", index) for index in range(9)}) == 1


@pytest.mark.parametrize("asked", [0.0, 0.5, 0.9])
def test_siblings_share_the_part_of_their_error_that_was_asked_for_and_cousins_none(asked: float) -> None:
    judge = NoisyJudge(TREE, sd=0.2, kind="correlated", correlation=asked)
    first = [judge.error(state) for state in STATES if state.endswith(".0")]
    second = [judge.error(state) for state in STATES if state.endswith(".1")]
    families = [judge.error(end) for state in STATES for end in TREE.children(state)[:1]]
    siblings = [judge.error(end) for state in STATES for end in TREE.children(state)[1:2]]
    assert correlation(families, siblings) == pytest.approx(asked, abs=0.15)
    assert abs(correlation(first, second[1:] + second[:1])) < 0.4


def test_judging_again_cures_only_the_part_that_siblings_do_not_share() -> None:
    judge = NoisyJudge(TREE, sd=0.2, kind="correlated", correlation=0.5)
    means = [[fmean(judge.error(child, i) for i in range(32)) for child in TREE.children(state)[:2]] for state in STATES]
    assert correlation(*zip(*means, strict=True)) > 0.9
    assert pstdev([mean for mean, _ in means]) == pytest.approx(0.2 * 0.5**0.5, abs=0.03)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1])
def test_the_asked_share_of_lost_states_looks_certain_however_often_judged_and_no_other_state_is_fooled(rate: float) -> None:
    judge = NoisyJudge(DecisionTree(4, 6, rate=0.0, seed=1), kind="false_positive", false_positives=rate)
    lost = [f"{a}.{b}.{c}.{d}.{e}" for a in range(4) for b in range(4) for c in range(4) for d in range(4) for e in range(4)]
    lost = [state for state in lost if not judge.tree.wins(state)]
    fooled = [state for state in lost if judge.fooled(state)]
    assert len(fooled) / len(lost) == pytest.approx(rate, abs=0.03)
    assert {judge.judgement(state, index) for state in fooled for index in range(3)} <= {CERTAIN}


def test_a_state_that_can_be_won_is_never_a_false_positive() -> None:
    judge = NoisyJudge(TREE, kind="false_positive", false_positives=1.0)
    assert {judge.fooled(state) is not TREE.wins(state) for state in STATES} == {True}
    assert {TREE.wins(state) for state in STATES} == {True, False}


def test_false_positives_come_with_their_own_kind_or_where_they_are_asked_for() -> None:
    lost = [end for state in STATES for end in TREE.children(state) if not TREE.wins(end)]
    for judge, some in (
        (NoisyJudge(TREE, kind="false_positive"), True),
        (NoisyJudge(TREE), False),
        (NoisyJudge(TREE, kind="persistent", false_positives=0.1), True),
    ):
        assert any(map(judge.fooled, lost)) is some


def test_drift_grows_with_depth() -> None:
    judge, tree = NoisyJudge(TREE, sd=0.3, kind="drift"), TREE
    state, spreads = "", []
    for _ in range(tree.depth + 1):
        spreads.append(pstdev([judge.error(state, index) for index in range(400)]))
        state = tree.child(state, 0) if not tree.is_end(state) else state
    assert spreads == sorted(spreads)
    assert spreads[0] == pytest.approx(0.05, abs=0.01) and spreads[-1] == pytest.approx(0.3, abs=0.05)


def test_a_pure_judge_says_nothing_about_the_value() -> None:
    judge = NoisyJudge(TREE, kind="pure")
    ends = [end for state in STATES for end in TREE.children(state)]
    said = [judge.judgement(end) for end in ends]
    won = [judge.judgement(end, i) for end in ends if TREE.wins(end) for i in range(10)]
    assert fmean(said) == pytest.approx(0.5, abs=0.05)
    assert fmean(won) == pytest.approx(0.5, abs=0.07)
    assert abs(correlation(said, [TREE.value(end) for end in ends])) < 0.12


def test_a_faultless_judge_says_the_value_and_another_seed_errs_otherwise() -> None:
    assert all(NoisyJudge(TREE, sd=0.0).judgement(state) == TREE.value(state) for state in STATES)
    one, other = ([NoisyJudge(TREE, sd=0.3, seed=seed).error(state) for state in STATES] for seed in (0, 1))
    assert abs(correlation(one, other)) < 0.25


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_the_right_action_is_missing_as_often_as_was_asked_for(rate: float) -> None:
    trees = [DecisionTree(3, 3, seed=seed) for seed in range(800)]
    missed = [NoisyPolicy(tree, missing=rate).misses("") for tree in trees]
    assert fmean(missed) == pytest.approx(rate, abs=0.06)
    for tree, misses in zip(trees, missed, strict=True):
        proposed = [action for action, _ in NoisyPolicy(tree, missing=rate).priors("")]
        assert (tree.right("") not in proposed) is misses and len(proposed) == 3 - misses


@given(st.integers(0, 10**6), st.floats(0, 2), st.floats(0.01, 5), st.floats(0, 1), st.integers(1, 5))
def test_priors_of_the_likeliest_k_sum_to_one(seed: int, sd: float, temperature: float, missing: float, k: int) -> None:
    policy = NoisyPolicy(DecisionTree(4, 2, seed=seed), sd=sd, temperature=temperature, missing=missing)
    priors, best = policy.priors(""), policy.priors("", k)
    assert sum(prior for _, prior in best) == pytest.approx(1)
    assert len(best) == min(k, len(priors)) and best == sorted(best)
    worst = min(dict(priors)[action] for action, _ in best)
    assert all(prior <= worst + 1e-12 for action, prior in priors if action not in dict(best))


def test_temperature_makes_a_policy_sure_or_indifferent() -> None:
    sharp, flat = (dict(NoisyPolicy(TREE, sd=0.0, temperature=t).priors("")) for t in (0.01, 100.0))
    assert max(sharp.values()) > 0.9 and max(sharp, key=lambda action: sharp[action]) == TREE.right("")
    assert list(flat.values()) == [pytest.approx(0.25, abs=0.01)] * 4


def test_noise_decides_how_often_the_policy_likes_the_right_action_best() -> None:
    def rate(sd: float) -> float:
        trees = [DecisionTree(4, 3, seed=seed, rate=0.0) for seed in range(200)]
        return fmean(max(NoisyPolicy(tree, sd=sd).priors(""), key=lambda item: item[1])[0] == tree.right("") for tree in trees)

    assert rate(0.0) == 1.0 > rate(0.2) > rate(2.0) + 0.1


def test_samples_follow_the_priors_and_are_keyed() -> None:
    policy = NoisyPolicy(TREE, sd=0.0, temperature=0.5)
    drawn = [policy.draw("", index) for index in range(2000)]
    assert drawn[::-1] == [policy.draw("", index) for index in reversed(range(2000))]
    for action, prior in policy.priors(""):
        assert drawn.count(action) / 2000 == pytest.approx(prior, abs=0.05)


def test_an_end_has_no_priors_and_figures_out_of_range_are_refused() -> None:
    end = TREE.sure
    assert NoisyPolicy(TREE).priors(end) == []
    for make in (
        lambda: NoisyPolicy(TREE).draw(end, 0),
        lambda: NoisyPolicy(TREE, temperature=0.0),
        lambda: NoisyPolicy(TREE, missing=1.1),
        lambda: NoisyJudge(TREE, sd=-1.0),
        lambda: NoisyJudge(TREE, correlation=1.1),
        lambda: NoisyJudge(TREE, kind="persistant"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError):
            make()
