"""Proposals that move θ from one arm's mode to another's.

A feel-good bonus λΣφ(max_a f_θ) makes modes that are far from each other: in each, another arm is
taken to be very good. Steps along the gradient hardly ever cross from one to the other. The
proposal here does, for the linear model. It picks a past round s, the arm a that is best there
under θ, and another arm a' at random. The scores V = (θ·x_a, θ·x_a') are drawn anew from

    q(V) ∝ N(V; m, S) (exp(κ_a V_a) + exp(κ_a' V_a')),

which is a mixture of two normal laws, and θ moves by what the normal law N(m, Σ) of θ says of it
given V. Here N(m, Σ) approximates exp(−β(L without the bonus)), and is that law where the loss is
squared. κ_a is the pull of the bonus on the score: with one fixed context it is βΣλ_s, and with two
arms and no cap q is then within a factor of two of the target of V. All of m, Σ and κ depend on the
data alone, and the pair {a, a'} is found again from the proposed θ, unless a third arm is best
there. So the Metropolis filter makes the target exact, whatever the model.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.targets import models
from feelgood.targets.bonus import Bonus
from feelgood.targets.history import Chunk, Rows, total_of
from feelgood.targets.sums import Theta, Value

#: Uniform random numbers that a proposal uses: round, arm, side of the mixture, two normals.
JUMP_UNIFORMS = 5


class Centre(NamedTuple):
    """The normal law N(m, Σ) that stands for the energy without the bonus."""

    mean: Theta
    #: B with BᵀB = Σ.
    root: Float[Array, "dim dim blocks *lanes"]

    def across(self, features: Theta) -> Theta:
        """Σ x."""
        return lanes.matvec(jnp.swapaxes(self.root, 0, 1), lanes.matvec(self.root, features))


class Jump(NamedTuple):
    """A proposal, and ln q(old) − ln q(new); −∞ where the way back would not be found."""

    theta: Theta
    log_densities: Value


class _Pair(NamedTuple):
    """What is drawn anew: the scores of two arms in one round."""

    #: Σ times the features of each of the two.
    across: tuple[Theta, Theta]
    #: m of the scores, and the lower factor of S.
    mean: Float[Array, "2 *lanes"]
    factor: tuple[Value, Value, Value]
    #: κ of the two arms.
    pull: Float[Array, "2 *lanes"]

    def white(self, scores: Float[Array, "2 *lanes"]) -> Float[Array, "2 *lanes"]:
        """y with V = m + Ly."""
        first, low, second = self.factor
        gap = scores - self.mean
        y = gap[0] / first
        return jnp.stack([y, (gap[1] - low * y) / second])

    def scores(self, white: Float[Array, "2 *lanes"]) -> Float[Array, "2 *lanes"]:
        """V = m + Ly."""
        first, low, second = self.factor
        return self.mean + jnp.stack([first * white[0], low * white[0] + second * white[1]])

    def log_density(self, white: Float[Array, "2 *lanes"]) -> Value:
        """ln q, up to a constant."""
        tilts = self.pull * self.scores(white)
        return jnp.logaddexp(tilts[0], tilts[1]) - 0.5 * jnp.sum(white * white, axis=0)

    def moved(self, theta: Theta, step: Float[Array, "2 *lanes"]) -> Theta:
        """θ + Σ Xᵀ L⁻ᵀ step, which moves the scores by L step."""
        first, low, second = self.factor
        other = step[1] / second
        return theta + (step[0] - low * other) / first * self.across[0] + other * self.across[1]


def propose(
    bonus: Bonus,
    rows: Rows,
    centre: Centre,
    beta: Number,
    theta: Theta,
    uniform: Float[Array, "draws *lanes"],
) -> Jump:
    """A proposal from `theta`; `uniform` has `JUMP_UNIFORMS` numbers."""
    spec = rows.spec
    context = _context_of(rows, uniform[0])
    scores = models.scores(spec, theta, context)
    best, other = _two_arms(scores, uniform[1])
    pair = _pair(bonus, rows, centre, beta, context, (best, other))
    old = pair.white(jnp.stack([_at(scores, best), _at(scores, other)]))
    # Each side of the mixture is N(m + κ S e, S); its weight is exp(κ m + κ² S/2).
    tilted = _tilts(pair)
    weights = pair.pull * pair.mean + 0.5 * jnp.sum(tilted * tilted, axis=1)
    first = uniform[2] < jax.nn.sigmoid(weights[0] - weights[1])
    normals = jax.scipy.special.ndtri(jnp.clip(uniform[3:5], 2.0**-24, 1.0 - 2.0**-24))
    new = normals + jnp.where(first, tilted[0], tilted[1])
    proposal = pair.moved(theta, new - old)
    winner = lanes.argmax(models.scores(spec, proposal, context))
    found = (winner == best) | (winner == other)
    ratio = pair.log_density(old) - pair.log_density(new)
    possible = found & (rows.filled > 0) & jnp.isfinite(ratio)
    return Jump(
        theta=jnp.where(possible, proposal, theta),
        log_densities=jnp.where(possible, ratio, -jnp.inf),
    )


def _tilts(pair: _Pair) -> Float[Array, "2 2 *lanes"]:
    """κ Lᵀe of both sides: where their normal laws are centred, in white coordinates."""
    first, low, second = pair.factor
    none = jnp.zeros_like(first)
    return jnp.stack(
        [
            jnp.stack([pair.pull[0] * first, none]),
            jnp.stack([pair.pull[1] * low, pair.pull[1] * second]),
        ]
    )


def _pair(
    bonus: Bonus,
    rows: Rows,
    centre: Centre,
    beta: Number,
    context: Float[Array, "..."],
    arms: tuple[Int[Array, "*lanes"], Int[Array, "*lanes"]],
) -> _Pair:
    """The scores of two arms in one context under the centre's law, and the pull on them."""
    spec = rows.spec
    one, two = (_features(spec, context, arm) for arm in arms)
    across = centre.across(one), centre.across(two)
    variances = _inner(one, across[0]), _inner(two, across[1])
    first = jnp.sqrt(variances[0])
    low = _inner(one, across[1]) / first
    second = jnp.sqrt(jnp.maximum(variances[1] - low * low, 0.0))
    mean = jnp.stack([_inner(one, centre.mean), _inner(two, centre.mean)])
    pulls = [
        _pull(bonus, rows, beta, arm, towards) / variance
        for arm, towards, variance in zip(arms, across, variances, strict=True)
    ]
    slopes = bonus.slope(mean[..., None])[..., 0]
    return _Pair(
        across=across,
        mean=mean,
        factor=(first, low, second),
        pull=jnp.stack(pulls) * slopes,
    )


def _pull(
    bonus: Bonus, rows: Rows, beta: Number, arm: Int[Array, "*lanes"], towards: Theta
) -> Value:
    """β Σ_s λ_s max(0, x_s·Σx) over the arm's features in all rounds.

    Divided by x·Σx it is what the rounds like this one count together: each counts as much as the
    arm's score there follows the score here.
    """

    def of_chunk(chunk: Chunk, towards: Theta) -> Value:
        assert chunk.contexts is not None
        shown = _of_arm(rows.spec, chunk.contexts, arm)
        alike = lanes.dot(jnp.sum(towards, axis=1)[..., None], shown)
        return total_of(jnp.maximum(alike, 0.0), bonus.weighed(chunk.valid, chunk.numbers))

    return beta * bonus.strength * rows.total(of_chunk, towards)


def _of_arm(
    spec: Spec, contexts: Float[Array, "... width"], arm: Int[Array, "*lanes"]
) -> Float[Array, "dim *lanes width"]:
    """What one arm showed in every round of a chunk."""
    if not spec.shared:
        return contexts
    index = jnp.broadcast_to(arm[None, None, ..., None], (len(contexts), 1, *contexts.shape[2:]))
    return jnp.take_along_axis(contexts, index, axis=1)[:, 0]


def _context_of(rows: Rows, uniform: Value) -> Float[Array, "..."]:
    """What the arms showed in a past round, each as likely as the others."""
    assert rows.contexts is not None
    last = jnp.maximum(rows.filled - 1, 0)
    number = jnp.minimum((uniform * rows.filled).astype(jnp.int32), last)
    index = jnp.broadcast_to(number, rows.contexts.shape[:-1])[..., None]
    return jnp.take_along_axis(rows.contexts, index, axis=-1)[..., 0]


def _two_arms(
    scores: Float[Array, "arms *lanes"], uniform: Value
) -> tuple[Int[Array, "*lanes"], Int[Array, "*lanes"]]:
    """The best arm, and one of the others, each as likely."""
    arms = len(scores)
    best = jnp.argmax(scores, axis=0)
    ahead = 1 + jnp.minimum((uniform * (arms - 1)).astype(jnp.int32), arms - 2)
    return best, (best + ahead) % arms


def _features(spec: Spec, context: Float[Array, "..."], arm: Int[Array, "*lanes"]) -> Theta:
    """What an arm shows, in the block of its parameters; the other blocks are 0."""
    x, block = models.played(spec, context, arm)
    return x[:, None] * block


def _at(scores: Float[Array, "arms *lanes"], arm: Int[Array, "*lanes"]) -> Value:
    return lanes.pick(scores, lanes.one_hot(arm, len(scores)))


def _inner(one: Theta, two: Theta) -> Value:
    return jnp.sum(one * two, axis=(0, 1))
