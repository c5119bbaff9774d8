"""The mode of a logistic model's posterior, and the precision of Laplace's approximation there.

    L(θ) = Σ [log(1 + e^{x·θ}) − r x·θ] + ‖θ‖²/(2s²),   H(θ) = Σ μ'(x·θ) x xᵀ + I/s²

with μ the logistic function. θ̂ = argmin L is followed from round to round by Newton's method. The
matrix is H at an earlier estimate, the anchor, to which a new x adds one rank. It is made anew
where the scores of the past have moved by more than `DRIFT` since, so that it lies between
e^{−DRIFT} H(θ̂) and e^{DRIFT} H(θ̂) in all directions: log μ' has slope at most 1.

A step δ = H⁻¹∇L is shortened by log(1 + b)/b with b = max |x·δ| over the past. This lowers L from
every start, and tends to the full step. Sun and Tran-Dinh, "Generalized self-concordant functions:
a recipe for Newton-type methods", Mathematical Programming 2019.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.targets import strips, sums
from feelgood.targets.history import Chunk, Rows, contract, played_scores
from feelgood.targets.sums import Theta, Value

#: How far a past score may be from its value at the anchor, and how far the last step may move it.
DRIFT, _REACH = 0.25, 0.05
#: How often per round the matrix is made anew at most: a few times with usual rewards and priors.
#: With logits of a standard deviation s‖x‖ beyond some hundreds, and rewards that are nearly
#: separable, θ̂ may lag behind for some rounds.
_RENEWALS = 100


class Effort(NamedTuple):
    """When the matrix of Newton's method is made anew, which costs as much as many steps."""

    #: Steps with one matrix.
    steps: int = 2
    #: How far a past score may be from its value at the anchor, and how far the last step moves it.
    drift: float = DRIFT
    reach: float = _REACH


class Fit(NamedTuple):
    """The estimate θ̂, and the factor of the matrix that Newton's method goes by."""

    theta: Theta
    #: Where the matrix was taken.
    anchor: Theta
    #: The lower factor of H(anchor).
    lower: Float[Array, "dim dim blocks *lanes"]

    @classmethod
    def empty(cls, spec: Spec, precision: Number) -> "Fit":
        """No data: θ̂ = 0, H = I/s²."""
        zero = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
        return cls(theta=zero, anchor=zero, lower=sums.scaled_identity(spec, precision))

    def add(self, x: Float[Array, "dim *lanes"], block: Float[Array, "blocks *lanes"]) -> "Fit":
        """The matrix after one more observation; θ̂ stays where it was."""
        score = jnp.sum(lanes.dot(self.anchor, x[:, None]) * block, axis=0)
        root = jnp.sqrt(logistic_slope(score))
        return self._replace(lower=sums.update_factor(self.lower, root * x, block))


def residual(score: Float[Array, "..."], reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """μ − r as (1 − r) μ(z) − r μ(−z): exact also where μ is near r."""
    below = jnp.exp(-jnp.abs(score))
    larger, smaller = 1.0 / (1.0 + below), below / (1.0 + below)
    up = score > 0.0
    one, other = jnp.where(up, larger, smaller), jnp.where(up, smaller, larger)
    return (1.0 - reward) * one - reward * other


def logistic_slope(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """μ' = μ(1 − μ), exact also where μ is near 0 or 1."""
    below = jnp.exp(-jnp.abs(score))
    return below / (1.0 + below) ** 2


def weighted_gram(
    weights: Float[Array, "blocks *lanes width"], x: Float[Array, "dim *lanes width"]
) -> Float[Array, "dim dim blocks *lanes"]:
    """Σ over rounds of weight × x xᵀ, one block after the other."""

    def of_block(weight: Array) -> Array:
        return jnp.einsum("d...t,e...t->de...", weight * x, x, precision=lax.Precision.HIGHEST)

    return jnp.moveaxis(lax.map(of_block, weights), 0, 2)


def plus_identity(
    matrix: Float[Array, "dim dim blocks *lanes"], scale: Number
) -> Float[Array, "dim dim blocks *lanes"]:
    """A + scale · I of every block."""
    eye = jnp.eye(len(matrix)).reshape(len(matrix), len(matrix), *([1] * (matrix.ndim - 2)))
    return matrix + scale * eye


def hessian(rows: Rows, precision: Number, theta: Theta) -> Float[Array, "dim dim blocks *lanes"]:
    """H(θ) of every block, by one pass over the past."""

    def of_chunk(chunk: Chunk, theta: Theta) -> Array:
        assert chunk.features is not None
        scores, block = played_scores(rows.spec, theta, chunk.features, chunk.arms)
        return weighted_gram(block * (logistic_slope(scores) * chunk.valid), chunk.features)

    return plus_identity(rows.total(of_chunk, theta), precision)


def gradient(rows: Rows, precision: Number, theta: Theta) -> Theta:
    """∇L(θ), by one pass over the past."""

    def of_chunk(chunk: Chunk, theta: Theta) -> Theta:
        assert chunk.features is not None
        scores, block = played_scores(rows.spec, theta, chunk.features, chunk.arms)
        slopes = residual(scores, chunk.rewards) * chunk.valid
        return contract(block * slopes, chunk.features)

    if strips.suits(rows):
        _, total = strips.total_by_strips(rows, theta, lambda f, r: jnp.zeros_like(f), residual)
    else:
        total = rows.total(of_chunk, theta)
    return total + precision * theta


def descend(
    rows: Rows,
    precision: Number,
    fit: Fit,
    pull: Theta | None = None,
    effort: Effort = Effort(),  # noqa: B008  (nobody writes to it)
) -> tuple[Theta, Value]:
    """Steps of Newton's method from θ̂ towards argmin L(θ) + pull·θ.

    The second value is above 1 where the matrix must be made anew: a past score has moved by more
    than `effort` allows, from the anchor or in the last step. All steps are one pass over the past:
    scores are moved along with θ.
    """

    def of_chunk(chunk: Chunk, fit: Fit) -> tuple[Theta, Value]:
        assert chunk.features is not None
        x = chunk.features

        def largest(scores: Array) -> Value:
            return jnp.max(jnp.abs(scores) * chunk.valid, axis=-1)

        theta = fit.theta
        scores, block = played_scores(rows.spec, theta, x, chunk.arms)
        length = jnp.zeros(scores.shape[:-1])
        for _ in range(effort.steps):
            slopes = residual(scores, chunk.rewards) * chunk.valid
            gradient = contract(block * slopes, x) + precision * theta
            if pull is not None:
                gradient = gradient + pull
            step = lanes.solve_upper(fit.lower, lanes.solve_lower(fit.lower, gradient))
            along, _ = played_scores(rows.spec, step, x, chunk.arms)
            length = largest(along)
            share = jnp.where(length > 1e-6, jnp.log1p(length) / length, 1.0)
            theta, scores = theta - share * step, scores - share[..., None] * along
        away, _ = played_scores(rows.spec, theta - fit.anchor, x, chunk.arms)
        return theta, jnp.maximum(largest(away) / effort.drift, length / effort.reach)

    return rows.total(of_chunk, fit)


def follow(
    rows: Rows,
    precision: Number,
    fit: Fit,
    anew: Bool[Array, "*lanes"],
    pull: Theta | None = None,
    effort: Effort = Effort(),  # noqa: B008  (nobody writes to it)
) -> Fit:
    """argmin L(θ) + pull·θ, from a minimum nearby: that of one row less, or that without `pull`.

    `anew` says where the matrix must be made anew first, as after a change of the prior.
    """
    theta, excess = descend(rows, precision, fit, pull, effort)
    fit = fit._replace(theta=jnp.where(anew, fit.theta, theta))
    start = (fit, anew | (excess > 1.0), jnp.zeros((), jnp.int32))

    def renew(carry: tuple[Fit, Array, Int[Array, ""]]) -> tuple[Fit, Array, Int[Array, ""]]:
        old, where, turn = carry
        lower = lanes.cholesky(hessian(rows, precision, old.theta))
        new = Fit(theta=old.theta, anchor=old.theta, lower=lower)
        theta, excess = descend(rows, precision, new, pull, effort)
        new = new._replace(theta=theta)
        fit = jax.tree.map(lambda a, b: jnp.where(where, a, b), new, old)
        return fit, where & (excess > 1.0), turn + 1

    fit, _, _ = lax.while_loop(lambda c: jnp.any(c[1]) & (c[2] < _RENEWALS), renew, start)
    return fit
