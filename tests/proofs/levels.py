"""One false-alarm rate for all proofs together.

Every random comparison of the proofs is made at `LEVEL` = `FAMILY` / `COMPARISONS`. By Bonferroni's
inequality the whole suite then fails by chance with probability at most `FAMILY`, whatever the
seed, if it makes at most `COMPARISONS` of them. A ledger counts them, and `conftest.py` checks the
count at the end.

`FEELGOOD_TEST_SEED` chooses other random numbers for the chains.
"""

import dataclasses
import os
import zlib
from collections.abc import Callable, Sequence

import jax
import numpy as np
from scipy import stats

FAMILY = 1e-3
COMPARISONS = 20_000
LEVEL = FAMILY / COMPARISONS
SEED = int(os.environ.get("FEELGOOD_TEST_SEED", "0"))


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison: a p-value, or an error in units of its tolerance."""

    label: str
    p_value: float | None = None
    excess: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it passes; NaN never does."""
        if self.p_value is not None:
            return self.p_value >= LEVEL
        return self.excess is not None and self.excess <= 1.0

    def __str__(self) -> str:
        if self.p_value is not None:
            return f"{self.label}: p = {self.p_value:.3g}, level {LEVEL:.3g}"
        return f"{self.label}: {self.excess:.3g} times the tolerance"


@dataclasses.dataclass
class Ledger:
    """How many random comparisons were made, and how near the nearest came to failing."""

    made: int = 0
    smallest: float = 1.0
    #: The largest error of the other comparisons, in units of its tolerance.
    largest: float = 0.0


LEDGER = Ledger()


def require(checks: Sequence[Check]) -> None:
    """All must pass; the random ones are entered in the ledger."""
    assert checks, "nothing was compared"
    p_values = [check.p_value for check in checks if check.p_value is not None]
    LEDGER.made += len(p_values)
    LEDGER.smallest = min([LEDGER.smallest, *p_values])
    errors = [check.excess for check in checks if check.excess is not None]
    LEDGER.largest = max([LEDGER.largest, *errors])
    failed = [check for check in checks if not check.ok]
    assert not failed, "\n".join(str(check) for check in failed)


def rejects(checks: Sequence[Check]) -> bool:
    """Whether the comparisons, made of something broken, notice it."""
    assert checks, "nothing was compared"
    return not all(check.ok for check in checks)


def key_for(label: str) -> jax.Array:
    """Random numbers of a comparison: of its own, and of the seed."""
    return jax.random.fold_in(jax.random.key(SEED), zlib.crc32(label.encode()) & 0x7FFFFFFF)


def generator_for(label: str) -> np.random.Generator:
    """The same for NumPy."""
    return np.random.default_rng([SEED, zlib.crc32(label.encode())])


# ---- exact comparisons ----------------------------------------------------------------------


def close(label: str, got: object, want: object, tolerance: float | np.ndarray) -> Check:
    """|got − want| ≤ tolerance everywhere."""
    error = np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64))
    return Check(label, excess=float(np.max(error / tolerance)))


# ---- random comparisons ---------------------------------------------------------------------


def normal(label: str, z: float) -> Check:
    """Two-sided, for a statistic that is N(0, 1)."""
    return Check(label, p_value=float(2.0 * stats.norm.sf(abs(z))))


def mean_is(label: str, samples: np.ndarray, mean: float, deviation: float | None = None) -> Check:
    """The mean of independent samples, by the central limit theorem."""
    if deviation is None:
        deviation = float(np.std(samples, ddof=1))
    error = float(np.mean(samples)) - mean
    return normal(label, error * np.sqrt(len(samples)) / deviation)


def share_is(label: str, hits: np.ndarray, probability: float) -> Check:
    """The share of independent hits, by the exact binomial law."""
    n, k = len(hits), int(np.sum(hits))
    tails = (stats.binom.cdf(k, n, probability), stats.binom.sf(k - 1, n, probability))
    return Check(label, p_value=float(min(1.0, 2.0 * min(tails))))


def variance_is_one(label: str, samples: np.ndarray) -> Check:
    """The variance of independent N(0, 1) samples, by the exact χ² law."""
    total, n = float(np.sum(samples**2)), len(samples)
    tails = (stats.chi2.cdf(total, n), stats.chi2.sf(total, n))
    return Check(label, p_value=float(min(1.0, 2.0 * min(tails))))


def law_is_normal(
    label: str, samples: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> list[Check]:
    """Independent samples [n, d] have the law N(mean, covariance): exact tests.

    Of the whitened samples: every mean, the variance along every axis and along every diagonal of
    two axes (which fixes the covariance), and quantiles of the radius.
    """
    d = len(mean)
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, (samples - mean).T)
    root = np.sqrt(white.shape[1])
    checks = [normal(f"{label}, mean {i}", float(np.mean(white[i])) * root) for i in range(d)]
    for i in range(d):
        checks.append(variance_is_one(f"{label}, variance {i}", white[i]))
        for j in range(i):
            diagonal = (white[i] + white[j]) / np.sqrt(2.0)
            checks.append(variance_is_one(f"{label}, variance {i} + {j}", diagonal))
    radius = np.sum(white**2, axis=0)
    for q in (0.1, 0.5, 0.9):
        hits = radius < stats.chi2.ppf(q, d)
        checks.append(share_is(f"{label}, radius below its {q} quantile", hits, q))
    return checks


def zero_means(label: str, statistics: dict[str, np.ndarray]) -> list[Check]:
    """Statistics of independent samples whose means must be 0."""
    return [mean_is(f"{label}, {name}", values, 0.0) for name, values in statistics.items()]


Checker = Callable[..., list[Check]]
