"""Two one-sided tests: against the interval, and their error rates by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from feelgood.core.errors import FeelgoodError
from feelgood.stats.equivalence import (
    chance_of_mean,
    ratio_tost,
    smallest_difference,
    smallest_resampled,
    tost,
)
from feelgood.stats.welch import welch, welch_samples


@pytest.mark.parametrize("seed", range(8))
def test_it_is_both_one_sided_tests_and_the_interval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10.0, 2.0, 12), rng.normal(10.5, 4.0, 30)
    found = tost(welch_samples(a, b), margin=2.0)
    upper = stats.ttest_ind(a, b + 2.0, equal_var=False, alternative="less").pvalue
    lower = stats.ttest_ind(a, b - 2.0, equal_var=False, alternative="greater").pvalue
    assert found.p == pytest.approx(max(upper, lower), rel=1e-9)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    np.testing.assert_allclose([found.low, found.high], theirs, rtol=1e-9)
    assert found.equivalent == (found.low > -2.0 and found.high < 2.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_ratio_is_tested_as_two_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10.0, 1.0, 12), rng.normal(10.5, 2.0, 30)
    found = ratio_tost(*((x.mean(), x.std(ddof=1), len(x)) for x in (a, b)), margin=0.2)
    upper = stats.ttest_ind(a, 1.2 * b, equal_var=False, alternative="less").pvalue
    lower = stats.ttest_ind(a, 0.8 * b, equal_var=False, alternative="greater").pvalue
    assert found.p == pytest.approx(max(upper, lower), rel=1e-9)
    for end, side in ((found.low, "greater"), (found.high, "less")):
        at_end = stats.ttest_ind(a, (1.0 + end) * b, equal_var=False, alternative=side).pvalue
        assert at_end == pytest.approx(0.05, rel=1e-4)
    assert found.equivalent == (found.low > -0.2 and found.high < 0.2)


def test_a_mean_near_zero_has_no_ratio() -> None:
    wide = ratio_tost((1.0, 0.1, 10), (1.0, 5.0, 5))
    assert (wide.high, wide.equivalent) == (math.inf, False)
    assert not ratio_tost((1.0, 0.1, 10), (0.0, 0.0, 5)).equivalent
    assert math.isnan(ratio_tost((1.0, math.nan, 1), (1.0, 0.1, 5)).p)


def test_a_mean_without_stuck_seeds_is_no_surprise_among_seeds_that_are_stuck_at_times() -> None:
    """One of six stuck: of five seeds none is with probability 0.40, and two or more with 0.20."""
    values = np.where(np.arange(60) < 10, 3.5, 1.0)
    share = chance_of_mean(values, 1.0, 5)
    exact = 1.0 - stats.binom.pmf(1, 5, 1 / 6)  # one stuck seed is nearer to the mean
    assert share == pytest.approx(exact, abs=0.05)  # 4,000 draws: six standard errors
    assert chance_of_mean(values, 1.0, 60) < 0.01
    assert chance_of_mean(np.array([1.0, 1.1, 0.9]), 5.0, 5) == 0.0
    assert math.isnan(chance_of_mean([1.0], 1.0, 5))


def test_at_the_margin_equivalence_is_found_as_often_as_said() -> None:
    """Normal values, means apart by the margin: the rate is the level 0.05.

    1,500 pairs of samples have standard error 0.0056; five of them err once in 2e6 times. Welch's
    approximation of the degrees of freedom adds at most 0.001 here.
    """
    rng = np.random.default_rng(0)
    a, b = rng.normal(1.2, 0.1, (1_500, 30)), rng.normal(1.0, 0.1, (1_500, 10))
    summaries = zip(a.mean(1), a.std(1, ddof=1), b.mean(1), b.std(1, ddof=1), strict=True)
    hits = [tost(welch(ma, sa, 30, mb, sb, 10), 0.2).equivalent for ma, sa, mb, sb in summaries]
    assert np.mean(hits) == pytest.approx(0.05, abs=0.029)


def test_the_smallest_difference_is_seen_with_the_stated_power() -> None:
    """Known spread: at that difference 80 % of 4,000 pairs of samples are told apart."""
    test = welch(0.0, 1.0, 200, 0.0, 1.0, 200, level=0.01)
    gap = smallest_difference(test)
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.0, 1.0, (4_000, 200)), rng.normal(gap, 1.0, (4_000, 200))
    seen = stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue <= 0.01
    assert seen.mean() == pytest.approx(0.8, abs=5 * math.sqrt(0.16 / 4_000))
    assert smallest_difference(test, 0.5) < gap


def test_without_a_second_value_nothing_is_equivalent() -> None:
    alone = tost(welch(1.0, math.nan, 1, 1.0, 0.1, 10), 0.2)
    assert not alone.equivalent
    assert math.isnan(smallest_difference(welch(1.0, math.nan, 1, 1.0, 0.1, 10)))
    same = welch(1.0, 0.0, 10, 1.0, 0.0, 10)
    assert tost(same, 0.2).equivalent
    assert smallest_difference(same) == 0.0
    with pytest.raises(FeelgoodError, match="margin"):
        tost(same, 0.0)
    with pytest.raises(FeelgoodError, match=r"below 0\.5"):
        tost(same, 1.0, level=0.5)


def test_what_resampling_could_have_seen() -> None:
    """For many normal values it is (z₀.₉₉₅ + z₀.₈) standard errors of a mean of so many.

    The quantiles of 4,000 resamples have errors of about 3 %; a sixth is five of these.
    """
    values = stats.norm.ppf((np.arange(1_000) + 0.5) / 1_000)
    expected = (stats.norm.ppf(0.995) + stats.norm.ppf(0.8)) / math.sqrt(10)
    assert smallest_resampled(values, 10) == pytest.approx(expected, rel=1 / 6)
    assert smallest_resampled(values, 10, power=0.5) < smallest_resampled(values, 10)
    assert math.isnan(smallest_resampled([1.0], 10))


def test_what_resampling_could_have_seen_it_sees() -> None:
    """Skewed values: a mean that far away is beyond the level in both directions."""
    values = np.array([1.0] * 17 + [10.0, 11.0, 12.0])
    far = smallest_resampled(values, 5)
    for sign in (-1.0, 1.0):
        assert chance_of_mean(values, values.mean() + 1.001 * sign * far, 5) <= 0.01
