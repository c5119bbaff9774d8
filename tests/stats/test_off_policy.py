"""Estimators of a policy's value: against another library, exact sums, and 10,000 logs.

The logs of the statistical tests are drawn from a law whose values are known. Each of their three
checks has a false-alarm rate of 1e-6 (|z| < 4.9), stated where it is made.
"""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from feelgood import FeelgoodError
from feelgood.stats.off_policy import (
    direct_method,
    doubly_robust,
    effective_decisions,
    importance_weights,
    inverse_propensity,
    replay,
    self_normalised,
    thin_overlap,
)

FROZEN = json.loads((Path(__file__).parent / "obp_numbers.json").read_text(encoding="utf-8"))
#: P(|z| > 4.9) = 1e-6.
FARTHEST = 4.9


def unpacked(text: str, kind: type) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), kind)


@pytest.mark.parametrize("policy", ["uniform", "bts", "best item"])
@pytest.mark.parametrize("behaviour", ["random", "bts"])
def test_numbers_are_those_of_obp(behaviour: str, policy: str) -> None:
    """On 10,000 logged decisions, to 1e-6 as promised; in fact to rounding."""
    log = FROZEN["logs"][behaviour]
    codes = unpacked(log["codes"], np.uint8).astype(int)
    item, position, r = codes // 6, codes // 2 % 3, (codes % 2).astype(float)
    assert len(r) == 10_000
    known = log["pscore"]
    p = np.full(len(r), known) if isinstance(known, float) else unpacked(known, np.float64)
    clicks, views = np.zeros((34, 3)), np.zeros((34, 3))
    np.add.at(clicks, (item, position), r)
    np.add.at(views, (item, position), 1)
    model = (clicks + 0.5) / (views + 100)
    law = np.array(log["policies"][policy])
    pi = law[item, position]
    w = importance_weights(pi, p)
    q, q_bar = model[item, position], (law * model).sum(axis=0)[position]
    ours = {
        "ips": inverse_propensity(r, w),
        "snips": self_normalised(r, w),
        "dm": direct_method(q_bar),
        "dr": doubly_robust(r, w, q, q_bar),
        "replay": replay(r, pi),
    }
    theirs = log["estimates"][policy]
    assert len(theirs) == 4 + (policy == "best item")
    for name, value in theirs.items():
        assert ours[name].value == pytest.approx(value, rel=1e-10, abs=1e-12), name


#: A world of 2 contexts and 3 arms: chance of a reward, the log's law, and the policy's.
CHANCE = np.array([[0.1, 0.5, 0.9], [0.6, 0.3, 0.2]])
LOGGED = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
POLICY = np.array([[0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
VALUE = float((POLICY * CHANCE).sum(axis=1).mean())
#: A model that is wrong on purpose.
MODEL = np.array([[0.3, 0.3, 0.5], [0.4, 0.5, 0.1]])


def logs(count: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, arms and rewards of many logs."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (count, size))
    a = (rng.random((count, size, 1)) > np.cumsum(LOGGED, axis=1)[x]).sum(axis=2)
    return x, a, (rng.random((count, size)) < CHANCE[x, a]).astype(float)


@pytest.mark.parametrize("kind", ["ips", "dr"])
def test_a_known_policy_is_judged_without_bias_over_ten_thousand_logs(kind: str) -> None:
    """Mean over 10⁴ logs of 40 decisions; and 95 % intervals hold the truth about that often."""
    x, a, r = logs(10_000, 40, seed=1)
    estimates, held = [], 0
    for one_x, one_a, one_r in zip(x, a, r, strict=True):
        w = importance_weights(POLICY[one_x, one_a], LOGGED[one_x, one_a])
        if kind == "ips":
            found = inverse_propensity(one_r, w)
        else:
            q_bar = (POLICY * MODEL).sum(axis=1)[one_x]
            found = doubly_robust(one_r, w, MODEL[one_x, one_a], q_bar)
        estimates.append(found.value)
        held += found.low <= VALUE <= found.high
    z = (np.mean(estimates) - VALUE) / (np.std(estimates, ddof=1) / np.sqrt(len(estimates)))
    assert abs(z) < FARTHEST
    # Weights up to 8 skew the mean of 40 decisions; the coverage of t is then a little short.
    assert 0.88 < held / 10_000 < 0.97


def test_long_logs_agree_with_the_truth_whichever_estimator_is_used() -> None:
    """One log of 200,000 decisions: the errors that are stated are those that are made."""
    x, a, r = (part[0] for part in logs(1, 200_000, seed=2))
    w = importance_weights(POLICY[x, a], LOGGED[x, a])
    for found in (
        inverse_propensity(r, w),
        self_normalised(r, w),
        doubly_robust(r, w, CHANCE[x, a], (POLICY * CHANCE).sum(axis=1)[x]),
        direct_method((POLICY * CHANCE).sum(axis=1)[x]),
    ):
        assert abs(found.value - VALUE) < FARTHEST * found.error
    uniform = np.random.default_rng(3).integers(0, 3, len(x))
    paid = np.random.default_rng(4).random(len(x)) < CHANCE[x, uniform]
    found = replay(paid.astype(float), POLICY[x, uniform])
    assert abs(found.value - VALUE) < FARTHEST * found.error


def test_errors_of_ratios_are_those_of_repeated_logs() -> None:
    """The spread of 2,000 estimates is known to 1.6 %, so 8 % are five standard errors: 6e-7."""
    x, a, r = logs(2_000, 400, seed=5)
    found = [
        self_normalised(one_r, importance_weights(POLICY[one_x, one_a], LOGGED[one_x, one_a]))
        for one_x, one_a, one_r in zip(x, a, r, strict=True)
    ]
    spread = np.std([f.value for f in found], ddof=1)
    assert np.sqrt(np.mean([f.error**2 for f in found])) == pytest.approx(spread, rel=0.08)


def test_a_policy_on_its_own_log_is_the_mean_reward() -> None:
    r = np.array([0.0, 1.0, 1.0, 4.0])
    w = np.ones(4)
    for found in (inverse_propensity(r, w), self_normalised(r, w), replay(r, w / 3)):
        assert found.value == 1.5
        assert found.error == pytest.approx(np.std(r, ddof=1) / 2)
    assert effective_decisions(w) == 4.0


def test_effective_decisions_and_warnings() -> None:
    assert effective_decisions([1.0, 1.0, 0.0, 0.0]) == 2.0
    assert effective_decisions([0.0]) == 0.0
    assert "worth 50 of its own" in str(thin_overlap(np.repeat([2.0, 0.0], 50)))
    few = np.r_[np.full(1_000, 100.0), np.zeros(99_000)]
    assert thin_overlap(few) is None  # 1 % of all, 1,000 of them
    assert "too thin" in str(thin_overlap(np.r_[few, np.zeros(5_000)]))
    x, a, _ = (part[0] for part in logs(1, 5_000, seed=6))
    w = POLICY[x, a] / LOGGED[x, a]
    assert thin_overlap(w) is None
    assert "should be 1" in str(thin_overlap(w * 0.8))


def test_terms_compare_two_policies() -> None:
    """Differences of terms have the mean of the difference, and a smaller error."""
    x, a, r = (part[0] for part in logs(1, 50_000, seed=7))
    w = POLICY[x, a] / LOGGED[x, a]
    near = 0.9 * POLICY[x, a] / LOGGED[x, a] + 0.1
    one, other = self_normalised(r, w), self_normalised(r, near)
    difference = one.terms - other.terms
    assert difference.mean() == pytest.approx(one.value - other.value, abs=1e-12)
    assert np.std(difference) / np.sqrt(len(x)) < 0.2 * one.error


def test_a_decision_of_mass_two_is_two_decisions() -> None:
    x, a, r = (part[0] for part in logs(1, 400, seed=8))
    w, pi = POLICY[x, a] / LOGGED[x, a], POLICY[x, a]
    q, q_bar = MODEL[x, a], (POLICY * MODEL).sum(axis=1)[x]
    mass = np.random.default_rng(9).integers(0, 4, len(x))
    twice = np.repeat(np.arange(len(x)), mass)
    for estimate, columns in (
        (inverse_propensity, (r, w)),
        (self_normalised, (r, w)),
        (replay, (r, pi)),
        (direct_method, (q_bar,)),
        (doubly_robust, (r, w, q, q_bar)),
    ):
        weighted = estimate(*columns, mass=mass.astype(float)).value
        assert weighted == pytest.approx(estimate(*(c[twice] for c in columns)).value, rel=1e-12)


def test_a_thinned_log_is_judged_by_its_masses() -> None:
    """Decisions without a reward are kept one time in five, and count five times then."""
    x, a, r = (part[0] for part in logs(1, 200_000, seed=10))
    kept = (r == 1.0) | (np.random.default_rng(11).random(len(x)) < 0.2)
    x, a, r = x[kept], a[kept], r[kept]
    w, mass = POLICY[x, a] / LOGGED[x, a], np.where(r == 1.0, 1.0, 5.0)
    for estimate in (inverse_propensity, self_normalised):
        found = estimate(r, w, mass=mass)
        assert abs(found.value - VALUE) < FARTHEST * found.error
        assert abs(estimate(r, w).value - VALUE) > 0.1


def test_misuse_is_told_in_a_sentence() -> None:
    for wrong, sentence in (
        (lambda: inverse_propensity([1.0], [1.0, 2.0]), "differ in shape"),
        (lambda: inverse_propensity([np.nan], [1.0]), "not finite"),
        (lambda: inverse_propensity([], []), "no decisions"),
        (lambda: importance_weights([0.5], [0.0]), "a logged probability is 0"),
        (lambda: replay([1.0], [1.0], mass=[-1.0]), "a mass is below 0"),
        (lambda: replay([1.0], [1.0], level=95), "level = 95 is not allowed"),
    ):
        with pytest.raises(FeelgoodError, match=sentence):
            wrong()
    assert np.isnan(replay([1.0, 0.0], [0.0, 0.0]).value)
    assert np.isnan(inverse_propensity([1.0], [1.0]).low)
