"""The noise of the rewards and the scale of the parameters, told or learned.

The model is r = x·θ + N(0, σ²) with θ ~ N(0, s² I). What is not told is estimated from the sums
that a squared loss keeps anyway, by steps of expectation maximisation towards the largest evidence:

    ρ = σ²/s²,  V = Σ x xᵀ + ρI,  μ = V⁻¹ Σ r x,  γ = D − ρ tr V⁻¹
    σ² ← (Σ (r − x·μ)² + σ² γ) / n,   s² ← (‖μ‖² + σ² tr V⁻¹ + s₀²) / (D + 1)

with D parameters and n rewards. s₀² = Σ r² / Σ ‖x‖² says that rewards are mostly signal; it counts
as one parameter more, so that s² stays positive. Both estimates scale with the rewards and with the
features, so the arms that an agent chooses do not depend on the units of either.

MacKay, "Bayesian interpolation", Neural Computation 1992; Bishop, "Pattern Recognition and Machine
Learning", 2006, §9.3.4.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num

from feelgood.core.spec import Likelihood, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.rare import rarely
from feelgood.targets.sums import Stats, Theta, Value

#: Share of the rewards' mean square that is taken as noise before anything is known.
FIRST_NOISE = 0.05
#: Steps of expectation maximisation at a time.
EM_STEPS = 2
#: The least noise, as a share of the mean square: sums in single precision tell no less.
LEAST_NOISE = 1e-6
#: Estimates are renewed so many times while the number of observations doubles.
RENEWALS = 4


class Scales(NamedTuple):
    """The estimates so far, and the sum that they need besides Σ x xᵀ and Σ r x."""

    #: Σ r².
    squares: Value
    #: σ² and s²; both 1 until there were a reward and a context that are not 0.
    noise: Value
    prior: Value
    #: How many rewards there were; less where the past is forgotten.
    rewards: Value

    def times(self, factor: Number) -> "Scales":
        """Every reward with this weight; the estimates stay."""
        return self._replace(squares=factor * self.squares, rewards=factor * self.rewards)


class Factor(NamedTuple):
    """V = Σ x xᵀ + ρI taken apart, per block."""

    #: L with L Lᵀ = V.
    lower: Float[Array, "dim dim blocks *lanes"]
    #: L⁻¹: a root of V⁻¹.
    root: Float[Array, "dim dim blocks *lanes"]
    #: L⁻¹ Σ r x.
    white: Theta

    @classmethod
    def of(cls, stats: Stats, ratio: Number) -> "Factor":
        """With ρ = `ratio`."""
        dim, blocks = stats.moment.shape[:2]
        eye = jnp.eye(dim).reshape(dim, dim, *([1] * (stats.moment.ndim - 1)))
        lower = lanes.cholesky(stats.gram + ratio * eye)
        columns = jnp.broadcast_to(eye, (dim, dim, blocks, *stats.moment.shape[2:]))
        root = lanes.solve_lower(lower[:, :, None], columns)
        return cls(lower=lower, root=root, white=lanes.solve_lower(lower, stats.moment))


class ScaleModel(eqx.Module):
    """What is told: σ² and s², each None where it is learned."""

    noise: Number | None
    prior: Number | None

    def init(self, spec: Spec) -> Scales:
        """Before the first reward: what is told, and 1 for the rest."""

        def told(value: Number | None) -> Value:
            return jnp.broadcast_to(jnp.ones(()) if value is None else value, spec.lanes)

        zero = jnp.zeros(spec.lanes)
        return Scales(zero, told(self.noise), told(self.prior), zero)

    def learn(
        self, scales: Scales, stats: Stats, count: Int[Array, ""], reward: Value
    ) -> tuple[Scales, Bool[Array, "*lanes"]]:
        """The scales after one more reward, and in which chains they were renewed.

        `stats` and `count` include the reward. Renewals become rare as data come, so that their
        cost does not matter: four while the data double.
        """
        squares = scales.squares + reward**2
        known = tells_of_scales(stats, squares)
        first = self.untold(scales) & known
        renewed = (due(count) & known) | first
        kept = scales._replace(squares=squares, rewards=scales.rewards + 1.0)

        def renew(old: Scales) -> Scales:
            new = self.estimate(old, stats, old.rewards, first)
            return jax.tree.map(lambda a, b: jnp.where(renewed, a, b), new, old)

        return rarely(renewed, renew, kept), renewed

    def untold(self, scales: Scales) -> Bool[Array, "*lanes"]:
        """Whether the scales are still those before the first estimate."""
        noise, prior = (1.0 if told is None else told for told in (self.noise, self.prior))
        return (scales.noise == noise) & (scales.prior == prior)

    def estimate(
        self, scales: Scales, stats: Stats, count: Num[Array, "..."], first: Bool[Array, "*lanes"]
    ) -> Scales:
        """Two steps of expectation maximisation; from a guess where there was nothing before."""
        squares = scales.squares
        parameters = stats.moment.shape[0] * stats.moment.shape[1]
        power = squares / count
        length = jnp.sum(jnp.trace(stats.gram), axis=0)
        signal = squares / jnp.maximum(length, jnp.finfo(jnp.float32).tiny)

        def or_told(told: Number | None, estimate: Value) -> Value:
            return estimate if told is None else jnp.broadcast_to(told, estimate.shape)

        noise = or_told(self.noise, jnp.where(first, FIRST_NOISE * power, scales.noise))
        prior = or_told(self.prior, jnp.where(first, signal, scales.prior))
        for _ in range(EM_STEPS):
            factor = Factor.of(stats, noise / prior)
            mean = lanes.solve_upper(factor.lower, factor.white)
            length2 = jnp.sum(mean * mean, axis=(0, 1))
            trace = jnp.sum(factor.root**2, axis=(0, 1, 2))
            ratio = noise / prior
            residual = squares - jnp.sum(factor.white**2, axis=(0, 1)) - ratio * length2
            spread = noise * trace
            better = (residual + noise * (parameters - ratio * trace)) / count
            noise = or_told(self.noise, jnp.maximum(better, LEAST_NOISE * power))
            prior = or_told(self.prior, (length2 + spread + signal) / (parameters + 1.0))
        return Scales(squares, noise, prior, scales.rewards)


def tells_of_scales(stats: Stats, squares: Value) -> Bool[Array, "*lanes"]:
    """Whether a reward was not 0 and a context neither: before that there is no scale to learn."""
    gram, dim = stats.gram, len(stats.gram)
    # Nothing but the diagonal is read: a live reward has no time for all of the matrix.
    diagonal = gram.reshape(dim * dim, *gram.shape[2:])[:: dim + 1]
    return (squares > 0.0) & (jnp.sum(diagonal, axis=(0, 1)) > 0.0)


def due(count: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether estimates are renewed after so many observations: 1, …, 8, 10, 12, 14, 16, 20, …"""
    octave = 31 - lax.clz(jnp.maximum(count, 1).astype(jnp.int32))
    grid = jnp.left_shift(1, jnp.maximum(octave - (RENEWALS.bit_length() - 1), 0))
    return (count % grid) == 0


def started(theta: Theta, old: Scales, new: Scales) -> Theta:
    """The start of a chain, N(0, I), in the prior's scale: that is known with the first reward."""
    first = (old.squares == 0.0) & (new.squares > 0.0)
    return jnp.where(first, jnp.sqrt(new.prior / old.prior) * theta, theta)


def linear_reward(loss: Likelihood, reward: Value) -> Value:
    """The reward as a linear model sees it.

    The logistic function has slope ¼ at 0, so 4(r − ½) has mean near the logit while that is small.
    It is ±2, so the learned scale of a logit never exceeds 2.
    """
    return reward if loss == "squared" else 4.0 * reward - 2.0
