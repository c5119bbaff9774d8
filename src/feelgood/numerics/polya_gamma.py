"""Pólya–Gamma variates PG(1, c), exactly, for whole arrays at once.

PG(1, c) = J/4 with J of the density proportional to e^{−z²x/2} Σ_n (−1)^n a_n(x), z = |c|/2, where

    a_n(x) = π(n + ½) (2/(πx))^{3/2} e^{−2(n + ½)²/x}  or  π(n + ½) e^{−(n + ½)²π²x/2};

the sums of both are the same. a_0 of the first kind left of `_CUT`, and of the second kind right of
it, is an envelope that is easy to draw from. A candidate is taken with the probability Σ/a_0, which
in single precision is 1 − 3r + 5r³ with r = e^{−4/x} or e^{−π²x}: r is below 0.002.

Left of the cut and for small z, x⁻¹ᐟ² is a normal variate beyond its bound, taken with the
probability e^{−z²x/2} too. For large z, x is inverse Gaussian, and only taken if left of the cut.

Devroye, "On exact simulation algorithms for some distributions related to Jacobi theta functions",
Statistics and Probability Letters 2009; Polson, Scott and Windle, "Bayesian inference for logistic
models using Pólya–Gamma latent variables", JASA 2013.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, fold_in

_CUT = 0.64
#: P(N > 1/√cut) for a standard normal N.
_TAIL = 0.5 * math.erfc(1.0 / math.sqrt(2.0 * _CUT))
#: The least uniform number, so that no logarithm is infinite.
_LEAST = 2.0**-25

Numbers = Float[Array, "*lanes width"]


class _Envelope(NamedTuple):
    """What candidates are drawn with."""

    z: Numbers
    #: Whether z is below 1/cut.
    small: Bool[Array, "*lanes width"]
    #: The probability of a candidate left of the cut.
    left: Numbers
    #: The rate of the exponential law right of the cut.
    rate: Numbers


def _envelope(c: Numbers) -> _Envelope:
    z = 0.5 * jnp.abs(c)
    small = z < 1.0 / _CUT
    rate = math.pi**2 / 8.0 + 0.5 * z * z
    # Right over left mass. The left one is 4·tail, or 2e^{−z}: in one exponent, for large z.
    log_left = jnp.where(small, math.log(4.0 * _TAIL), math.log(2.0) - z)
    right = 0.5 * math.pi / rate * jnp.exp(-rate * _CUT - log_left)
    return _Envelope(z, small, 1.0 / (1.0 + right), rate)


def _candidate(
    envelope: _Envelope, side: Numbers, place: Numbers, coin: Numbers
) -> tuple[Numbers, Bool[Array, "*lanes width"]]:
    """A candidate from three uniform numbers, and whether it is taken."""
    z, small, left, rate = envelope
    goes_left = side < left
    place = jnp.maximum(place, _LEAST)
    # A standard normal: the lower tail, or all of it.
    normal = math.sqrt(2.0) * lax.erf_inv(2.0 * place * jnp.where(small, _TAIL, 1.0) - 1.0)
    square = jnp.maximum(normal * normal, _LEAST)
    mean = 1.0 / jnp.maximum(z, 1.0)
    half = 0.5 * mean * square
    wald = mean / (1.0 + half + jnp.sqrt(half * (2.0 + half)))
    # Below `left`, `side`/`left` is uniform again.
    wald = jnp.where(side * (mean + wald) < left * mean, wald, mean * mean / wald)
    x_left = jnp.where(small, 1.0 / square, wald)
    x = jnp.where(goes_left, x_left, _CUT - jnp.log(place) / rate)
    r = jnp.exp(jnp.where(goes_left, -4.0 / x, -(math.pi**2) * x))
    share = 1.0 - 3.0 * r + 5.0 * r**3
    tilt = jnp.where(goes_left & small, jnp.exp(-0.5 * z * z * x), 1.0)
    return x, (coin < share * tilt) & (~goes_left | (x <= _CUT))


def polya_gamma(key: AnyKey, c: Numbers) -> Numbers:
    """One PG(1, c) variate per number; NaN where c is not finite.

    Variate i depends on the key of its lane, on i and on c_i, and on nothing else.
    """
    envelope = _envelope(c)

    def attempt(
        carry: tuple[Int[Array, ""], Numbers, Bool[Array, "*lanes width"]],
    ) -> tuple[Int[Array, ""], Numbers, Bool[Array, "*lanes width"]]:
        turn, kept, done = carry
        here = fold_in(key, turn)
        side, place, coin = (lanes.uniform_rows(fold_in(here, k), c.shape[-1]) for k in range(3))
        x, taken = _candidate(envelope, side, place, coin)
        return turn + 1, jnp.where(done, kept, x), done | taken

    lost = ~jnp.isfinite(c)
    start = (jnp.zeros((), jnp.int32), jnp.where(lost, jnp.nan, 0.0), lost)
    _, x, _ = lax.while_loop(lambda carry: ~jnp.all(carry[2]), attempt, start)
    return 0.25 * x
