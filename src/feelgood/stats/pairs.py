"""Two agents on the same seeds: their difference, and which one is better how often.

Regret is a loss: lower is better. A chain that diverged is NaN. Where a number is needed it is
left out and counted; where an order is needed it counts as infinite regret.

Two runs that play the same arms may have been rounded differently, in programs of different sizes.
Values as close as that are equal here, in differences and in orders.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from feelgood.core.arguments import parse_level, parse_values
from feelgood.core.errors import FeelgoodError
from feelgood.stats.intervals import RESAMPLES, Estimate, bootstrap
from feelgood.stats.shares import wilson
from feelgood.stats.student import p_of_mean
from feelgood.stats.summary import OtherSeeds, PerSeed, Summary

#: Values whose difference is this part of the larger one, or less, are equal. Regrets are sums of
#: float32 numbers; among all kept results, roundings of one run reach 1.4e-7 of it.
SAME_WITHIN = 1e-6


@dataclasses.dataclass(frozen=True)
class PairedDifference:
    """Mean of a − b over seeds that both have finished; `dropped` counts the other seeds."""

    mean: float
    error: float
    p: float
    low: float
    high: float
    level: float
    count: int
    dropped: int


def paired_difference(
    a: PerSeed | Any,
    b: OtherSeeds | Any,
    level: float | Any = 0.95,
    draws: int | Any = RESAMPLES,
    seed: int | Any = 0,
) -> PairedDifference:
    """a − b, seed by seed: mean, standard error, paired t-test and bootstrap interval.

    Agents meet the same contexts and the same noise for a seed, so the difference is known
    better than either mean. A seed on which either chain diverged has no difference: it is
    counted in `dropped`.
    """
    differences = _differences(parse_values("a", a), parse_values("b", b))
    estimate = bootstrap(differences, "mean", level, draws, seed)
    n = estimate.count
    error, p = math.nan, math.nan
    if n >= 2:
        error = Summary.of(differences).sem
        p = p_of_mean(estimate.value, error, n - 1.0)
    return PairedDifference(
        estimate.value, error, p, estimate.low, estimate.high, level, n, estimate.dropped
    )


def probability_better(
    a: PerSeed | Any, b: OtherSeeds | Any, level: float | Any = 0.95
) -> Estimate:
    """How often a has the lower value on the same seed; a tie (up to rounding) counts half.

    A chain that diverged loses against one that did not (`dropped` counts the seeds where either
    did; they are in). The interval is Wilson's, which does not collapse when one side wins all.
    """
    a, b, level = parse_values("a", a), parse_values("b", b), parse_level("level", level)
    broken, n = ~np.isfinite(_differences(a, b)), len(a)
    if n == 0:
        return wilson(math.nan, 0, level)
    of_a, of_b = diverged_last(a), diverged_last(b)
    share = float(np.mean(np.where(equal(of_a, of_b), 0.5, of_a < of_b)))
    return dataclasses.replace(wilson(share, n, level), dropped=int(broken.sum()))


def _differences(a: PerSeed, b: OtherSeeds) -> PerSeed:
    """a − b, 0 where they are equal up to rounding, NaN where either is not finite.

    An error for lengths that do not belong together.
    """
    if len(a) != len(b):
        raise FeelgoodError(
            f"{len(a)} and {len(b)} values cannot be paired: give both over the same seeds."
        )
    whole = np.isfinite(a) & np.isfinite(b)
    difference = np.subtract(a, b, where=whole, out=np.full(len(a), np.nan))
    return np.where(whole & equal(a, b), 0.0, difference)


def equal(
    a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."] | float
) -> Bool[np.ndarray, "..."]:
    """Which values are equal up to rounding; an infinite one equals an infinite one only."""
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= SAME_WITHIN * np.maximum(np.abs(a), np.abs(b))
    return (a == b) | (close & np.isfinite(a) & np.isfinite(b))


def diverged_last(values: PerSeed) -> PerSeed:
    """PerSeed for comparisons: a chain that diverged has infinite regret."""
    return np.where(np.isfinite(values), values, np.inf)
