"""How many independent draws the draws of Markov chains are worth: of one chain, and of several.

Both divide by 1 + 2 Σ ρ_t. The sum of autocorrelations is cut by the initial monotone sequence of
Geyer ("Practical Markov chain Monte Carlo", 1992).
"""

import numpy as np
from jaxtyping import Float

from feelgood.stats.split_rhat import ROUNDING, halves, variances


def effective_sample_size(
    draws: Float[np.ndarray, "draws quantities"],
) -> Float[np.ndarray, " quantities"]:
    """How many independent draws each column of one chain is worth.

    A column that never moves is worth one draw.
    """
    count = len(draws)
    covariance = _autocovariance((draws - draws.mean(axis=0))[None])
    frozen = covariance[0] <= 0
    rho = covariance / np.where(frozen, 1.0, covariance[0])
    time = np.maximum(_correlation_time(rho), 1.0 / count)
    return np.where(frozen, 1.0, np.minimum(count / time, count * np.log10(max(count, 10))))


def effective_draws(draws: Float[np.ndarray, "chains draws *rest"]) -> Float[np.ndarray, "*rest"]:
    """How many independent draws all chains together are worth, for every mean.

    ρ_t = 1 − (W − mean autocovariance)/var⁺ of the split chains: Vehtari et al.,
    "Rank-normalization, folding, and localization", Bayesian Analysis 2021, without ranks. Frozen
    chains are worth one draw each.
    """
    split = halves(draws)
    chains, count = split.shape[:2]
    within, total = variances(split)
    frozen = within <= ROUNDING * total
    covariance = _autocovariance(split - split.mean(axis=1, keepdims=True))
    rho = 1.0 - (within - covariance) / np.where(frozen, 1.0, total)
    rho[0] = 1.0
    time = np.maximum(_correlation_time(rho), 1.0 / np.log10(max(chains * count, 10)))
    return np.where(frozen, 1.0 * len(draws), chains * count / time)


def _autocovariance(centred: np.ndarray) -> np.ndarray:
    """Autocovariance at each lag, mean over chains, by Fourier transform."""
    count = centred.shape[1]
    spectrum = np.fft.rfft(centred, n=2 * count, axis=1)
    power = np.abs(spectrum) ** 2
    return np.fft.irfft(power.mean(axis=0), n=2 * count, axis=0)[:count] / count


def _correlation_time(rho: np.ndarray) -> np.ndarray:
    """1 + 2 Σ ρ_t, the sum of pairs of lags cut where it stops to be positive and to fall."""
    even = 2 * (len(rho) // 2)
    pairs = rho[0:even:2] + rho[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    return 2.0 * monotone.sum(axis=0) - 1.0
