"""Are two means as good as equal? Two one-sided tests, and what a test could have seen."""

import dataclasses
import math
from typing import Any

from feelgood.core.arguments import parse_level, parse_number
from feelgood.core.errors import FeelgoodError, shown
from feelgood.stats.student import t_quantile
from feelgood.stats.welch import WelchTest


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

    if error == 0.0:
        return 0.0 if gap > 0.0 else 1.0
    return float(stdtr(df, -gap / error))
