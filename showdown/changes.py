"""The relative change of regret over several pairs and testbeds, with an interval over seeds."""

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from feelgood.stats.studentised import DRAWS, StudentisedMean
from showdown.effects import LEVEL, Effect

#: From so many testbeds on, none of them may decide a verdict alone.
SEVERAL = 3


def pooled(effects: Iterable[Effect], level: float = LEVEL) -> StudentisedMean | None:
    """The geometric mean of the ratios of mean regrets, less 1; None: nothing was tested.

    Pairs of a testbed count alike, and so do testbeds. A ratio of 2 and one of 1/2 cancel, so
    that one testbed with a huge change weighs less than in a mean of changes.
    """
    tested = [e for e in effects if e.tested]
    if not tested:
        return None
    beds = [e.testbed for e in tested]
    weights = np.array([1.0 / (len(set(beds)) * beds.count(bed)) for bed in beds])
    seeds = sorted({seed for e in tested for seed in e.seeds})
    where = {seed: i for i, seed in enumerate(seeds)}
    with_it, without = (np.zeros((len(tested), len(seeds))) for _ in range(2))
    for row, e in enumerate(tested):
        places = [where[seed] for seed in e.seeds]
        without[row, places] = e.without
        with_it[row, places] = e.without + e.differences
    return change_of(with_it, without, weights, level)


def change_of(
    with_it: np.ndarray, without: np.ndarray, weights: np.ndarray, level: float, draws: int = DRAWS
) -> StudentisedMean | None:
    """From regrets by pair and seed, 0 where a pair lacks the seed; None where nothing was lost.

    Seeds are drawn anew, for all pairs together, because pairs share them. The interval is the
    studentised bootstrap's of the mean logarithm, whose error follows from the seeds' influence.
    """
    count = with_it.shape[1]
    if min(with_it.sum(axis=1).min(), without.sum(axis=1).min()) <= 0.0:
        return None
    (value,), (error,) = _logarithm(np.ones((1, count)), with_it, without, weights)
    if error <= 1e-12:
        change, p = math.expm1(value), float(abs(value) <= 1e-12)
        return StudentisedMean(change, change, change, p, level, count, 0)
    values, errors = _logarithm(_counts(count, draws), with_it, without, weights)
    flat = errors <= 1e-9 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (values - value) / np.where(flat, 0.0, errors)
    t = np.where(flat & (np.abs(values - value) <= 1e-12), 0.0, t)
    t = t[~np.isnan(t)]
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(t, [tail, 1.0 - tail], method="inverted_cdf")
    more, less = np.count_nonzero(t >= value / error), np.count_nonzero(t <= value / error)
    p = float(min(1.0, 2.0 * (1 + min(more, less)) / (len(t) + 1)))
    ends = (_less_one(value - high * error), _less_one(value - low * error))
    return StudentisedMean(math.expm1(value), *ends, p, level, count, 0)


@functools.lru_cache(maxsize=4)
def _counts(seeds: int, draws: int) -> np.ndarray:
    """How often each seed is in each resample."""
    drawn = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1.0 / seeds), size=draws)
    return drawn.astype(np.float64)


def _less_one(logarithm: float) -> float:
    return math.expm1(min(logarithm, 700.0))


def _logarithm(
    counts: np.ndarray, with_it: np.ndarray, without: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The mean logarithm of the ratios, and its error, for each row of counts of the seeds."""
    above, below = counts @ with_it.T, counts @ without.T
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (np.log(above) - np.log(below)) @ weights
        influence = (weights / above) @ with_it - (weights / below) @ without
    count = with_it.shape[1]
    return value, np.sqrt((counts * influence**2).sum(axis=1) * count / (count - 1))


def of_each(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    """By testbed: its tested pairs."""
    found: dict[str, list[Effect]] = {}
    for e in effects:
        if e.tested:
            found.setdefault(e.testbed, []).append(e)
    return found


def without_each(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    """By testbed: the tested pairs of all others; empty where there are too few testbeds."""
    beds = of_each(effects)
    if len(beds) < SEVERAL:
        return {}
    return {bed: [e for b, own in beds.items() if b != bed for e in own] for bed in beds}
