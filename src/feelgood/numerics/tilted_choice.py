"""Which of several normal values is the largest, where the maximum has a weight of its own.

Values v_a have a normal law, times exp(Λ min(b, max_a v_a)). The probability that arm a has the
largest one is

    P(a) ∝ ∫ e^{Λ min(b, v)} φ_a(v) P(v_j < v for all j ≠ a | v_a = v) dv,

with the density φ_a of v_a. Exponents stay exponents, so that Λ may be large. Arrays have lanes
behind, as everywhere; see `numerics.lanes`.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtr
from jaxtyping import Array, Float

#: Gauss's rule on panels between marks, which are so many deviations from each law's centre.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_MARKS = np.array([-7.0, -4.0, -2.0, 0.0, 2.0, 4.0, 7.0])
#: The same from a corner on, where integrands fall as exponentials do.
_CORNER_MARKS = np.array([0.0, 1.0, 3.0, 7.0, 15.0, 30.0])
#: A value that another one fixes keeps this share of its deviation: a step with a width.
_LEAST_LEFT = 1e-4


class NormalValues(NamedTuple):
    """The law of the arms' values without the weight: independent, or two with a covariance."""

    mean: Float[Array, "arms *lanes"]
    variance: Float[Array, "arms *lanes"]
    #: Of two arms; None: the values are independent.
    covariance: Float[Array, "*lanes"] | None = None


def two_choices(
    law: NormalValues, weight: Float[Array, "*lanes"] | None
) -> Float[Array, "2 *lanes"]:
    """The probabilities of two arms without a cap, in closed form; None: Λ is 0.

    With means m, variances s² and the covariance c, P(u) ∝ exp(Λm_u + Λ²s_u²/2) ·
    Φ((m_u − m_v + Λ(s_u² − c))/√(s_u² + s_v² − 2c)).
    """
    between = 0.0 if law.covariance is None else law.covariance
    gap, own, other = law.mean[0] - law.mean[1], law.variance[0], law.variance[1]
    spread = jnp.sqrt(own + other - 2.0 * between)
    if weight is None:
        return ndtr(jnp.stack([gap, -gap]) / spread)
    odds = (
        weight * gap
        + 0.5 * weight * weight * (own - other)
        + log_ndtr((gap + weight * (own - between)) / spread)
        - log_ndtr((weight * (other - between) - gap) / spread)
    )
    return jnp.stack([jax.nn.sigmoid(odds), jax.nn.sigmoid(-odds)])


def tilted_choices(
    law: NormalValues,
    weight: Float[Array, "*lanes"] | None,
    cap: Float[Array, "..."] | None = None,
) -> Float[Array, "arms *lanes"]:
    """The probabilities of all arms, by integrals whose nodes all arms share; None: Λ is 0.

    Exponents are counted from the largest one of all arms. There its arm is the largest with a
    probability that is not small: a value above its mode would have an exponent as large.
    """
    # Seen from the largest mean, float32 has enough digits for narrow laws of large values.
    top = jnp.max(law.mean, axis=0)
    law = law._replace(mean=law.mean - top)
    cap = None if cap is None or weight is None else cap - top
    deviation = jnp.sqrt(law.variance)
    shift, slope = _others(law)
    # Comparing all pairs would be faster, but a compiler may compute a mark twice with another last
    # digit, so that no mark is the next one.
    marks = jnp.sort(_marks(law, deviation, shift, slope, weight, cap), axis=0)
    width = marks[1:] - marks[:-1]
    at = jnp.concatenate([marks[:-1] + width * place for place in 0.5 + 0.5 * _NODES])
    size = jnp.concatenate([width * share for share in _WEIGHTS])
    own = (at - law.mean[:, None]) / deviation[:, None]
    exponent = -0.5 * own * own - jnp.log(deviation)[:, None]
    if weight is not None:
        exponent = exponent + weight * (at if cap is None else jnp.minimum(cap, at))
    density = jnp.exp(exponent - jnp.max(exponent, axis=(0, 1))) * size
    below = ndtr(shift[:, :, None] + slope[:, :, None] * at)
    arms = range(len(deviation))
    parts = [
        math.prod((below[min(a, len(below) - 1), j] for j in arms if j != a), start=density[a])
        for a in arms
    ]
    chances = jnp.sum(jnp.stack(parts), axis=1)
    return chances / jnp.sum(chances, axis=0)


def _column(numbers: np.ndarray, like: Float[Array, "*lanes"]) -> Float[Array, "..."]:
    """Constants along an axis in front of the lanes."""
    return jnp.asarray(numbers, jnp.float32).reshape(-1, *(1,) * like.ndim)


def _others(
    law: NormalValues,
) -> tuple[Float[Array, "some arms *lanes"], Float[Array, "some arms *lanes"]]:
    """P(v_j < v | v_a = v) = Φ(shift_aj + slope_aj v); one row for all a where they are alike."""
    if law.covariance is None:
        slope = 1.0 / jnp.sqrt(law.variance)
        return (-law.mean * slope)[None], slope[None]
    # Given v_a = v, the other one is normal around m_j + ρ(v − m_a).
    mean, variance = law.mean, law.variance
    pull = law.covariance / variance
    left = jnp.maximum(variance[::-1] - law.covariance * pull, _LEAST_LEFT**2 * variance[::-1])
    slope = (1.0 - pull) / jnp.sqrt(left)
    shift = (pull * mean - mean[::-1]) / jnp.sqrt(left)
    # Entries of an arm with itself are not looked at.
    nothing = jnp.zeros_like(slope[0])
    rows = [jnp.stack([nothing, shift[0]]), jnp.stack([shift[1], nothing])]
    slopes = [jnp.stack([nothing, slope[0]]), jnp.stack([slope[1], nothing])]
    return jnp.stack(rows), jnp.stack(slopes)


def _marks(
    law: NormalValues,
    deviation: Float[Array, "arms *lanes"],
    shift: Float[Array, "some arms *lanes"],
    slope: Float[Array, "some arms *lanes"],
    weight: Float[Array, "*lanes"] | None,
    cap: Float[Array, "..."] | None,
) -> Float[Array, "marks *lanes"]:
    """Points between which all integrands are smooth, and which enclose them."""
    lanes = law.mean.shape[1:]
    each = _column(_MARKS, law.mean[0])[:, None]
    steps = jnp.where(
        slope == 0.0, 0.0, (each[:, None] - shift) / jnp.where(slope == 0.0, 1.0, slope)
    )
    parts = [steps]
    if weight is not None or law.covariance is not None:
        tilted = law.mean if weight is None else law.mean + weight * law.variance
        below = tilted + each * deviation
        parts.append(below if cap is None else jnp.minimum(below, cap))
        if cap is not None:
            corner = _column(_CORNER_MARKS, law.mean[0])[:, None]
            before = deviation / (1.0 + jnp.abs(tilted - cap) / deviation)
            after = deviation / (1.0 + jnp.abs(law.mean - cap) / deviation)
            parts += [cap - corner * before, cap + corner * after]
            parts.append(jnp.maximum(law.mean + each * deviation, cap))
    return jnp.concatenate([part.reshape(-1, *lanes) for part in parts])
