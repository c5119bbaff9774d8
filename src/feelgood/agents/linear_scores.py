"""The law of the scores x·θ where θ has a normal or a Student-t law."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.targets import models
from feelgood.targets.sums import Theta, Value


def each_arm(spec: Spec, context: Float[Array, "..."]) -> Float[Array, "dim arms *lanes"]:
    """The feature of every arm."""
    x = models.features(spec, context)
    return jnp.broadcast_to(x, (x.shape[0], spec.arms, *x.shape[2:]))


def linear_law(
    spec: Spec,
    mean: Float[Array, "arms *lanes"],
    pushed: Float[Array, "normals arms *lanes"],
    freedom: Value | None = None,
) -> ScoreLaw:
    """Scores mean_a + pushed_a · z, with a z of its own per block of parameters."""
    if spec.shared:
        return ScoreLaw(mean, root=jnp.swapaxes(pushed, 0, 1), freedom=freedom)
    return ScoreLaw(mean, deviation=jnp.sqrt(lanes.dot(pushed, pushed)), freedom=freedom)


def precision_law(
    spec: Spec,
    context: Float[Array, "..."],
    mean: Theta,
    lower: Float[Array, "dim dim blocks *lanes"],
    variance: Value,
    freedom: Value | None = None,
) -> ScoreLaw:
    """Scores of θ ~ N(mean, variance · (L Lᵀ)⁻¹), or Student's law with that scale."""
    white = lanes.solve_lower(lower, each_arm(spec, context))
    scores = models.scores(spec, mean, context)
    return linear_law(spec, scores, jnp.sqrt(variance) * white, freedom)
