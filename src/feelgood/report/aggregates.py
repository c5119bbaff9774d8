"""What charts show of many seeds: means, quantiles, intervals, and a few of the points."""

import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate, bootstrap

#: Seeds of a result that are drawn as points, evenly picked from the sorted ones.
DOTS = 40
#: Points of a curve that are kept, and those the pointer can pick.
CURVE_POINTS, PICKS = 120, 40
#: Level of the intervals that charts show.
CONFIDENCE = 0.95


def regret_interval(result: AgentResult) -> Estimate:
    """Mean final regret with its bootstrap interval; several charts show the same one."""
    return _interval(np.asarray(result.final_regret, np.float64).tobytes())


@functools.lru_cache(maxsize=4096)
def _interval(values: bytes) -> Estimate:
    return bootstrap(np.frombuffer(values), level=CONFIDENCE)


def thin(count: int, most: int) -> np.ndarray:
    """At most `most` of the indices 0 … count − 1, evenly, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(np.int64))


def std_of(values: Float[np.ndarray, " seeds"]) -> float:
    """Standard deviation over the living chains; 0 where there are fewer than two."""
    finite = values[np.isfinite(values)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else 0.0


def column_means(values: Float[np.ndarray, "seeds points"]) -> Float[np.ndarray, " points"]:
    """Means over the living chains; NaN where none is left."""
    alive = np.isfinite(values)
    count = alive.sum(axis=0)
    return np.where(
        count > 0, np.where(alive, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan
    )


def column_quantiles(
    values: Float[np.ndarray, "seeds points"], levels: Sequence[float]
) -> Float[np.ndarray, "levels points"]:
    """Quantiles over the living chains; NaN where none is left."""
    if np.isfinite(values).all():
        return np.quantile(values, levels, axis=0)
    finite = [column[np.isfinite(column)] for column in values.T]
    nothing = np.full(len(levels), np.nan)
    return np.stack([np.quantile(c, levels) if len(c) else nothing for c in finite], axis=1)
