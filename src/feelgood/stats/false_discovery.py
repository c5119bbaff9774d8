"""Several tests at once: Benjamini and Hochberg's correction."""

from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.arguments import parse_values


def benjamini_hochberg(
    values: Float[np.ndarray, " tests"] | Any,
) -> Float[np.ndarray, " tests"]:
    """The p of each test, corrected for their number; NaN stays, and counts as a test.

    In ascending order p(1) ≤ … ≤ p(m) the corrected ones are min_{j ≥ i} min(1, m p(j)/j). Of those
    at most α, a share of at most α is false on average, where the tests are independent or depend
    positively (Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal
    Statistical Society B 1995). Holm's are never smaller, and promise that none is false.

    **Example:**

    >>> from feelgood.stats.false_discovery import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    p = parse_values("values", values)
    order = np.argsort(p)[::-1]  # from the largest; NaN first
    factors = len(p) / np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.fmin.accumulate(np.minimum(1.0, factors * p[order]))
    corrected[np.isnan(p)] = np.nan
    return corrected
