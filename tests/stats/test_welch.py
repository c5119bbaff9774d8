"""Welch's test against scipy."""

import math

import numpy as np
import pytest
import scipy.stats

from feelgood.stats.welch import welch, welch_samples


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((62.8, 10.1, 10), (62.6, 9.5, 10)),
        ((145.0, 20.0, 20), (19236.8, 15560.8, 10)),
        ((5.0, 0.0, 3), (5.5, 1.0, 2)),
        ((100.0, 1.0, 200), (50.0, 30.0, 5)),
    ],
)
def test_welch_is_that_of_scipy(a: tuple[float, float, int], b: tuple[float, float, int]) -> None:
    ours = welch(*a, *b)
    theirs = scipy.stats.ttest_ind_from_stats(*a, *b, equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.difference == a[0] - b[0]
    assert ours.rejects == (theirs.pvalue <= 0.01)


def test_welch_on_samples_leaves_out_and_counts_what_diverged() -> None:
    a, b = np.array([1.0, 2.0, 4.0, np.nan]), np.array([3.0, 5.0, np.inf, np.nan, 9.0])
    ours = welch_samples(a, b)
    theirs = scipy.stats.ttest_ind(a[:3], np.array([3.0, 5.0, 9.0]), equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.dropped == (1, 2)


def test_welch_without_spread_or_values() -> None:
    assert welch(0.0, 0.0, 5, 0.0, 0.0, 5).p == 1.0
    assert welch(1.0, 0.0, 5, 0.0, 0.0, 5).p == 0.0
    alone = welch(1.0, math.nan, 1, 50.0, 1.0, 10)
    assert math.isnan(alone.p)
    assert not alone.rejects
