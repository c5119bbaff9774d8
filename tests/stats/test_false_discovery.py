"""Benjamini and Hochberg's correction against its definition and its promise."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from feelgood.stats.false_discovery import benjamini_hochberg
from feelgood.stats.holm import holm


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_step_up_procedure(seed: int) -> None:
    """Rejecting at α is rejecting the k smallest, k the last with p(k) ≤ α k/m."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=30) ** 3
    p[3] = p[7]  # ties, too
    ours = benjamini_hochberg(p)
    np.testing.assert_allclose(ours, false_discovery_control(p), rtol=1e-12)
    assert (ours <= holm(p) + 1e-15).all()
    for alpha in (0.01, 0.05, 0.3):
        ordered = np.sort(p)
        small = np.flatnonzero(ordered <= alpha * np.arange(1, 31) / 30)
        k = small[-1] + 1 if small.size else 0
        assert (ours <= alpha).sum() == k


def test_the_share_of_false_rejections_is_as_said() -> None:
    """With m₀ of m hypotheses true and independent it is α m₀/m exactly, on average.

    Of the mean of 1,500 families five standard errors are allowed, which fails once in 2e6 times.
    """
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(1_500, 8))
    p[:, :2] = p[:, :2] * 1e-4  # two are false
    found = np.array([benjamini_hochberg(own) <= 0.1 for own in p])
    shares = found[:, 2:].sum(1) / np.maximum(1, found.sum(1))
    assert abs(shares.mean() - 0.1 * 6 / 8) < 5 * shares.std() / np.sqrt(1_500)


def test_missing_ones_count_and_stay_missing() -> None:
    np.testing.assert_allclose(
        benjamini_hochberg([np.nan, 0.01, 0.02, np.nan]), [np.nan, 0.04, 0.04, np.nan]
    )
    assert benjamini_hochberg([]).size == 0
