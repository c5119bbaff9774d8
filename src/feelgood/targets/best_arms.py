"""The best arm of every stored context: its score, which it is, and the sum of a bonus over it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.targets.bonus import Bonus
from feelgood.targets.history import contract, row_scores, total_of
from feelgood.targets.sums import Theta, Value

#: Up to this many arms comparisons are written out; above it they are reductions.
WRITTEN_OUT_COMPARISONS = 16


def highest(scores: Float[Array, "arms *any"]) -> Float[Array, "*any"]:
    """The largest score."""
    if len(scores) > WRITTEN_OUT_COMPARISONS:
        return jnp.max(scores, axis=0)
    best = scores[0]
    for other in scores[1:]:
        best = jnp.maximum(best, other)
    return best


def best_arm(
    scores: Float[Array, "arms *any"],
) -> tuple[Float[Array, "*any"], Float[Array, "arms *any"]]:
    """The largest score and the first arm that has it (one-hot)."""
    best = highest(scores)
    if len(scores) > WRITTEN_OUT_COMPARISONS:
        return best, lanes.one_hot(first_arm(scores, best), len(scores))
    hits, taken = [], jnp.zeros(best.shape, bool)
    for arm in scores:
        hit = (arm == best) & ~taken
        taken = taken | hit
        hits.append(hit)
    return best, jnp.stack(hits).astype(jnp.float32)


@jax.jit
def add_at_first(
    sums: Float[Array, "dim arms *any"],
    rows: Float[Array, "dim *any"],
    scores: Float[Array, "arms *any"],
    best: Float[Array, "*any"],
) -> Float[Array, "dim arms *any"]:
    """The sums with `rows` added to that of the first arm with the largest score.

    Where `best` is not a number nothing is added. The function is known by its name, for an
    accelerator has a better way.
    """
    out, left = [], ~jnp.isnan(best)
    for arm, score in enumerate(scores[:-1]):
        out.append(sums[:, arm] + jnp.where(left & (score == best), rows, 0.0))
        left = left & (score != best)
    return jnp.stack([*out, sums[:, -1] + jnp.where(left, rows, 0.0)], axis=1)


def first_arm(scores: Float[Array, "arms *any"], best: Float[Array, "*any"]) -> Int[Array, "*any"]:
    """The first arm with the largest score; as two simple reductions, which `argmax` is not."""
    arms = jnp.arange(len(scores)).reshape(-1, *[1] * best.ndim)
    # No arm has it where a score is not a number.
    return jnp.minimum(
        jnp.min(jnp.where(scores == best, arms, len(scores)), axis=0), len(scores) - 1
    )


def rows_bonus(
    spec: Spec,
    bonus: Bonus,
    theta: Theta,
    contexts: Float[Array, "... width"],
    weights: Float[Array, "... width"],
    store: Float[Array, "... room"] | None = None,
) -> tuple[Value, Theta]:
    """Σ w_s φ and its gradient over the rounds of a chunk; `weights` are 0 where there is none.

    Where arms have features of their own, the gradient reads those of the best arms alone. It reads
    them from the whole `store`, whose first rounds are `contexts`: a part would be copied first.
    """
    scores = row_scores(spec, theta, contexts)
    if spec.shared:
        best = highest(scores)
        winner = first_arm(scores, best)
        where = (slice(None), winner, *jnp.indices(winner.shape, sparse=True))
        features = contexts if store is None else store
        chosen = features.at[where].get(mode="promise_in_bounds")
        gradient = contract((bonus.slope(best) * weights)[None], chosen)
    else:
        best, onehot = best_arm(scores)
        gradient = contract(onehot * (bonus.slope(best) * weights), contexts)
    return total_of(bonus.phi(best), weights), gradient
