"""Whole runs against published numbers and an independent computation."""

import numpy as np
import pytest

import feelgood
from feelgood.api.run_result import RunResult

ROUNDS, SEEDS = 10_000, 100


@pytest.fixture(scope="module")
def result() -> RunResult:
    return feelgood.run("linear-20", ["lints", "linucb", "uniform"], rounds=ROUNDS, seeds=SEEDS)


def test_lints_is_the_published_one() -> None:
    """Published 114.7 (10 seeds). The standard error of our mean is about 2."""
    (lints,) = feelgood.run("linear-20", "lints", rounds=ROUNDS, seeds=SEEDS, preset="paper")
    assert 109 <= lints.regret.mean <= 119
    assert lints.regret.sem < 3


@pytest.mark.slow
def test_linucb_with_alpha_1_is_the_released_one(result: RunResult) -> None:
    """The released configuration gives 61 ± 12. The standard error of our mean is about 1."""
    assert result["linucb"].settings["alpha"] == 1.0
    assert 58 <= result["linucb"].regret.mean <= 65
    assert result["linucb"].regret.sem < 2


def test_uniform_is_within_three_standard_errors_of_plain_numpy(result: RunResult) -> None:
    """E[max_a θ_a·x − mean_a θ_a·x], 0.27 % false alarms.

    Given θ the rounds are independent, so a seed's regret is T times its own mean; numpy takes
    40,000 θ with 10 contexts each, from its own generator.
    """
    rng = np.random.default_rng(20)
    theta = rng.normal(size=(40_000, 1, 5, 4))
    rewards = (theta * rng.normal(size=(40_000, 10, 1, 4))).sum(axis=-1)
    regret = (rewards.max(axis=-1) - rewards.mean(axis=-1)).mean(axis=1)
    expected, error = regret.mean(), regret.std(ddof=1) / np.sqrt(len(regret))
    ours = result["uniform"].regret
    assert ours.sem < 0.02 * ours.mean
    assert abs(ours.mean - ROUNDS * expected) < 3 * np.hypot(ours.sem, ROUNDS * error)


def test_reported_quantities_fit_together(result: RunResult) -> None:
    for r in result:
        assert r.status == "ok"
        np.testing.assert_allclose(r.curve[:, -1], r.final_regret)
        assert np.all(np.diff(r.curve, axis=1) >= 0)
        np.testing.assert_array_equal(r.arm_counts.sum(axis=1), ROUNDS)
        assert np.all(r.simple_regret <= r.final_regret)
        before = r.curve[:, np.searchsorted(r.curve_rounds, ROUNDS - 500)]
        np.testing.assert_allclose(r.simple_regret, r.final_regret - before, rtol=1e-4, atol=1e-3)
    best = {r.agent: float(np.mean(r.best_arm_rate)) for r in result}
    assert best["uniform"] == pytest.approx(0.2, abs=0.002)
    assert min(best["lints"], best["linucb"]) > 0.8, "agents that learn"
