"""Holm's correction against its definition: the closed test of Bonferroni's."""

import itertools

import numpy as np
import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.stats.holm import holm


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_closed_test_of_bonferroni(seed: int) -> None:
    """A hypothesis is rejected where every set of hypotheses that holds it is."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=5) ** 3
    p[rng.integers(5)] = p[0]  # ties, too
    subsets = [s for n in range(1, 6) for s in itertools.combinations(range(5), n)]
    closed = [
        max(min(1.0, len(s) * min(p[j] for j in s)) for s in subsets if i in s) for i in range(5)
    ]
    np.testing.assert_allclose(holm(p), closed, rtol=1e-12)
    assert (holm(p) <= np.minimum(1.0, 5 * p) + 1e-15).all()


def test_all_true_hypotheses_are_kept_as_often_as_said() -> None:
    """With independent tests the rate is 1 − (1 − α/m)^m exactly.

    The share of 20,000 families has standard error 0.0015; six of them err once in 5e8 times.
    """
    p = np.random.default_rng(0).uniform(size=(20_000, 8))
    share = np.mean([(holm(own) <= 0.05).any() for own in p])
    exact = 1.0 - (1.0 - 0.05 / 8) ** 8
    assert abs(share - exact) < 6 * np.sqrt(exact * (1 - exact) / 20_000)


def test_missing_ones_count_and_stay_missing() -> None:
    np.testing.assert_array_equal(holm([np.nan, 0.01, np.nan]), [np.nan, 0.03, np.nan])
    assert holm([]).size == 0
    with pytest.raises(FeelgoodError, match="use an array of numbers with one axis"):
        holm("0.1")
