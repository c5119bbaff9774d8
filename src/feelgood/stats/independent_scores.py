"""Which of several independent normal scores is the largest: one-dimensional integrals.

p_a = ∫ φ_a(g) Π_{b≠a} Φ_b(g) dg, with density φ_a and distribution function Φ_b of the scores. Each
integrand is log-concave and has its largest value above the mean of arm a. Both say where it may be
cut off. The integrals of all arms share their nodes, and F = Π Φ_b is computed once for each.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from feelgood.stats.adaptive_panels import PANEL_NODES, Panels, integrals


class Accuracy(NamedTuple):
    """How exact integrals are."""

    #: Share of the integral that a panel's last coefficients may have; the error is its square.
    tolerance: float
    #: Smaller parts need not have their digits.
    least: float
    #: Marks of a wider arm are left out that are nearer than so many of its deviations to others.
    near: float


#: All digits, of parts as small as 1e-300; and 12 digits of those that are played at all.
FINEST, USUAL = Accuracy(1e-10, 1e-300, 0.75), Accuracy(1e-6, 1e-9, 2.0)

#: Integrands are followed until they have fallen by e⁻⁴⁰ from their largest value.
_FALL = 40.0
#: Beyond so many deviations a normal law has no double precision number left.
_NOWHERE = 38.5
#: Where panels begin, in deviations of each arm.
_MARKS = np.array([-32, -22, -15, -9, -6, -4, -2, 0, 2, 4, 6, 9])
#: Numbers per array, which bounds memory.
_AT_ONCE = 2_000_000
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def independent_choices(
    mean: Float[np.ndarray, "many arms"],
    deviation: Float[np.ndarray, "many arms"],
    accuracy: Accuracy = FINEST,
) -> Float[np.ndarray, "many arms"]:
    """The probability that each arm has the largest score, for many laws at once.

    A deviation may be 0. A mean of −∞ leaves the arm out; of several equal scores without any
    spread the first is the largest. Nothing is normalised: the sum of a row tells its error.
    """
    law = _Prepared(mean, deviation)
    at_once = max(1, _AT_ONCE // (mean.shape[1] * PANEL_NODES))
    panels = Panels.between(law.points(accuracy.near))
    tolerance, least = accuracy.tolerance, accuracy.least
    out = integrals(law.integrand, panels, len(mean), tolerance, at_once, least)
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

    def points(self, near: float) -> list[Float[np.ndarray, " n"]]:
        """For each law, points between which all integrands are smooth, and which enclose them."""
        there = np.isfinite(self.mean)
        mean, deviation = self.mean, self.deviation
        # From here on all others are below with probability ½: p_a is at least half of what the
        # density of a has above it. That is cut where e⁻⁴⁰ of it is left.
        count = np.maximum(there.sum(axis=1), 1)
        common = np.max(mean + special.ndtri(0.5 ** (1.0 / count))[:, None] * deviation, axis=1)
        common = np.maximum(common, self.floor)[:, None]
        z = np.zeros_like(mean)
        np.divide(common - mean, deviation, out=z, where=there)
        above = deviation * np.sqrt(np.maximum(z, 0.0) ** 2 + 2.0 * _FALL)
        highest = np.max(mean + above, axis=1)
        reach = np.where(there, mean, np.inf) - deviation * math.sqrt(2.0 * _FALL)
        lowest = np.maximum(np.min(reach, axis=1), self.floor)
        marks = (mean[:, :, None] + deviation[:, :, None] * _MARKS).reshape(len(mean), -1)
        own = np.repeat(deviation, len(_MARKS), axis=1)
        marks = np.where((marks > lowest[:, None]) & (marks < highest[:, None]), marks, np.inf)
        order = np.argsort(marks, axis=1, kind="stable")
        marks, own = (np.take_along_axis(x, order, axis=1) for x in (marks, own))
        inside = np.isfinite(marks).sum(axis=1)
        out = []
        for law, last in enumerate(inside):
            if not there[law].any():
                out.append(np.repeat(self.floor[law], 2))
                continue
            kept = [lowest[law]]
            for mark, width in zip(
                marks[law, :last].tolist(), own[law, :last].tolist(), strict=True
            ):
                if mark - kept[-1] >= near * width:
                    kept.append(mark)
            out.append(np.array([*kept, highest[law]]))
        return out
