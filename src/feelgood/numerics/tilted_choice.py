"""Which of several normal values is the largest, where the maximum has a weight of its own.

Values v_a have a normal law, times exp(Λ min(b, max_a v_a)). The probability that arm a has the
largest one is

    P(a) ∝ ∫ e^{Λ min(b, v)} φ_a(v) P(v_j < v for all j ≠ a | v_a = v) dv,

with the density φ_a of v_a. Everything is in logarithms, so that Λ may be large. Arrays have lanes
behind, as everywhere; see `numerics.lanes`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

#: Gauss's rule on panels between marks, which are so many deviations from each law's centre.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_MARKS = np.array([-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0])
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


def two_choices(law: NormalValues, weight: Float[Array, "*lanes"]) -> Float[Array, "2 *lanes"]:
    """The probabilities of two arms without a cap, in closed form.

    With means m, variances s² and the covariance c, P(u) ∝ exp(Λm_u + Λ²s_u²/2) ·
    Φ((m_u − m_v + Λ(s_u² − c))/√(s_u² + s_v² − 2c)).
    """
    between = 0.0 if law.covariance is None else law.covariance
    gap, own, other = law.mean[0] - law.mean[1], law.variance[0], law.variance[1]
    spread = jnp.sqrt(own + other - 2.0 * between)
    odds = (
        weight * gap
        + 0.5 * weight * weight * (own - other)
        + log_ndtr((gap + weight * (own - between)) / spread)
        - log_ndtr((weight * (other - between) - gap) / spread)
    )
    return jnp.stack([jax.nn.sigmoid(odds), jax.nn.sigmoid(-odds)])


def tilted_choices(
    law: NormalValues, weight: Float[Array, "*lanes"], cap: Float[Array, "..."] | None
) -> Float[Array, "arms *lanes"]:
    """The probabilities of all arms, by integrals whose nodes all arms share."""
    # Seen from the largest mean, float32 has enough digits for narrow laws of large values.
    top = jnp.max(law.mean, axis=0)
    law = law._replace(mean=law.mean - top)
    cap = None if cap is None else cap - top
    deviation = jnp.sqrt(law.variance)
    shift, slope = _others(law)
    marks = jnp.sort(_marks(law, deviation, shift, slope, weight, cap), axis=0)
    width = marks[1:] - marks[:-1]
    place = _column(0.5 + 0.5 * _NODES, marks[0])
    at = (marks[:-1, None] + width[:, None] * place).reshape(-1, *marks.shape[1:])
    size = (width[:, None] * _column(0.5 * _WEIGHTS, marks[0])).reshape(at.shape)
    below = log_ndtr(shift[:, :, None] + slope[:, :, None] * at)
    others = jnp.sum(below, axis=1) - jnp.stack(
        [below[min(a, len(below) - 1), a] for a in range(len(deviation))]
    )
    own = (at - law.mean[:, None]) / deviation[:, None]
    bonus = weight * (at if cap is None else jnp.minimum(cap, at))
    density = others + bonus - 0.5 * own * own - jnp.log(deviation)[:, None]
    return jax.nn.softmax(jax.nn.logsumexp(density + jnp.log(size), axis=1), axis=0)


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
    # Of itself an arm knows that it is the largest: the entry that `tilted_choices` takes out.
    nothing = jnp.zeros_like(slope[0])
    rows = [jnp.stack([nothing, shift[0]]), jnp.stack([shift[1], nothing])]
    slopes = [jnp.stack([nothing, slope[0]]), jnp.stack([slope[1], nothing])]
    return jnp.stack(rows), jnp.stack(slopes)


def _marks(
    law: NormalValues,
    deviation: Float[Array, "arms *lanes"],
    shift: Float[Array, "some arms *lanes"],
    slope: Float[Array, "some arms *lanes"],
    weight: Float[Array, "*lanes"],
    cap: Float[Array, "..."] | None,
) -> Float[Array, "marks *lanes"]:
    """Points between which all integrands are smooth, and which enclose them."""
    lanes = law.mean.shape[1:]
    each, corner = (
        _column(_MARKS, law.mean[0])[:, None],
        _column(_CORNER_MARKS, law.mean[0])[:, None],
    )
    tilted = law.mean + weight * law.variance
    below = tilted + each * deviation
    steep = jnp.where(slope == 0.0, 1.0, slope)
    steps = jnp.where(slope == 0.0, 0.0, (each[:, None] - shift) / steep)
    parts = [below, steps]
    if cap is not None:
        cap = jnp.broadcast_to(cap, lanes)
        fall = deviation / (1.0 + jnp.abs(tilted - cap) / deviation)
        after = deviation / (1.0 + jnp.abs(law.mean - cap) / deviation)
        above = jnp.maximum(law.mean + each * deviation, cap)
        parts = [jnp.minimum(below, cap), steps, above, cap - corner * fall, cap + corner * after]
    return jnp.concatenate([part.reshape(-1, *lanes) for part in parts])
