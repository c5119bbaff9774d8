"""Shares with intervals."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from feelgood.core.errors import FeelgoodError
from feelgood.stats.intervals import Estimate
from feelgood.stats.shares import stuck_share


def test_stuck_seeds_are_counted_with_wilsons_interval() -> None:
    found = stuck_share([2140.0, np.nan, 7600.0, 2393.0, 100.0], 2393.0)
    assert (found.value, found.count, found.dropped) == (0.6, 5, 1)
    theirs = binomtest(3, 5).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose([found.low, found.high], [theirs.low, theirs.high], rtol=1e-12)
    none = stuck_share(np.zeros(5), 1.0)
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.434, abs=0.001)
    assert np.isnan(stuck_share([], 1.0).value)
    with pytest.raises(FeelgoodError, match="from_regret"):
        stuck_share([1.0], "much")


@pytest.mark.parametrize("share", [0.02, 0.17, 0.5])
def test_the_interval_covers_exactly_as_often_as_the_binomial_law_says(share: float) -> None:
    """Of 100 seeds; Wilson's interval is near its level on average, and 0.9 at the worst here."""
    counts = np.arange(101)
    found = [_of(k) for k in counts]
    hits = np.array([e.low <= share <= e.high for e in found])
    assert binom.pmf(counts, 100, share)[hits].sum() == pytest.approx(0.95, abs=0.03)


def _of(stuck: int) -> Estimate:
    return stuck_share(np.where(np.arange(100) < stuck, 2.0, 0.0), 1.0)
