"""Which of several scores with one common random scale is the largest: Student's law.

Scores are mean_a + deviation_a z_a / v with v² = χ²/freedom, one v for all arms. Times v they are
v · mean_a + deviation_a z_a, so that p_a = E_v p_a(v · mean, deviation): one more integral, of a
function that is smooth down to v = 0.
"""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from feelgood.stats.adaptive_panels import Panels, integrals
from feelgood.stats.independent_scores import independent_choices

#: Share of the integral that a panel's last coefficients may have; see `integrals`.
_TOLERANCE = 1e-8
#: Panels evaluated at a time, which bounds memory.
_AT_ONCE = 8
#: Probabilities below and above the panels' ends. Small v make the unlikely arms likely.
_BELOW, _ABOVE = (1e-300, 1e-20, 1e-6, 0.02), (0.02, 1e-6, 1e-20)


def scaled_choices(
    mean: Float[np.ndarray, " arms"], deviation: Float[np.ndarray, " arms"], freedom: float
) -> Float[np.ndarray, " arms"]:
    """The probability that each arm has the largest score; see `independent_choices`."""
    mean, half = mean - np.max(mean), 0.5 * freedom

    def integrand(v: Float[np.ndarray, " n"], owner: Int[np.ndarray, " n"]) -> np.ndarray:
        del owner
        return _density(v, half)[:, None] * independent_choices(
            v[:, None] * mean, np.broadcast_to(deviation, (len(v), len(mean)))
        )

    edges = np.append(special.gammaincinv(half, _BELOW), special.gammainccinv(half, _ABOVE))
    points = np.unique(np.sqrt(edges / half))
    return integrals(integrand, Panels.between([points]), 1, _TOLERANCE, _AT_ONCE)[0]


def _density(v: Float[np.ndarray, " n"], half: float) -> Float[np.ndarray, " n"]:
    """The density of v, 2 hʰ v²ʰ⁻¹ exp(−h v²) / Γ(h) with h = freedom/2.

    Written with Stirling's formula, so that millions of degrees of freedom cost no digits:
    √(2h/π) exp(h (log v² − v² + 1) − correction) / v.
    """
    away = (v - 1.0) * (v + 1.0)
    logarithm = np.where(v < 0.5, 2.0 * np.log(v), np.log1p(np.maximum(away, -0.75)))
    exponent = half * (logarithm - away) - _stirling(half)
    return math.sqrt(2.0 * half / math.pi) * np.exp(exponent) / v


def _stirling(h: float) -> float:
    """log Γ(h) less Stirling's formula (h − ½) log h − h + ½ log 2π."""
    if h < 10.0:
        formula = (h - 0.5) * math.log(h) - h + 0.5 * math.log(2.0 * math.pi)
        return math.lgamma(h) - formula
    square = h**-2
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    return series / h
