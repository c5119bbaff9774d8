"""Do parallel chains agree, and how many independent draws are they worth?"""

import numpy as np
from jaxtyping import Float


def _halves(draws: Float[np.ndarray, "chains draws *rest"]) -> np.ndarray:
    """Every chain cut in two, so that a drift within a chain shows as chains that disagree."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


#: A variance within chains below this share of the variance of all is rounding: nothing moved.
ROUNDING = 1e-12


def _variances(split: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W, the variance within chains, and var⁺, which adds that between them."""
    count = split.shape[1]
    within = split.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (count - 1) / count + split.mean(axis=1).var(axis=0, ddof=1)


def split_rhat(draws: Float[np.ndarray, "chains draws *rest"]) -> Float[np.ndarray, "*rest"]:
    """Split-R̂ = √(var⁺/W): 1 where all halves of all chains agree.

    Gelman et al., Bayesian Data Analysis, third edition, §11.4. Chains that never move have R̂ = ∞.
    """
    within, total = _variances(_halves(draws))
    moving = within > ROUNDING * total
    return np.sqrt(np.divide(total, within, out=np.full_like(total, np.inf), where=moving))


def effective_draws(draws: Float[np.ndarray, "chains draws *rest"]) -> Float[np.ndarray, "*rest"]:
    """How many independent draws all chains together are worth, for every mean.

    M N / (1 + 2 Σ ρ_t) with ρ_t = 1 − (W − mean autocovariance)/var⁺ of the split chains, cut by
    the initial monotone sequence of Geyer (1992); Vehtari et al., "Rank-normalization, folding, and
    localization", Bayesian Analysis 2021, without ranks. Frozen chains are worth one draw each.
    """
    split = _halves(draws)
    chains, count = split.shape[:2]
    within, total = _variances(split)
    frozen = within <= ROUNDING * total
    centred = split - split.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * count, axis=1)
    power = np.abs(spectrum) ** 2
    covariance = np.fft.irfft(power.mean(axis=0), n=2 * count, axis=0)[:count] / count
    scale = np.where(frozen, 1.0, total)
    rho = 1.0 - (within - covariance) / scale
    rho[0] = 1.0
    even = 2 * (count // 2)
    pairs = rho[0:even:2] + rho[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * monotone.sum(axis=0) - 1.0, 1.0 / np.log10(max(chains * count, 10)))
    return np.where(frozen, 1.0 * len(draws), chains * count / time)
