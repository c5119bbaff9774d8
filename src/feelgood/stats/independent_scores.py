"""Which of several independent normal scores is the largest: one-dimensional integrals.

p_a = ∫ φ_a(g) Π_{b≠a} Φ_b(g) dg, with density φ_a and distribution function Φ_b of the scores. Each
integrand is log-concave and has its largest value above the mean of arm a. Both say where it may be
cut off. The integrals of all arms share their nodes, and F = Π Φ_b is computed once for each.
"""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from feelgood.stats.adaptive_panels import PANEL_NODES, Panels, integrals

#: Integrands are followed until they have fallen by e⁻⁴⁰ from their largest value.
_FALL = 40.0
#: Beyond so many deviations a normal law has no double precision number left.
_NOWHERE = 38.5
#: Share of the integral that a panel's last coefficients may have; see `integrals`.
_TOLERANCE = 1e-10
#: Where panels begin, in deviations of each arm.
_MARKS = np.array([-32, -22, -15, -9, -6, -4, -2, 0, 2, 4, 6, 9])
#: Marks of a wider arm are left out that are nearer than so many of its deviations to others.
_NEAR = 0.75
#: Numbers per array, which bounds memory.
_AT_ONCE = 2_000_000
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def independent_choices(
    mean: Float[np.ndarray, "many arms"], deviation: Float[np.ndarray, "many arms"]
) -> Float[np.ndarray, "many arms"]:
    """The probability that each arm has the largest score, for many laws at once.

    A deviation may be 0. A mean of −∞ leaves the arm out; of several equal scores without any
    spread the first is the largest. Nothing is normalised: the sum of a row tells its error.
    """
    law = _Prepared(mean, deviation)
    points = [law.marks(i) for i in range(len(mean))]
    arms = mean.shape[1]
    at_once = max(1, _AT_ONCE // (arms * PANEL_NODES))
    out = integrals(law.integrand, Panels.between(points), len(mean), _TOLERANCE, at_once)
    rows = np.flatnonzero(np.isfinite(law.floor))
    out[rows, law.fixed[rows]] = np.exp(law.log_below(law.floor[rows], rows).sum(axis=1))
    return out


class _Prepared:
    """Laws in coordinates that keep all digits, without the arms that have no chance."""

    def __init__(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        rows = np.arange(len(mean))
        # Whatever is larger than 9 deviations below the mean of this arm is what matters. Seen from
        # there every arm is within a few of its own deviations, or far below.
        reference = np.argmax(mean - 9.0 * deviation, axis=1)
        mean = mean - mean[rows, reference][:, None]
        spread = np.hypot(deviation, deviation[rows, reference][:, None])
        hopeless = mean < -_NOWHERE * spread
        point = deviation == 0.0
        fixed_means = np.where(point & ~hopeless, mean, -np.inf)
        #: The first of the best arms without spread, and its score: none is chosen below it.
        self.fixed = np.argmax(fixed_means, axis=1)
        self.floor = fixed_means[rows, self.fixed]
        left_out = point | hopeless | (mean == -np.inf)
        self.mean = np.where(left_out, -np.inf, mean)
        self.deviation = np.where(left_out, 1.0, deviation)

    def log_below(self, at: Float[np.ndarray, " n"], law: Int[np.ndarray, " n"]) -> np.ndarray:
        """log Φ_b of every arm, `[n, arms]`."""
        return special.log_ndtr((at[:, None] - self.mean[law]) / self.deviation[law])

    def integrand(self, at: Float[np.ndarray, " n"], law: Int[np.ndarray, " n"]) -> np.ndarray:
        """φ_a Π_{b≠a} Φ_b of every arm, `[n, arms]`."""
        deviation = self.deviation[law]
        z = (at[:, None] - self.mean[law]) / deviation
        below = special.log_ndtr(z)
        others = below.sum(axis=1, keepdims=True) - below
        return np.exp(others - 0.5 * z**2 - _LOG_ROOT_2PI) / deviation

    def marks(self, law: int) -> Float[np.ndarray, " n"]:
        """Points between which all integrands of one law are smooth, and which enclose them."""
        mean, deviation = self.mean[law], self.deviation[law]
        there = np.isfinite(mean)
        mean, deviation, floor = mean[there], deviation[there], self.floor[law]
        if not there.any():
            return np.array([floor, floor])
        # From here on all others are below with probability ½: p_a is at least half of what the
        # density of a has above it. That is cut where e⁻⁴⁰ of it is left.
        common = np.max(mean + special.ndtri(0.5 ** (1.0 / len(mean))) * deviation)
        common = max(common, floor)
        z = np.maximum((common - mean) / deviation, 0.0)
        highest = np.max(mean + deviation * np.sqrt(z**2 + 2.0 * _FALL))
        lowest = max(floor, np.min(mean - deviation * math.sqrt(2.0 * _FALL)))
        marks = (mean[:, None] + deviation[:, None] * _MARKS).ravel()
        own = np.repeat(deviation, len(_MARKS))
        inside = (marks > lowest) & (marks < highest)
        order = np.argsort(marks[inside], kind="stable")
        kept = [lowest]
        for mark, width in zip(
            marks[inside][order].tolist(), own[inside][order].tolist(), strict=True
        ):
            if mark - kept[-1] >= _NEAR * width:
                kept.append(mark)
        return np.array([*kept, highest])
