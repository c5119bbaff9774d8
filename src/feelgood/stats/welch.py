"""Welch's test: do two independent samples have the same mean?"""

import dataclasses
import math
from typing import Any

from feelgood.core.arguments import parse_level, parse_number, parse_values, parse_whole
from feelgood.stats.student import p_of_mean
from feelgood.stats.summary import OtherSeeds, PerSeed, Summary


@dataclasses.dataclass(frozen=True)
class WelchTest:
    """Do two independent samples have the same mean?

    `p` is two-sided and NaN where a sample has fewer than two values: then nothing is rejected.
    """

    difference: float
    error: float
    df: float
    p: float
    level: float
    dropped: tuple[int, int] = (0, 0)

    @property
    def rejects(self) -> bool:
        """Whether the means differ at the level."""
        return self.p <= self.level


def welch(
    mean_a: float | Any,
    std_a: float | Any,
    n_a: int | Any,
    mean_b: float | Any,
    std_b: float | Any,
    n_b: int | Any,
    level: float | Any = 0.01,
) -> WelchTest:
    """Welch's test of mean a − mean b = 0 from means, sample deviations (n − 1) and sizes.

    B. L. Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 1947.
    """
    named = {"mean_a": mean_a, "std_a": std_a, "mean_b": mean_b, "std_b": std_b}
    numbers = [parse_number(name, value, finite=False) for name, value in named.items()]
    mean_a, std_a, mean_b, std_b = numbers
    n_a, n_b = parse_whole("n_a", n_a, 0, 10**15), parse_whole("n_b", n_b, 0, 10**15)
    level = parse_level("level", level)
    difference = mean_a - mean_b
    if min(n_a, n_b) < 2 or not all(math.isfinite(x) for x in numbers):
        return WelchTest(difference, math.nan, math.nan, math.nan, level)
    share_a, share_b = std_a**2 / n_a, std_b**2 / n_b
    error = math.sqrt(share_a + share_b)
    df = float(n_a + n_b - 2)
    if error > 0.0:
        part = share_a / (share_a + share_b)
        df = 1.0 / (part**2 / (n_a - 1) + (1.0 - part) ** 2 / (n_b - 1))
    return WelchTest(difference, error, df, p_of_mean(difference, error, df), level)


def welch_samples(a: PerSeed | Any, b: OtherSeeds | Any, level: float | Any = 0.01) -> WelchTest:
    """Welch's test on two samples; values that are not finite are left out and counted."""
    a, b = parse_values("a", a), parse_values("b", b)
    of_a, of_b = Summary.of(a), Summary.of(b)
    test = welch(of_a.mean, of_a.std, of_a.count, of_b.mean, of_b.std, of_b.count, level)
    return dataclasses.replace(test, dropped=(len(a) - of_a.count, len(b) - of_b.count))
