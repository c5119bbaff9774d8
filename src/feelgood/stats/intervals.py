"""Bootstrap intervals of means and medians."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from feelgood.core.arguments import parse_choice, parse_level, parse_values, parse_whole
from feelgood.stats.student import t_quantile
from feelgood.stats.summary import PerSeed

#: Resamples behind a bootstrap interval: its ends then move by a few per cent of its width.
RESAMPLES = 4_000


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its interval, the values it rests on and those that were left out."""

    value: float
    low: float
    high: float
    level: float
    count: int
    dropped: int


_STATISTICS: Mapping[str, Callable[..., Float[np.ndarray, "..."]]] = {
    "mean": np.mean,
    "median": np.median,
}


def bootstrap(
    values: PerSeed | Any,
    statistic: Literal["mean", "median"] | Any = "mean",
    level: float | Any = 0.95,
    draws: int | Any = RESAMPLES,
    seed: int | Any = 0,
) -> Estimate:
    """Mean or median with a bootstrap interval; the same seed gives the same interval.

    The percentile interval is too short for few values. Its tails therefore have α′/2 =
    Φ(−√(n/(n−1)) t_{1−α/2, n−1}) instead of α/2. For Gaussian data this is Student's interval
    (Hesterberg, "What teachers should know about the bootstrap", 2015). Coverage is close to
    `level` for light tails and below it for a few heavy-tailed values, as for every interval.
    """
    values, level = parse_values("values", values), parse_level("level", level)
    reduce = _STATISTICS[parse_choice("statistic", statistic, _STATISTICS)]
    draws, seed = parse_whole("draws", draws, 1, 10_000_000), parse_whole("seed", seed, 0)
    kept = values[np.isfinite(values)]
    n, dropped = len(kept), len(values) - len(kept)
    value = float(reduce(kept)) if n else math.nan
    if n < 2:
        return Estimate(value, math.nan, math.nan, level, n, dropped)
    picks = np.random.default_rng(seed).integers(0, n, (draws, n))
    replicates = reduce(kept[picks], axis=1)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t_quantile(level, n - 1.0))
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Estimate(value, float(low), float(high), level, n, dropped)
