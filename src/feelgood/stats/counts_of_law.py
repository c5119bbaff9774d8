"""Do counts come from a law that is known? An exact test that allows rare outcomes."""

import numpy as np
from jaxtyping import Float, Int
from scipy import special


def p_of_counts(counts: Int[np.ndarray, " n"], law: Float[np.ndarray, " n"]) -> float:
    """The p-value of independent outcomes that were counted, where `law` has their probabilities.

    Each count is binomial: twice its smaller tail, and the least of them times their number
    (Bonferroni). Unlike Pearson's χ² this is exact, also far out and for rare outcomes.
    """
    total = int(np.sum(counts))
    chances = np.clip(np.asarray(law, np.float64), 0.0, 1.0)
    below = special.bdtr(counts, total, chances)
    above = np.where(counts > 0, special.bdtrc(np.maximum(counts - 1, 0), total, chances), 1.0)
    return float(min(1.0, 2.0 * len(counts) * np.min(np.minimum(below, above))))
