"""Are two means as good as equal? Two one-sided tests, and what a test could have seen."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from feelgood.core.arguments import parse_level, parse_number, parse_values, parse_whole
from feelgood.core.errors import FeelgoodError, shown
from feelgood.stats.student import t_quantile
from feelgood.stats.summary import PerSeed
from feelgood.stats.welch import WelchTest, welch


@dataclasses.dataclass(frozen=True)
class EquivalenceTest:
    """Do two means differ by less than a margin?

    `low` and `high` are the ends of the interval at level 1 − 2 `level` for their difference: the
    means are equivalent where it lies between −`margin` and `margin`. `p` is the larger one of both
    one-sided tests, and NaN where a sample is too small: then nothing is equivalent.
    """

    difference: float
    margin: float
    low: float
    high: float
    p: float
    level: float

    @property
    def equivalent(self) -> bool:
        """Whether the means are equal up to the margin, at the level."""
        return self.p <= self.level


def tost(test: WelchTest, margin: float | Any, level: float | Any = 0.05) -> EquivalenceTest:
    """Two one-sided t-tests of |mean a − mean b| ≥ margin, from Welch's error and degrees.

    Calling means equal that differ by the margin or more happens with probability at most `level`.
    Few or scattered values do not make them equal: the test then stays silent (Schuirmann, "A
    comparison of the two one-sided tests procedure and the power approach", Journal of
    Pharmacokinetics and Biopharmaceutics 1987).

    **Example:**

    >>> from feelgood.stats.equivalence import tost
    >>> from feelgood.stats.welch import welch
    >>> tost(welch(62.0, 10.0, 100, 62.6, 9.5, 10), margin=0.2 * 62.6).equivalent
    True
    """
    margin, level = parse_number("margin", margin, finite=False), parse_level("level", level)
    if margin <= 0.0:
        raise FeelgoodError(f"margin = {shown(margin)} is not allowed: use a number above 0.")
    if level >= 0.5:
        raise FeelgoodError(f"level = {shown(level)} is not allowed: use a number below 0.5.")
    difference, error, df = test.difference, test.error, test.df
    if not math.isfinite(error) or math.isnan(margin):
        return EquivalenceTest(difference, margin, math.nan, math.nan, math.nan, level)
    half = error * t_quantile(1.0 - 2.0 * level, df)
    p = _upper_tail(margin - abs(difference), error, df)
    return EquivalenceTest(difference, margin, difference - half, difference + half, p, level)


def ratio_tost(
    a: tuple[float, float, int],
    b: tuple[float, float, int],
    margin: float | Any = 0.2,
    level: float | Any = 0.05,
) -> EquivalenceTest:
    """Two one-sided tests of mean a / mean b ≤ 1 − margin and ≥ 1 + margin; `low`, `high` likewise.

    Each sample is its mean, sample deviation (n − 1) and size. Both hypotheses are about a
    difference, mean a − r · mean b with r at the margin, so that the error of the mean that the
    margin is a part of counts, too (Sasabuchi, "A test of a multivariate normal mean with composite
    hypotheses", Biometrika 1980). Difference, margin and interval are in parts of mean b, less 1.
    The interval is Fieller's: infinite where mean b cannot be told from 0.

    **Example:**

    >>> from feelgood.stats.equivalence import ratio_tost
    >>> ratio_tost((62.0, 10.0, 100), (62.6, 9.5, 10)).equivalent
    True
    """
    margin, level = parse_level("margin", margin), parse_level("level", level)

    def tail(ratio: float, sign: float) -> float:
        """P of a difference this far on the side of `sign`, if mean a = ratio · mean b."""
        scaled = (ratio * b[0], abs(ratio) * b[1], b[2])
        test = welch(*a, *scaled)
        return _upper_tail(sign * test.difference, test.error, test.df)

    mean_b = b[0]
    difference = a[0] / mean_b - 1.0 if mean_b != 0.0 else math.nan
    p = max(tail(1.0 + margin, -1.0), tail(1.0 - margin, 1.0))
    if mean_b <= 0.0 or not math.isfinite(p):
        return EquivalenceTest(difference, margin, math.nan, math.nan, math.nan, level)
    low = _end(lambda r: tail(r, 1.0), a[0] / mean_b, -1.0, level)
    high = _end(lambda r: tail(r, -1.0), a[0] / mean_b, 1.0, level)
    return EquivalenceTest(difference, margin, low - 1.0, high - 1.0, p, level)


def _end(tail: Callable[[float], float], ratio: float, side: float, level: float) -> float:
    """Where a one-sided test of the ratio stops to reject, from the estimate outwards."""
    inside, step = ratio, max(abs(ratio), 1.0) / 64.0
    outside = ratio + side * step
    while not tail(outside) <= level:
        if step > 1e6 * max(abs(ratio), 1.0):
            return side * math.inf
        step *= 2.0
        inside, outside = outside, outside + side * step
    for _ in range(40):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if tail(middle) <= level else (middle, outside)
    return outside


def chance_of_mean(
    values: PerSeed | Any, mean: float | Any, count: int | Any, draws: int | Any = 4_000
) -> float:
    """How often the mean of `count` resampled values is as far from the values' mean as `mean` is.

    A few published seeds may hold no stuck one, and then have a small deviation and a mean far from
    that of many seeds. Tests that trust the deviation call this a difference; this does not. It is
    0 where no resample was as far.
    """
    values = parse_values("values", values)
    mean, count = parse_number("mean", mean), parse_whole("count", count, 1)
    kept = values[np.isfinite(values)]
    if len(kept) < 2:
        return math.nan
    far = np.abs(_resampled_errors(kept, count, draws)) >= abs(mean - kept.mean())
    return float(np.mean(far))


def smallest_resampled(
    values: PerSeed | Any,
    count: int | Any,
    level: float | Any = 0.01,
    power: float | Any = 0.8,
    draws: int | Any = 4_000,
) -> float:
    """The difference of means that `chance_of_mean` puts below its level with this probability.

    The errors of a mean of `count` values are taken from the same resamples. Of both directions it
    is the one in which more is needed, so that it is never below what the test itself takes.
    """
    values, count = parse_values("values", values), parse_whole("count", count, 1)
    level, power = parse_level("level", level), parse_level("power", power)
    kept = values[np.isfinite(values)]
    if len(kept) < 2:
        return math.nan
    errors = _resampled_errors(kept, count, draws)
    needed = np.quantile(np.abs(errors), 1.0 - level, method="higher")
    upwards, downwards = np.quantile(errors, [1.0 - power, power])
    return float(needed + max(-upwards, downwards))


def _resampled_errors(values: np.ndarray, count: int, draws: int) -> np.ndarray:
    """Means of `count` resampled values, less the mean of all."""
    picks = np.random.default_rng(0).integers(0, len(values), (draws, count))
    return values[picks].mean(axis=1) - values.mean()


def smallest_difference(test: WelchTest, power: float | Any = 0.8) -> float:
    """The difference of means that Welch's test at its level would see with this probability.

    (t_{1−α/2} + t_{power}) times the standard error, with the degrees of freedom of the test. It is
    a property of the samples' sizes and spreads, whatever difference they happened to have.
    """
    power = parse_level("power", power)
    if not math.isfinite(test.error):
        return math.nan
    if test.error == 0.0:
        return 0.0
    from scipy.special import stdtrit

    seen = t_quantile(1.0 - test.level, test.df)
    return test.error * (seen + float(stdtrit(test.df, power)))


def _upper_tail(gap: float, error: float, df: float) -> float:
    """P(T ≥ gap / error): how likely a mean is that far inside a margin by chance."""
    from scipy.special import stdtr

    if not math.isfinite(error):
        return math.nan
    if error == 0.0:
        return 0.0 if gap > 0.0 else 1.0
    return float(stdtr(df, -gap / error))
