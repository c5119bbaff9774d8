"""Counts against a law that is known."""

import numpy as np
import pytest
from scipy import stats

from feelgood.stats.counts_of_law import p_of_counts


@pytest.mark.parametrize("count", [0, 3, 11, 40])
def test_two_outcomes_are_scipys_binomial_tails(count: int) -> None:
    tails = stats.binom.cdf(count, 40, 0.3), stats.binom.sf(count - 1, 40, 0.3)
    got = p_of_counts(np.array([count, 40 - count]), np.array([0.3, 0.7]))
    assert got == pytest.approx(min(1.0, 4.0 * min(tails)))


def test_an_impossible_outcome_is_noticed_and_a_certain_one_is_not() -> None:
    assert p_of_counts(np.array([99, 1]), np.array([1.0, 0.0])) == 0.0
    assert p_of_counts(np.array([100, 0]), np.array([1.0, 0.0])) == 1.0
    assert p_of_counts(np.array([99, 1]), np.array([1.0 - 1e-9, 1e-9])) < 1e-6


def test_false_alarms_are_no_more_than_their_level() -> None:
    """2,000 samples with a rare outcome, level 5 %: at most 5 % are refused, up to 1e-6 by luck."""
    law = np.array([0.6, 0.35, 0.049, 0.001])
    samples = np.random.default_rng(0).multinomial(300, law, size=2000)
    refused = sum(p_of_counts(sample, law) < 0.05 for sample in samples)
    assert refused <= stats.binom.isf(1e-6, 2000, 0.05)
    tilted = np.random.default_rng(1).multinomial(300, [0.4, 0.55, 0.049, 0.001])
    assert p_of_counts(tilted, law) < 1e-6
