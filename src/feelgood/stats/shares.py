"""Shares with intervals: of seeds that got stuck, or that one agent wins."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from feelgood.core.arguments import parse_level, parse_number, parse_values
from feelgood.stats.intervals import Estimate
from feelgood.stats.summary import PerSeed


def wilson(share: float, n: int, level: float) -> Estimate:
    """A share of n with Wilson's interval, which does not collapse at 0 and 1."""
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, level, 0, 0)
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Estimate(share, max(0.0, centre - half), min(1.0, centre + half), level, n, 0)


def stuck_share(
    regrets: PerSeed | Any, from_regret: float | Any, level: float | Any = 0.95
) -> Estimate:
    """The share of seeds whose regret is `from_regret` or more, with Wilson's interval.

    A seed is stuck that does no better than a yardstick: the best fixed arm over the same rounds,
    for example. A chain that diverged (NaN) is stuck, too; `dropped` counts these. None of five
    seeds stuck leaves shares up to 43 % possible: the interval says so.

    **Example:**

    >>> from feelgood.stats.shares import stuck_share
    >>> stuck_share([2140.0, 2201.0, 7600.0, 2188.0], 2393.0).value
    0.25
    """
    regrets, level = parse_values("regrets", regrets), parse_level("level", level)
    from_regret = parse_number("from_regret", from_regret)
    broken, n = int(np.sum(~np.isfinite(regrets))), len(regrets)
    share = float(np.mean(~(regrets < from_regret))) if n else math.nan
    found = wilson(share, n, level)
    return Estimate(found.value, found.low, found.high, level, n, broken)
