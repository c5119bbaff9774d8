"""Which of several scores with one common random scale is the largest: Student's law.

Scores are mean_a + deviation_a z_a / v with v² = χ²/freedom, one v for all arms. Times v they are
v · mean_a + deviation_a z_a, so that p_a = E_v p_a(v · mean, deviation): one more integral, of a
function that is smooth down to v = 0. With many degrees of freedom v varies so little that a few
nodes of Gauss's rule for its own law are enough, which is checked as in a panel.

Golub and Welsch, "Calculation of Gauss quadrature rules", Mathematics of Computation 1969.
"""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from feelgood.stats.adaptive_panels import Panels, integrals
from feelgood.stats.independent_scores import FINEST, Accuracy, independent_choices

#: Share of the integral that a panel's last coefficients may have; see `integrals`.
_TOLERANCE = 1e-8
#: Panels evaluated at a time, which bounds memory.
_AT_ONCE = 8
#: Probabilities below and above the panels' ends. Small v make the unlikely arms likely.
_BELOW, _ABOVE = (1e-300, 1e-20, 1e-6, 0.02), (0.02, 1e-6, 1e-20)
_USUAL_ENDS = (1e-18, 1e-3)
#: Nodes of Gauss's rule for v, and from how many degrees of freedom on it is tried.
_RULE_NODES, _RULE_FREEDOM = 16, 1_000.0


def scaled_choices(
    mean: Float[np.ndarray, " arms"],
    deviation: Float[np.ndarray, " arms"],
    freedom: float,
    accuracy: Accuracy = FINEST,
) -> Float[np.ndarray, " arms"]:
    """The probability that each arm has the largest score; see `independent_choices`."""
    mean, half = mean - np.max(mean), 0.5 * freedom

    def given(v: Float[np.ndarray, " n"]) -> np.ndarray:
        spread = np.broadcast_to(deviation, (len(v), len(mean)))
        return independent_choices(v[:, None] * mean, spread, accuracy)

    if freedom >= _RULE_FREEDOM and accuracy != FINEST:
        nodes, series = _rule(half)
        found = series @ given(nodes)
        last = np.abs(found[-2:]).sum(axis=0)
        if np.all(last <= accuracy.tolerance * np.maximum(found[0], accuracy.least)):
            return found[0]

    def integrand(v: Float[np.ndarray, " n"], owner: Int[np.ndarray, " n"]) -> np.ndarray:
        del owner
        return _density(v, half)[:, None] * given(v)

    below, above = (_BELOW, _ABOVE) if accuracy == FINEST else (_USUAL_ENDS, _USUAL_ENDS)
    edges = np.append(special.gammaincinv(half, below), special.gammainccinv(half, above))
    panels = Panels.between([np.unique(np.sqrt(edges / half))])
    tolerance = max(_TOLERANCE, accuracy.tolerance)
    return integrals(integrand, panels, 1, tolerance, _AT_ONCE, accuracy.least)[0]


def _rule(half: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes v of Gauss's rule, and what turns values there into a series whose first is the mean.

    h v² has the density u^(h−1) e^(−u) / Γ(h); its orthogonal polynomials are Laguerre's.
    """
    k = np.arange(_RULE_NODES)
    between = np.sqrt(k[1:] * (k[1:] + half - 1.0))
    matrix = np.diag(2.0 * k + half) + np.diag(between, 1) + np.diag(between, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return np.sqrt(nodes / half), vectors * vectors[0]


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
