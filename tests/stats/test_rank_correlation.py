"""Rank correlations against scipy, and the coverage of their intervals."""

import numpy as np
import pytest
from scipy import stats

from feelgood.stats.rank_correlation import FEWEST_AGENTS, rank_correlation


def test_rank_correlations_are_those_of_scipy_with_ties_too() -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.integers(6, size=(9, 1)).astype(float) for _ in range(2))
    found = rank_correlation(x, y)
    assert found.spearman == pytest.approx(stats.spearmanr(x[:, 0], y[:, 0]).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(x[:, 0], y[:, 0]).statistic)
    assert found.spearman_interval[0] <= found.spearman <= found.spearman_interval[1]


@pytest.mark.slow
def test_the_interval_covers_about_as_often_as_it_says() -> None:
    """Correlated normal agents, the seeds' noise small: ρ = 0.68 of the ranks at r = 0.7.

    The percentile interval of 12 agents is known to cover a little less than 95 %. If it covers
    93 %, less than 80 % of 60 intervals cover by chance once in 10⁴.
    """
    generator = np.random.default_rng(1)
    truth = 6 / np.pi * np.arcsin(0.35)
    inside = 0
    for number in range(60):
        x = generator.standard_normal((12, 1))
        y = 0.7 * x + np.sqrt(1 - 0.49) * generator.standard_normal((12, 1))
        noise = 0.01 * generator.standard_normal((2, 12, 4))
        low, high = rank_correlation(x + noise[0], y + noise[1], seed=number).spearman_interval
        inside += low <= truth <= high
    assert inside >= 48


def test_few_agents_gaps_and_ties_are_said_in_words() -> None:
    few = rank_correlation(np.ones((FEWEST_AGENTS - 1, 3)), np.ones((FEWEST_AGENTS - 1, 3)))
    assert not few.enough and "4 agents are too few" in few.sentence
    alike = rank_correlation(np.ones((6, 3)), np.ones((6, 3)))
    assert "undefined" in alike.sentence
    x = np.arange(6.0)[:, None] * np.ones(3)
    y = x.copy()
    y[2, :2] = np.nan  # one seed of three is left
    assert rank_correlation(x, y).agents == 6
    y[2] = np.nan
    assert rank_correlation(x, y).agents == 5
    assert rank_correlation(x, y).spearman == 1.0
