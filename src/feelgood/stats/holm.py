"""Several tests at once: Holm's correction."""

from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.arguments import parse_values


def holm(
    values: Float[np.ndarray, " tests"] | Any,
) -> Float[np.ndarray, " tests"]:
    """The p of each test, corrected for their number; NaN stays, and counts as a test.

    In ascending order p(1) ≤ … ≤ p(m) the corrected ones are max_{j ≤ i} min(1, (m − j + 1) p(j)).
    Rejecting where they are at most α errs in any of the tests with probability at most α,
    however the tests depend on each other (Holm, "A simple sequentially rejective multiple test
    procedure", Scandinavian Journal of Statistics 1979). Bonferroni's are never smaller.

    **Example:**

    >>> from feelgood.stats.holm import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = parse_values("values", values)
    order = np.argsort(p)  # NaN last
    factors = len(p) - np.arange(len(p))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected
