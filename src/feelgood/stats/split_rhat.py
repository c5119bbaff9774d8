"""Do parallel chains agree?"""

import numpy as np
from jaxtyping import Float

#: A variance within chains below this share of the variance of all is rounding: nothing moved.
ROUNDING = 1e-12


def halves(draws: Float[np.ndarray, "chains draws *rest"]) -> np.ndarray:
    """Every chain cut in two, so that a drift within a chain shows as chains that disagree."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def variances(split: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W, the variance within chains, and var⁺, which adds that between them."""
    count = split.shape[1]
    within = split.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (count - 1) / count + split.mean(axis=1).var(axis=0, ddof=1)


def split_rhat(draws: Float[np.ndarray, "chains draws *rest"]) -> Float[np.ndarray, "*rest"]:
    """Split-R̂ = √(var⁺/W): 1 where all halves of all chains agree.

    Gelman et al., Bayesian Data Analysis, third edition, §11.4. Chains that never move have R̂ = ∞.
    """
    within, total = variances(halves(draws))
    moving = within > ROUNDING * total
    return np.sqrt(np.divide(total, within, out=np.full_like(total, np.inf), where=moving))
